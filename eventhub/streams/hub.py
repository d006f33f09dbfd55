"""What concerns the hub as a whole: its last start, and what its data takes (EMC-26)."""

from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from eventhub.access.actor import Actor
from eventhub.access.grants import SYSTEM
from eventhub.access.system import announce_all, raw_connection
from eventhub.errors import NotFound
from eventhub.eventlog import boot, storage, streams
from eventhub.eventlog.quota import Held
from eventhub.eventlog.storage import DiskReport, StreamStorage
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import Archived, StreamPolicy
from eventhub.eventlog.system import Announcement


class StreamReport(NamedTuple):
    """What a stream holds, its policy, and what it has dropped: segments by why they left."""

    storage: StreamStorage
    policy: StreamPolicy
    left: dict[str, int]


class Report(NamedTuple):
    """What the data takes. What is of the whole hub is None for all but operators, but `state`."""

    state: str
    streams: list[StreamReport]
    archive: Archived | None  # None: this hub has no archive
    used_bytes: int | None = None
    held: Held | None = None
    quota_bytes: int | None = None
    disk: DiskReport | None = None
    groups: int | None = None


class Start(NamedTuple):
    """The hub's last start, and the place in `system` from which a listen begins with it."""

    stream: str
    cursor: Cursor
    started_at_us: int


def find_boot() -> Start:
    found = boot.last_boot(raw_connection())
    if found is None:
        raise NotFound("No start of this hub was told; `manage.py boot` tells one.")
    return Start(SYSTEM, *found)


def report(*, actor: Actor) -> Report:
    """The streams of the actor's zone; an operator sees what the hub takes as a whole, too."""
    connection = raw_connection()
    env = settings.ENV
    found = storage.read_storage(connection, zone_id=actor.zone_id, quota_bytes=env.quota_bytes)
    disk = storage.read_disk(env.store_dir)
    ids = [one.id for one in found.streams]
    policies, left = streams.policies(connection, ids), streams.left_segments(connection, ids)
    seen = Report(
        found.state(disk.state if disk else "ok"),
        [StreamReport(one, policies[one.id], left.get(one.id, {})) for one in found.streams],
        streams.archived(connection, actor.zone_id) if env.archive_url else None,
    )
    if actor.principal is not None:
        return seen
    return seen._replace(
        used_bytes=found.used_bytes,
        held=found.held,
        quota_bytes=found.quota_bytes,
        disk=disk,
        groups=found.groups,
    )


def set_quota(*, quota_bytes: int | None) -> None:
    """For all data of the hub; None: as EVENTHUB_QUOTA_BYTES says. The same again is told again."""
    with transaction.atomic():
        storage.set_quota(raw_connection(), quota_bytes)
        told = Announcement("storage.quota_set", {"quota_bytes": quota_bytes})
        announce_all(zone=None, announcements=[told])
