"""`manage.py takeover`: convert the database of a hub from before 0.1 to this version.
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

import eventhub.management.commands.migrate  # noqa: F401 - Django's command gets its executor
from eventhub.base.env import move_file_into_environment, read_env
from eventhub.management import takeover
from eventhub.postgresql import schema
from eventhub.supervisor.datafolder import Folder, FolderUnusable, usable
from eventhub.supervisor.embedded import embedded
from eventhub.supervisor.supervisor import HubFailed
from eventhub.supervisor.users import NoIdentity

_NO_TIMEOUTS = (
    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;"
    " SET LOCAL idle_in_transaction_session_timeout = 0"
)
# advice for known errors of PostgreSQL
_ADVICE = (
    ((errors.UndefinedColumn, errors.UndefinedTable, errors.NotNullViolation),
     "The database is of an older version: run the last version before 0.1 on it once."),
    ((errors.LockNotAvailable,), "Stop the programs that use the database."),
    ((errors.DiskFull,), "Free disk space: it needs as much as the database takes."),
    ((errors.DependentObjectsStillExist,), "Drop that object, and create it again afterwards."),
)  # fmt: skip


class Command(BaseCommand):
    help = (
        "Convert the database of a hub from before 0.1, while the hub is stopped: every row is"
        " retained, in one transaction. Without DATABASE_URL it is the embedded database of a data"
        " folder. It needs as much free disk space as the database takes."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, help="the data folder; default EVENTHUB_DATA, var")

    def handle(self, *args: Any, **options: Any) -> None:
        move_file_into_environment()
        env = read_env()
        if env.database_url and options["data"]:
            raise CommandError(
                "--data and DATABASE_URL name two databases. Nothing was changed. Use one: unset"
                " DATABASE_URL for the embedded database of a data folder, or leave out --data."
            )
        if env.database_url:
            self._take_over()
            return
        data = options["data"] or Path(env.data)
        try:
            _require_database(Folder(data))
            with embedded(data, lasting=True) as given:
                again = subprocess.run(  # noqa: S603 - this program, with its own database
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
                self._lock(cursor)
                _require_before_0_1(schema.read(cursor, ours))
                takeover.require_unused(cursor)
                takeover.require_only_hub(cursor)
                grantees = takeover.grantees(cursor)
                takeover.set_aside(cursor, sorted({each.app for each in ours}))
                schema.record(cursor, schema.SchemaState(frozenset(), {}), ours)
                call_command(migrate.Command(), verbosity=0)
                takeover.move(cursor, self._report)
        except takeover.Refused as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(_message(error)) from error
        if grantees:
            self.stdout.write(
                f"The rights of {', '.join(grantees)} on the old tables were dropped with them:"
                " grant them again on the new tables, some of which have new names."
            )
        self.stdout.write("The database is taken over; start the hub.")

    def _lock(self, cursor: schema.SqlCursor) -> None:
        """Wait until no other process takes over or migrates; table locks have a timeout."""
        cursor.execute(_NO_TIMEOUTS)
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [schema.LOCK])
        if not cursor.fetchall()[0][0]:
            self.stdout.write("Another process takes over or migrates: waiting for it to end.")
            self.stdout.flush()
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [schema.LOCK])
        cursor.execute("SET LOCAL lock_timeout = '5s'")

    def _report(self, table: takeover.Moved) -> None:
        self.stdout.write(f"{table.table}: {table.rows:,} rows")
        self.stdout.flush()


def _require_database(folder: Folder) -> None:
    """Raise FolderUnusable for a folder without a database, where one would be created."""
    version = folder.postgres / "PG_VERSION"
    with usable(folder.root):
        if not version.exists():
            raise FolderUnusable(
                f"{folder.root} is not a data folder with a database: {version} is missing. Nothing"
                " was changed. Name the hub's data folder with --data, or set DATABASE_URL."
            )


def _require_before_0_1(found: schema.SchemaState) -> None:
    """Raise Refused for any database that is not from before 0.1."""
    if found.applied & schema.BEFORE_0_1:
        return
    if found.applied:
        raise takeover.Refused(
            "This database is already of 0.1 or newer. Nothing was changed. Start the hub."
        )
    raise takeover.Refused("This is not a database from before 0.1. Nothing was changed.")


def _message(error: DatabaseError) -> str:
    """Return PostgreSQL's message with advice."""
    reason = str(error).strip().partition("\n")[0]
    if isinstance(error.__cause__, errors.DependentObjectsStillExist):
        reason = f"{reason}: {error.__cause__.diag.message_detail}"
    advice = [text for kinds, text in _ADVICE if isinstance(error.__cause__, kinds)]
    return " ".join(
        [f"The database could not be taken over ({reason}). Nothing was changed.", *advice]
    )
