"""`manage.py takeover`: make the database of a hub of before 0.1 one of this version.
Django module.
"""

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
from psycopg import errors

from eventhub import takeover
from eventhub.base.env import move_file_into_environment, read_env
from eventhub.postgresql import schema
from eventhub.supervisor.datafolder import Folder, FolderUnusable, usable
from eventhub.supervisor.embedded import embedded
from eventhub.supervisor.supervisor import HubFailed
from eventhub.supervisor.users import NoIdentity

_PATIENT = (
    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;"
    " SET LOCAL idle_in_transaction_session_timeout = 0"
)
# what to do about what PostgreSQL refused, if that is known
_ADVICE = (
    ((errors.UndefinedColumn, errors.UndefinedTable, errors.NotNullViolation),
     "The database is of an older version: run the last version before 0.1 on it once."),
    ((errors.LockNotAvailable,), "Stop whatever uses the database."),
    ((errors.DiskFull,), "Make room: it needs as much free disk space as the database takes."),
    ((errors.DependentObjectsStillExist,), "Drop that, and make it again afterwards."),
)  # fmt: skip


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
        if env.database_url and options["data"]:
            raise CommandError(
                "--data and DATABASE_URL name two databases. Nothing was changed. Give one: unset"
                " DATABASE_URL for the embedded database of a data folder, or leave --data out."
            )
        if env.database_url:
            self._take_over()
            return
        data = options["data"] or Path(env.data)
        try:
            _require_made(Folder(data))
            with embedded(data, lasting=True) as given:
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
                self._be_alone(cursor)
                _require_before_0_1(schema.read(cursor, ours))
                takeover.require_unused(cursor)
                takeover.require_only_hub(cursor)
                grantees = takeover.grantees(cursor)
                takeover.set_aside(cursor, sorted({each.app for each in ours}))
                schema.record(cursor, schema.SchemaState(frozenset(), {}), ours)
                call_command(migrate.Command(), verbosity=0)
                takeover.move(cursor, self._tell)
        except takeover.Refused as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(_message(error)) from error
        if grantees:
            self.stdout.write(
                f"What was granted on the old tables to {', '.join(grantees)} went with them:"
                " grant it again on the new ones, whose names are other ones in part."
            )
        self.stdout.write("The database is taken over; start the hub.")

    def _be_alone(self, cursor: schema.SqlCursor) -> None:
        """Wait until nobody else takes over or migrates; locks on tables are not waited for."""
        cursor.execute(_PATIENT)
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [schema.LOCK])
        if not cursor.fetchall()[0][0]:
            self.stdout.write("Another process takes over or migrates: waiting for its end.")
            self.stdout.flush()
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [schema.LOCK])
        cursor.execute("SET LOCAL lock_timeout = '5s'")

    def _tell(self, table: takeover.Moved) -> None:
        self.stdout.write(f"{table.table}: {table.rows:,} rows")
        self.stdout.flush()


def _require_made(folder: Folder) -> None:
    """Raise FolderUnusable for a folder without a database, where one would be made."""
    version = folder.postgres / "PG_VERSION"
    with usable(folder.root):
        if not version.exists():
            raise FolderUnusable(
                f"{folder.root} is no data folder with a database: {version} is missing. Nothing"
                " was changed. Name the hub's data folder with --data, or set DATABASE_URL."
            )


def _require_before_0_1(found: schema.SchemaState) -> None:
    """Raise Refused for every other database."""
    if found.applied & schema.BEFORE_0_1:
        return
    if found.applied:
        raise takeover.Refused(
            "This database is of 0.1 or newer already: nothing is to be taken over, and nothing was"
            " changed. Start the hub."
        )
    raise takeover.Refused("This is no database of before 0.1. Nothing was changed.")


def _message(error: DatabaseError) -> str:
    """What PostgreSQL said, and what to do about it."""
    said = str(error).strip().partition("\n")[0]
    if isinstance(error.__cause__, errors.DependentObjectsStillExist):
        said = f"{said}: {error.__cause__.diag.message_detail}"
    advice = [then for kinds, then in _ADVICE if isinstance(error.__cause__, kinds)]
    return " ".join([f"It could not be taken over ({said}). Nothing was changed.", *advice])
