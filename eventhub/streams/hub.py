"""What concerns the hub as a whole: its last start, and what its data takes (EMC-26)."""

from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from eventhub.access.actor import Actor
from eventhub.access.system import announce_all, raw_connection
from eventhub.errors import NotFound
from eventhub.eventlog import boot, storage, streams
from eventhub.eventlog.boot import Boot
from eventhub.eventlog.storage import DiskReport, Storage
from eventhub.eventlog.streams import Archived, StreamPolicy
from eventhub.eventlog.system import Announcement


class Report(NamedTuple):
    """What the data takes, with the policy of each stream that is shown and what it has dropped:
    segments by why they left.
    """

    storage: Storage
    disk: DiskReport | None
    policies: dict[int, StreamPolicy]
    left: dict[int, dict[str, int]]
    archived: Archived | None  # None: this hub has no archive
    hub_wide: bool  # an operator may know what all zones take together

    @property
    def state(self) -> str:
        return self.storage.state(self.disk.state if self.disk else "ok")


def find_boot() -> Boot:
    found = boot.last_boot(raw_connection())
    if found is None:
        raise NotFound("No start of this hub was told; `manage.py boot` tells one.")
    return found


def report(*, actor: Actor) -> Report:
    """For who manages the zone; an operator sees the streams of the zone that is asked for, and
    what the hub takes as a whole.
    """
    actor.require_zone_manager()
    connection = raw_connection()
    env = settings.ENV
    found = storage.read_storage(connection, zone_id=actor.zone_id, quota_bytes=env.quota_bytes)
    ids = [one.id for one in found.streams]
    return Report(
        found,
        storage.read_disk(env.store_dir),
        streams.policies(connection, ids),
        streams.left_segments(connection, ids),
        streams.archived(connection, actor.zone_id) if env.archive_url else None,
        hub_wide=actor.principal is None,
    )


def set_quota(*, actor: Actor, quota_bytes: int | None) -> None:
    """For all data of the hub; None: as EVENTHUB_QUOTA_BYTES says. The same again is told again."""
    actor.require_operator()
    with transaction.atomic():
        storage.set_quota(raw_connection(), quota_bytes)
        told = Announcement("storage.quota_set", {"quota_bytes": quota_bytes})
        announce_all(zone=None, announcements=[told])
