"""`manage.py boot`: announce the start of the hub, before the first web process. Django module."""

import asyncio
import os
from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from eventhub.api.announcements import raw_connection
from eventhub.base.env import read_env
from eventhub.base.errors import EventHubError
from eventhub.eventlog import boot
from eventhub.eventlog.continuity import prove_store
from eventhub.postgresql.schema import OtherSchema
from eventhub.preflight import require_schema
from eventhub.supervisor.command_env import (
    NoAnswer,
    NoDatabaseUrl,
    require_answer,
    require_database,
)


class Command(BaseCommand):
    help = "Append `hub.started` to the stream `system`, and announce the state of streams again."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own declaration

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--migrate",
            action="store_true",
            help="migrate the database first, as `manage.py migrate` does",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            require_database()
            require_answer()
            if options["migrate"]:
                call_command("migrate", interactive=False, verbosity=options["verbosity"])
            else:
                require_schema(read_env().database_url)
            env = read_env()
            asyncio.run(prove_store(env.database_direct_url, env.mark_url))
            connection = raw_connection()
            position = boot.mark_start(connection)
            keys = sum(boot.restate(connection, one) for one in boot.restated_streams(connection))
        except (NoDatabaseUrl, NoAnswer) as error:
            raise CommandError(str(error)) from error
        except OtherSchema as error:
            raise CommandError(str(error), returncode=os.EX_CONFIG) from error
        except EventHubError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"started at {position.sequence} of system; {keys} keys announced again")
