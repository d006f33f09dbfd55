"""Reads of streams, segments and events that the actor may see, and of the hub as a whole: its last
start and its storage (EMC-26). Django module.
"""

from typing import Any

from django.conf import settings
from django.db.models import BigIntegerField, Count, F, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from eventhub.access.grants import SYSTEM
from eventhub.access.principal import Actor, is_shown
from eventhub.api.announcements import raw_connection
from eventhub.api.replies import about
from eventhub.base import limits
from eventhub.base.env import read_env
from eventhub.base.errors import Forbidden, NotFound, UnknownEvent
from eventhub.event.audience import is_visible_in_zone
from eventhub.eventlog import boot, streams
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.errors import TransientUnavailable
from eventhub.eventlog.models import Segment
from eventhub.eventlog.retention import storage
from eventhub.eventlog.retention.storage import StreamStorage
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.eventlog.streams import StreamRow
from eventhub.eventlog.transient import positions

_HUB_FIELDS = ("used_bytes", "usage", "quota_bytes", "disk", "partitions")


def find_stream(*, actor: Actor, name: str) -> StreamRow:
    """Return the stream if the actor has any grant on it. Raises Forbidden before UnknownStream, so
    that names do not leak.
    """
    if not _sees(actor, name):
        raise Forbidden(f"No grant of this key names the stream {name}; ask an operator for one.")
    [found] = with_positions([streams.get_stream(raw_connection(), actor.zone_id, name)])
    return found


def list_streams(after: tuple[Any, ...] | None, count: int, *, actor: Actor) -> list[StreamRow]:
    """Return at most `count` streams that the actor may see, by name."""
    [name] = after or ("",)
    visible: list[StreamRow] = []
    most = limits.PAGE_ITEMS_MAX + 1
    while len(visible) < count:
        rows = streams.list_streams(raw_connection(), actor.zone_id, name, most)
        visible += [row for row in rows if _sees(actor, row.name)]
        if len(rows) < most:
            break
        name = rows[-1].name
    return with_positions(visible[:count])


def segments_of(*, actor: Actor, name: str) -> QuerySet[Segment]:
    """Select the segments of the stream with their last sequence (`ends`; of an open one, so far)
    and `visible_bytes`: None for an actor that may not see all events, because it could derive the
    sizes of the others.
    """
    stream = find_stream(actor=actor, name=name)
    sees_all = actor.principal is None if name == SYSTEM else actor.manages_zone
    size = (
        Coalesce("bytes", "stream__streamhead__bytes")
        if sees_all
        else Value(None, BigIntegerField())
    )
    ends = Coalesce("last", "stream__streamhead__sequence")
    return Segment.objects.filter(stream=stream.id).annotate(ends=ends, visible_bytes=size)


def current_segment(*, actor: Actor, name: str) -> Segment:
    """Return the open segment (EMC-14)."""
    segments = segments_of(actor=actor, name=name).filter(pk=F("stream__streamhead__segment_id"))
    found: Segment | None = segments.first()
    if found is None:
        raise NotFound("A transient stream has one segment; GET /v1/streams/{stream} shows it.")
    return found


def find_stored(*, actor: Actor, name: str, sequence: int | None) -> tuple[StreamRow, StoredEvent]:
    """Return an event as stored in its stream; `sequence` None: the caller's is no number. In
    `system`, a manager finds only events of its own zone.
    """
    actor.require_listen(name)
    stream = streams.get_stream(raw_connection(), actor.zone_id, name)
    about_stream(stream)
    if sequence is None:
        raise UnknownEvent("A sequence is a number from 1.", field="sequence")
    if stream.policy.durability == "transient":
        raise UnknownEvent(
            "The events of a transient stream are in memory; GET …/events?from=oldest lists them.",
            stream=name,
        )
    archive = archive_of(read_env().archive_url)
    stored = streams.read_event(raw_connection(), stream, sequence, archive)
    if (
        name == SYSTEM
        and actor.principal is not None
        and not is_visible_in_zone(stored.event, actor.zone)
    ):
        raise UnknownEvent(stream=name)
    if not is_shown(stored.event, actor.principal):
        raise UnknownEvent(stream=name)
    return stream, stored


def about_stream(stream: StreamRow) -> None:
    """Make the current reply one about the stream's events."""
    [positioned] = with_positions([stream])
    about(stream.id, position_of(positioned))


def position_of(stream: StreamRow) -> Cursor | None:
    """Return the position of the stream; None while a transient one's memory is unavailable."""
    if stream.segment is None or stream.sequence is None:
        return None
    return Cursor(stream.segment, stream.sequence)


def with_positions(rows: list[StreamRow]) -> list[StreamRow]:
    """Add the positions of transient streams, unless their memory is unavailable."""
    ids = [row.id for row in rows if row.policy.durability == "transient"]
    if not ids:
        return rows
    try:
        found = positions(raw_connection(), read_env().redis_url, ids)
    except TransientUnavailable:
        return rows
    fields: dict[int, dict[str, Any]] = {
        id: {"segment": segment, "segment_first": first, "sequence": last, "first": first}
        for id, (segment, first, last) in found.items()
    }
    return [row._replace(**fields.get(row.id, {})) for row in rows]


def _sees(actor: Actor, name: str) -> bool:
    return actor.may_listen(name) if name == SYSTEM else actor.sees(name)


def find_boot() -> dict[str, Any]:
    """Return the hub's last start, and the cursor in `system` before its event."""
    found = boot.last_boot(raw_connection())
    if found is None:
        raise NotFound("No start of this hub is recorded; `manage.py boot` records one.")
    return {"stream": SYSTEM, **found.cursor.json(), "started_at": found.started_at_us}


def report_storage(*, actor: Actor) -> dict[str, Any]:
    """Return the storage in use by the streams of the actor's zone. Figures of the whole hub, other
    than `state`, are None except for operators.
    """
    env = settings.ENV
    found = storage.read_storage(
        raw_connection(), zone_id=actor.zone_id, quota_bytes=env.quota_bytes
    )
    disk = storage.read_disk(env.store_dir)
    whole = {**found._asdict(), "used_bytes": found.used_bytes, "disk": disk}
    return {
        **{name: whole[name] if actor.principal is None else None for name in _HUB_FIELDS},
        "state": found.state(disk.state if disk else "ok"),
        "streams": _streams(found.streams),
        "archive": _archived(actor.zone_id) if env.archive_url else None,
    }


def _streams(found: list[StreamStorage]) -> list[dict[str, Any]]:
    """Return the storage and policy of each stream, and its removed segments by reason."""
    connection, ids = raw_connection(), [one.id for one in found]
    policies, removed = streams.policies(connection, ids), streams.removed_segments(connection, ids)
    return [
        {
            **one._asdict(),
            "segments": one,
            "removed": removed.get(one.id, {}),
            "policy": policies[one.id],
        }
        for one in found
    ]


def _archived(zone_id: int) -> dict[str, int]:
    """Count the segments of a zone's streams that are complete in the archive."""
    segments = Segment.objects.filter(archive_path__isnull=False, stream__zone=zone_id)
    found: dict[str, int] = segments.aggregate(
        segments=Count("pk"), bytes=Coalesce(Sum("bytes"), 0)
    )
    return found
