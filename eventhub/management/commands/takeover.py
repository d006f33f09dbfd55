"""`manage.py takeover`: make the database of a hub of before 0.1 one of this version."""

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.management.commands import migrate
from django.db import DatabaseError, connection, transaction

from eventhub import schema, takeover
from eventhub.env import move_file_into_environment, read_env
from eventhub.up.datafolder import FolderUnusable
from eventhub.up.embedded import embedded
from eventhub.up.identity import NoIdentity
from eventhub.up.supervisor import HubFailed

_ALONE = (
    "SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = 0;"
    " SET LOCAL idle_in_transaction_session_timeout = 0"
)


class Command(BaseCommand):
    help = (
        "Take over the database of a hub of before 0.1, while the hub is stopped: every row is"
        " kept, and all of it is changed or nothing. Without DATABASE_URL it is the embedded"
        " database of a data folder. It needs as much free disk space as the database takes."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, help="the data folder; default EVENTHUB_DATA, var")

    def handle(self, *args: Any, **options: Any) -> None:
        move_file_into_environment()
        env = read_env()
        if env.database_url:
            self._take_over()
            return
        try:
            with embedded(options["data"] or Path(env.data), lasting=True) as given:
                again = subprocess.run(  # noqa: S603 - this program, for the database that it has now
                    [sys.executable, sys.argv[0], "takeover"],
                    env={**os.environ, **given},
                    check=False,
                )
        except (FolderUnusable, HubFailed, NoIdentity) as error:
            raise CommandError(str(error)) from error
        if again.returncode:
            sys.exit(again.returncode)

    def _take_over(self) -> None:
        ours = schema.migrations()
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(_ALONE)
                found = schema.read(cursor, ours)
                if not found.applied & schema.BEFORE_0_1:
                    raise CommandError("This is no database of before 0.1. Nothing was changed.")
                takeover.require_unused(cursor)
                takeover.require_only_hub(cursor)
                grantees = takeover.grantees(cursor)
                takeover.set_aside(cursor, sorted({each.app for each in ours}))
                schema.keep(cursor, schema.Found(frozenset(), {}), ours)
                call_command(migrate.Command(), verbosity=0)
                takeover.move(cursor, self._tell)
        except takeover.Refused as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            told = str(error).strip().partition("\n")[0]
            raise CommandError(
                f"It could not be taken over ({told}). Nothing was changed. Stop whatever uses the"
                " database, and run the last version before 0.1 on it once, if it is an older one."
            ) from error
        if grantees:
            self.stdout.write(
                f"What was granted on the old tables to {', '.join(grantees)} went with them:"
                " grant it again on the new ones, whose names are other ones in part."
            )
        self.stdout.write("The database is taken over; start the hub.")

    def _tell(self, table: takeover.Moved) -> None:
        self.stdout.write(f"{table.table}: {table.rows:,} rows")
        self.stdout.flush()
