#!/usr/bin/env python3
"""The hub's command line: `manage.py up` runs the whole hub, `manage.py help` lists the rest."""

import gc
import os
import sys

from eventhub import limits

# Django's own commands that would look for a server somewhere, for seconds, before they fail.
NEED_DATABASE = ("changepassword", "createsuperuser", "dbshell", "migrate", "shell")


def main() -> None:
    # what is loaded stays: to look through it again and again takes a fourth of a start
    gc.set_threshold(limits.GC_THRESHOLD)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eventhub.settings")
    from django.core.management import execute_from_command_line

    from eventhub.up.beside import NoDatabaseUrl, require_database

    try:
        if sys.argv[1:2] and sys.argv[1] in NEED_DATABASE and "--help" not in sys.argv:
            require_database()
    except NoDatabaseUrl as error:
        sys.exit(f"manage.py {sys.argv[1]}: {error}")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
