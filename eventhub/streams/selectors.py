"""Reads of streams, segments and events, as far as the actor may see them, and of what concerns the
hub as a whole: its last start, and what its data takes (EMC-26). Django module.
"""

from typing import Any

from django.conf import settings
from django.db.models import BigIntegerField, Count, F, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from eventhub.access.actor import Actor
from eventhub.access.audience import is_shown
from eventhub.access.grants import SYSTEM
from eventhub.api.announcements import raw_connection
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

_OF_HUB = ("used_bytes", "held", "quota_bytes", "disk", "groups")


def find_stream(*, actor: Actor, name: str) -> StreamRow:
    """The stream, if the actor has any grant on it; Forbidden before UnknownStream, so that names
    do not leak.
    """
    if not _sees(actor, name):
        raise Forbidden(f"No grant of this key names the stream {name}; ask an operator for one.")
    [found] = with_places([streams.get_stream(raw_connection(), actor.zone_id, name)])
    return found


def list_streams(after: tuple[Any, ...] | None, count: int, *, actor: Actor) -> list[StreamRow]:
    """At most `count` streams that the actor may see, by name."""
    [name] = after or ("",)
    seen: list[StreamRow] = []
    most = limits.PAGE_ITEMS_MAX + 1
    while len(seen) < count:
        rows = streams.list_streams(raw_connection(), actor.zone_id, name, most)
        seen += [row for row in rows if _sees(actor, row.name)]
        if len(rows) < most:
            break
        name = rows[-1].name
    return with_places(seen[:count])


def segments_of(*, actor: Actor, name: str) -> QuerySet[Segment]:
    """The segments of the stream, with where each ends, by now if it is open (`ends`), and its
    bytes (`shown_bytes`): not for whom there may be hidden events, as who looks before and after
    would know their sizes.
    """
    stream = find_stream(actor=actor, name=name)
    knows_all = actor.principal is None if name == SYSTEM else actor.manages_zone
    size = (
        Coalesce("bytes", "stream__streamhead__bytes")
        if knows_all
        else Value(None, BigIntegerField())
    )
    ends = Coalesce("last", "stream__streamhead__sequence")
    return Segment.objects.filter(stream=stream.id).annotate(ends=ends, shown_bytes=size)


def current_segment(*, actor: Actor, name: str) -> Segment:
    """The segment being written (EMC-14)."""
    segments = segments_of(actor=actor, name=name).filter(pk=F("stream__streamhead__segment_id"))
    found: Segment | None = segments.first()
    if found is None:
        raise NotFound("A transient stream has one segment; GET /v1/streams/{stream} shows it.")
    return found


def find_stored(*, actor: Actor, name: str, sequence: int) -> tuple[StreamRow, StoredEvent]:
    """One event as it lies in its stream. Of `system` a manager sees those of the own zone; the
    others are not there.
    """
    actor.require_listen(name)
    stream = streams.get_stream(raw_connection(), actor.zone_id, name)
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


def place_of(stream: StreamRow) -> Cursor | None:
    """Where the stream stands; None while the memory of a transient one is away."""
    if stream.segment is None or stream.sequence is None:
        return None
    return Cursor(stream.segment, stream.sequence)


def with_places(rows: list[StreamRow]) -> list[StreamRow]:
    """The streams, with where the transient ones stand, unless their memory is away."""
    ids = [row.id for row in rows if row.policy.durability == "transient"]
    if not ids:
        return rows
    try:
        found = positions(read_env().redis_url, ids)
    except TransientUnavailable:
        return rows
    places: dict[int, dict[str, Any]] = {
        id: {"segment": segment, "segment_first": first, "sequence": last, "first": first}
        for id, (segment, first, last) in found.items()
    }
    return [row._replace(**places.get(row.id, {})) for row in rows]


def _sees(actor: Actor, name: str) -> bool:
    return actor.may_listen(name) if name == SYSTEM else actor.sees(name)


def find_boot() -> dict[str, Any]:
    """The hub's last start, and the place in `system` from which a listen begins with it."""
    found = boot.last_boot(raw_connection())
    if found is None:
        raise NotFound("No start of this hub was told; `manage.py boot` tells one.")
    return {"stream": SYSTEM, **found.cursor.json(), "started_at": found.started_at_us}


def report_storage(*, actor: Actor) -> dict[str, Any]:
    """What the data takes: the streams of the actor's zone. What is of the whole hub is None for
    all but operators, but `state`.
    """
    env = settings.ENV
    found = storage.read_storage(
        raw_connection(), zone_id=actor.zone_id, quota_bytes=env.quota_bytes
    )
    disk = storage.read_disk(env.store_dir)
    whole = {**found._asdict(), "used_bytes": found.used_bytes, "disk": disk}
    return {
        **{name: whole[name] if actor.principal is None else None for name in _OF_HUB},
        "state": found.state(disk.state if disk else "ok"),
        "streams": _streams(found.streams),
        "archive": _archived(actor.zone_id) if env.archive_url else None,
    }


def _streams(found: list[StreamStorage]) -> list[dict[str, Any]]:
    """What each holds, its policy, and what it has dropped: segments by why they left."""
    connection, ids = raw_connection(), [one.id for one in found]
    policies, left = streams.policies(connection, ids), streams.removed_segments(connection, ids)
    return [
        {
            **one._asdict(),
            "segments": one,
            "left": left.get(one.id, {}),
            "policy": policies[one.id],
        }
        for one in found
    ]


def _archived(zone_id: int) -> dict[str, int]:
    """What of a zone's streams is complete in the archive."""
    segments = Segment.objects.filter(archive_path__isnull=False, stream__zone=zone_id)
    found: dict[str, int] = segments.aggregate(
        segments=Count("pk"), bytes=Coalesce(Sum("bytes"), 0)
    )
    return found
