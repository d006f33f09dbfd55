"""`back_and_forth.py LABEL ...`: reverts all migrations of the apps and applies them again; prints
as JSON what each app left behind, by its label.
"""

import json
import sys

from django.apps import apps
from django.core.management import call_command
from django.db import connection

LEFT = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'S') AND relname ~ %s"
FUNCTIONS = "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
RECORDED = "SELECT app, name FROM django_migrations WHERE app = ANY(%s)"


def main() -> None:
    for label in ("monitoring", "jobs", "access"):  # with all that need it
        call_command("migrate", label, "zero", verbosity=0)
    found = {}
    with connection.cursor() as cursor:
        for label in sys.argv[1:]:
            names = (model._meta.db_table for model in apps.get_app_config(label).get_models())
            cursor.execute(LEFT, [f"^({'|'.join(names)})(_|$)"])
            found[label] = cursor.fetchall()
        cursor.execute(FUNCTIONS)
        found[label] += cursor.fetchall()
        cursor.execute(RECORDED, [sys.argv[1:]])
        found[label] += cursor.fetchall()
    call_command("migrate", verbosity=0)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
