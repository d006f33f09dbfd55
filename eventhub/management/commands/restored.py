"""`manage.py restored`: finish a restore before the hub starts. Django module."""

import asyncio
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from eventhub.api.announcements import append_events, raw_connection
from eventhub.base.env import read_env
from eventhub.base.errors import EventHubError
from eventhub.eventlog import streams
from eventhub.eventlog.continuity import ROLLED_ALL, prove_store, roll_all
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql.schema import OtherSchema
from eventhub.preflight import require_schema
from eventhub.supervisor.command_env import NoDatabaseUrl, require_database


class Command(BaseCommand):
    help = (
        "Give every stream a new segment, because sequences after the backup will be assigned"
        " again; listeners ahead of the backup get the error segment_mismatch."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            require_database()
            env = read_env()
            require_schema(env.database_direct_url)
            proof = asyncio.run(prove_store(env.database_direct_url, env.mark_url))
            count = proof.streams if proof.reason in ROLLED_ALL else _roll_all()
        except NoDatabaseUrl as error:
            raise CommandError(str(error)) from error
        except OtherSchema as error:
            raise CommandError(str(error), returncode=os.EX_CONFIG) from error
        except EventHubError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{count} streams have new segments")


def _roll_all() -> int:
    connection = raw_connection()
    with transaction.atomic():
        streams.lock_system(connection)
        count = roll_all(connection)
        details = {"reason": "restored", "streams": count}
        append_events(drafts_of(None, [Announcement("log.recovered", details)]))
    return count
