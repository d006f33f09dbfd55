"""`manage.py restored`: finish a restore before the hub starts. Django module."""

import asyncio
from typing import Any

from django.db import transaction

from eventhub.api.announcements import append_events, raw_connection
from eventhub.base.env import read_env
from eventhub.eventlog import streams
from eventhub.eventlog.continuity import ROLLED_ALL, prove_continuity, roll_all
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.management.command import HubCommand
from eventhub.preflight import require_schema


class Command(HubCommand):
    help = (
        "Give every stream a new segment, because sequences after the backup will be assigned"
        " again; listeners ahead of the backup get the error segment_mismatch."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        env = read_env()
        require_schema(env.database_direct_url)
        proof = asyncio.run(prove_continuity(env.database_direct_url, env.mark_url))
        count = proof.streams if proof.reason in ROLLED_ALL else _roll_all()
        self.stdout.write(f"{count} streams have new segments")


def _roll_all() -> int:
    connection = raw_connection()
    with transaction.atomic():
        streams.lock_system(connection)
        count = roll_all(connection)
        details = {"reason": "restored", "streams": count}
        append_events(drafts_of(None, [Announcement("log.recovered", details)]))
    return count
