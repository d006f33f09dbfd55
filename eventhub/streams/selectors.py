"""Reads of streams, segments and events, as far as the actor may see them."""

import hashlib
from typing import Any, NamedTuple

import orjson
from django.db.models import BigIntegerField, F, QuerySet, Value
from django.db.models.functions import Coalesce

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.audience import is_shown
from eventhub.access.grants import SYSTEM
from eventhub.access.system import raw_connection
from eventhub.env import read_env
from eventhub.errors import Forbidden, NotFound, UnknownEvent
from eventhub.event.audience import shown_to
from eventhub.event.json_codec import time_text
from eventhub.eventlog import streams
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.errors import TransientUnavailable
from eventhub.eventlog.models import Segment
from eventhub.eventlog.stored import Cursor, Stored
from eventhub.eventlog.streams import StreamRow
from eventhub.eventlog.transient import positions
from eventhub.streams.forms import Placed


class ShownEvent(NamedTuple):
    """An event as JSON and with its place, the sha256 of its stored bytes, and where its stream
    stands.
    """

    json: dict[str, Any]
    placed: Placed
    digest: str
    place: Cursor | None


def find_stream(*, actor: Actor, name: str) -> StreamRow:
    """The stream, if the actor has any grant on it; Forbidden before UnknownStream, so that names
    do not leak.
    """
    if not _sees(actor, name):
        raise Forbidden(f"No grant of this key names the stream {name}; ask an operator for one.")
    [found] = with_places([streams.get_stream(raw_connection(), actor.zone_id, name)])
    return found


def list_streams(*, actor: Actor, after: str, count: int) -> list[StreamRow]:
    """At most `count` streams that the actor may see, by name."""
    seen: list[StreamRow] = []
    while len(seen) < count:
        rows = streams.list_streams(
            raw_connection(), actor.zone_id, after, limits.PAGE_ITEMS_MAX + 1
        )
        seen += [row for row in rows if _sees(actor, row.name)]
        if len(rows) <= limits.PAGE_ITEMS_MAX:
            break
        after = rows[-1].name
    return with_places(seen[:count])


def segments_of(*, actor: Actor, name: str) -> QuerySet[Segment]:
    """The segments of the stream, with where each ends, by now if it is open (`ends`), and its
    bytes (`shown_bytes`): not for whom there may be hidden events, as who looks before and after
    would know their sizes.
    """
    stream = find_stream(actor=actor, name=name)
    knows_all = actor.principal is None if name == SYSTEM else actor.manages_zone
    size = Coalesce("bytes", "stream__head__bytes") if knows_all else Value(None, BigIntegerField())
    ends = Coalesce("last", "stream__head__sequence")
    return Segment.objects.filter(stream=stream.id).annotate(ends=ends, shown_bytes=size)


def current_segment(*, actor: Actor, name: str) -> Segment:
    """The segment being written (EMC-14)."""
    segments = segments_of(actor=actor, name=name).filter(pk=F("stream__head__segment_id"))
    found: Segment | None = segments.first()
    if found is None:
        raise NotFound("A transient stream has one segment; GET /v1/streams/{stream} shows it.")
    return found


def find_event(*, actor: Actor, name: str, sequence: int) -> ShownEvent:
    """One event. Of `system` a manager sees those of the own zone; the others are not there."""
    stream, stored = find_stored(actor=actor, name=name, sequence=sequence)
    digest = hashlib.sha256(stored.payload).hexdigest()
    placed = Placed(stored.event, actor.zone_id, name, f"{stored.segment}:{stored.sequence}")
    return ShownEvent(_event_json(name, stored), placed, digest, place_of(stream))


def find_stored(*, actor: Actor, name: str, sequence: int) -> tuple[StreamRow, Stored]:
    """The same as it lies in its stream."""
    actor.require_listen(name)
    stream = streams.get_stream(raw_connection(), actor.zone_id, name)
    if stream.policy.durability == "transient":
        raise UnknownEvent(
            "The events of a transient stream are in memory; GET …/events?from=oldest lists them.",
            stream=name,
        )
    archive = archive_of(read_env().archive_url)
    stored = streams.read_event(raw_connection(), stream, sequence, archive)
    if name == SYSTEM and actor.principal is not None and not shown_to(stored.event, actor.zone):
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
    return [_at(row, found[row.id]) if row.id in found else row for row in rows]


def _at(row: StreamRow, place: tuple[str, int, int]) -> StreamRow:
    segment, first, last = place
    return row._replace(segment=segment, segment_first=first, sequence=last, first=first)


def _sees(actor: Actor, name: str) -> bool:
    return actor.may_listen(name) if name == SYSTEM else actor.sees(name)


def _event_json(name: str, stored: Stored) -> dict[str, Any]:
    return {
        "stream": name,
        "segment": stored.segment,
        "sequence": stored.sequence,
        "appended_at": time_text(stored.appended_at_us),
        **orjson.loads(stored.json),
    }
