"""`manage.py boot`: announce the start of the hub, before the first web process. Django module."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import connection as database
from django.db.migrations.recorder import MigrationRecorder

from eventhub.api.announcements import raw_connection
from eventhub.base.env import read_env, refuse
from eventhub.eventlog import boot
from eventhub.eventlog.continuity import prove_continuity
from eventhub.management.command import HubCommand, require_answer
from eventhub.monitoring.shared_settings import OtherSettings, require_shared
from eventhub.preflight import require_schema


class Command(HubCommand):
    help = "Append `hub.started` to the stream `system`, and announce the state of streams again."
    acts_for_hub = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--migrate",
            action="store_true",
            help="migrate the database first, as `manage.py migrate` does",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        env = read_env()
        require_answer()
        if options["migrate"] and not _is_migrated():
            call_command("migrate", interactive=False, verbosity=options["verbosity"])
        else:
            require_schema(env.database_url)
        connection = raw_connection()
        try:
            require_shared(connection, env)
        except OtherSettings as error:
            refuse(str(error))
        asyncio.run(prove_continuity(env.database_direct_url, env.mark_url))
        position = boot.mark_start(connection)
        keys = sum(boot.restate(connection, one) for one in boot.restated_streams(connection))
        self.stdout.write(f"started at {position.sequence} of system; {keys} keys announced again")


def _is_migrated() -> bool:
    """Return whether all migrations are applied, by their names: to load them takes 0.3 s."""
    ours = {
        (app.label, file.stem)
        for app in apps.get_app_configs()
        for file in Path(app.path, "migrations").glob("[0-9]*.py")
    }
    return ours <= MigrationRecorder(database).applied_migrations().keys()
