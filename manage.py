#!/usr/bin/env python3
"""The hub's command line: `manage.py up` runs the whole hub, `manage.py help` lists the rest."""

import os
import sys

from eventhub.base.garbage import collect_rarely

# Django's own commands that would look for a server somewhere, for seconds, before they fail.
NEED_DATABASE = ("changepassword", "createsuperuser", "dbshell", "migrate", "shell")
# Commands beside a running hub that must not meet tables of another version.
USE_TABLES = frozenset(
    {"archive", "changepassword", "createkey", "createoperator", "createsuperuser", "demo", "index"}
    | {"restored", "retention", "sparkjob"}
)


def main() -> None:
    collect_rarely()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eventhub.settings")
    from django.core.management import CommandError, execute_from_command_line

    from eventhub.base.env import require_env
    from eventhub.management.command import refuse_other_schema, require_database

    require_env()
    try:
        if sys.argv[1:2] and sys.argv[1] in NEED_DATABASE and "--help" not in sys.argv:
            require_database()
    except CommandError as error:
        sys.exit(f"manage.py {sys.argv[1]}: {error}")
    if sys.argv[1:2] == ["up"]:  # which starts the processes that need the apps
        from eventhub.management.commands.up import Command

        Command().run_from_argv(sys.argv)
        return
    if sys.argv[1:2] and sys.argv[1] in USE_TABLES and "--help" not in sys.argv:
        refuse_other_schema()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
