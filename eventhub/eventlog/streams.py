"""Streams as rows: make one, change its policy, look at it, its segments and one event. Sql module.

Zones are only numbers here. Nothing is announced and nothing is checked: who may, and what a name
may be, is said by the callers. The connection is synchronous; writes need the caller's transaction.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub import limits
from eventhub.errors import Gone, LimitReached, LogHole, UnknownEvent, UnknownStream
from eventhub.eventlog import queries
from eventhub.eventlog.log import ReadsArchive
from eventhub.eventlog.stored import ArchivedSegment, Stored

SQL = queries.load("streams.sql")
_SEQUENCE_MAX = (1 << 63) - 1

Connection = psycopg.Connection[Any]


Durability = Literal["sync", "async", "transient"]
Matching = Literal[
    "auto", "access", "index", "counting", "sig", "memo", "lattice", "compile", "scan"
]


class StreamPolicy(NamedTuple):
    """How a stream is kept; None: no such limit. The order is that of the columns in
    streams.sql.
    """

    durability: Durability = "sync"  # for good
    # a segment is sealed when it holds so many events, so many stored bytes, or is so old
    segment_events_max: int = limits.SEGMENT_EVENTS_DEFAULT
    segment_bytes_max: int = limits.SEGMENT_BYTES_DEFAULT
    segment_age_s_max: int | None = None
    keyed: bool = False  # the latest event of each key is kept
    restate: bool = False  # and appended anew at each start of the hub (EMC-18)
    # of what is sealed, the oldest segments beyond these are dropped
    retain_events: int | None = None
    retain_bytes: int | None = None
    retain_age_s: int | None = None
    on_lag: Literal["keep", "drop"] = "keep"  # what a durable cursor still needs
    hold: str | None = None  # why nothing may be dropped
    archive: bool = False  # sealed segments are archived, and leave the database only then
    undeclared: Literal["accept", "refuse"] = "accept"  # events of undeclared types
    matching: Matching = "auto"  # the strategy that finds the registrations of its events
    quench: bool = False  # an emitter may leave out events that nobody wants now


class StreamRow(NamedTuple):
    """A stream as it stands. `sequence` is the last given, 0 in a new stream; `first` the first
    that can still be read. `boot_*`: the last event before the hub's last start, None if it was
    made since. Where a transient stream stands is not in the database: None here.
    """

    id: int
    zone_id: int | None  # None: the hub-wide `system`
    name: str
    policy: StreamPolicy
    created_at_us: int
    boot_segment: str | None
    boot_sequence: int | None
    segment: str | None  # UUID of the segment being written (EMC-14)
    segment_first: int | None
    sequence: int | None
    first: int | None


class SegmentRow(NamedTuple):
    """A segment as it stands; `last` is `first` - 1 while it is empty."""

    id: int
    uuid: str
    first: int
    last: int
    open: bool
    tier: str
    bytes: int | None  # None: not told
    opened_at_us: int
    sealed_at_us: int | None
    archived: bool  # complete in the archive
    removed_at_us: int | None  # when it ceased to be live, and why
    removal_reason: str | None


class Archived(NamedTuple):
    segments: int
    bytes: int  # stored bytes


def create_stream(
    connection: Connection, zone_id: int, name: str, policy: StreamPolicy
) -> StreamRow | None:
    """A new stream with an empty open segment, or None if the zone has one of that name.

    Locks the head of `system` to the end of the transaction, so announce the stream and commit.
    """
    lock_system(connection)
    [count] = _one(connection, "count_streams", (zone_id,)) or (0,)
    if count >= limits.STREAMS_PER_ZONE_MAX:
        raise LimitReached(limit=limits.STREAMS_PER_ZONE_MAX)
    if _one(connection, "insert_stream", (zone_id, name, *policy)) is None:
        return None
    return get_stream(connection, zone_id, name)


def lock_system(connection: Connection) -> None:
    """Hold the head of `system` to the end of the transaction, so that no stream is made or changed
    meanwhile.
    """
    connection.execute(SQL["lock_system"])


def update_policy(connection: Connection, stream_id: int, policy: StreamPolicy) -> None:
    """Change the policy, all but its durability. Call `lock_system` before."""
    connection.execute(SQL["update_policy"], (*policy[1:], stream_id))


def find_stream(connection: Connection, zone_id: int, name: str) -> StreamRow | None:
    """The zone's stream of that name; `system` is in every zone."""
    row = _one(connection, "find_stream", (zone_id, name))
    return None if row is None else _stream(row)


def get_stream(connection: Connection, zone_id: int, name: str) -> StreamRow:
    """Like `find_stream`; UnknownStream if there is none."""
    found = find_stream(connection, zone_id, name)
    if found is None:
        raise UnknownStream(stream=name)
    return found


def list_streams(connection: Connection, zone_id: int, after: str, count: int) -> list[StreamRow]:
    """At most `count` streams by name, from the one after `after` on."""
    rows = connection.execute(SQL["list_streams"], (zone_id, after, count)).fetchall()
    return [_stream(row) for row in rows]


def list_segments(
    connection: Connection, stream_id: int, after: tuple[int, int], count: int
) -> list[SegmentRow]:
    """At most `count` segments in the stream's order, after the one of (first, id)."""
    rows = connection.execute(SQL["list_segments"], (stream_id, *after, count)).fetchall()
    return [SegmentRow(*row) for row in rows]


def policies(connection: Connection, ids: Sequence[int]) -> dict[int, StreamPolicy]:
    """The policies of streams, by id."""
    rows = connection.execute(SQL["policies"], (list(ids),)).fetchall()
    return {id: StreamPolicy(*policy) for id, *policy in rows}


def left_segments(connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """How many segments of streams are no longer live, by id and by why they left."""
    found: dict[int, dict[str, int]] = {}
    for id, why, count in connection.execute(SQL["left_segments"], (list(ids),)).fetchall():
        found.setdefault(id, {})[why] = count
    return found


def archived(connection: Connection, zone_id: int) -> Archived:
    """What of a zone's streams is complete in the archive."""
    return Archived(*(_one(connection, "archived", (zone_id,)) or (0, 0)))


def current_segment(connection: Connection, stream_id: int) -> SegmentRow:
    """The segment being written (EMC-14)."""
    row = _one(connection, "current_segment", (stream_id,))
    if row is None:
        raise UnknownStream
    return SegmentRow(*row)


def read_event(
    connection: Connection, stream: StreamRow, sequence: int, archive: ReadsArchive | None = None
) -> Stored:
    """One event, from the archive if it is there alone. UnknownEvent if the number is not given
    yet, Gone if it is no longer held. Raises ArchiveDamaged, ArchiveUnavailable.
    """
    found = _one(connection, "segment_of_event", (stream.id, min(sequence, _SEQUENCE_MAX)))
    if found is None or sequence > (stream.sequence or 0):
        raise UnknownEvent(stream=stream.name)
    segment_id, uuid, partition_id, tier, *_ = found
    row = None
    if tier == "live":
        row = _one(connection, "event_at", (partition_id, segment_id, sequence))
        found = _one(connection, "segment_of_event", (stream.id, sequence)) or found
        if row is None and found[3] == "live":  # moved to another group meanwhile
            row = _one(connection, "event_at", (found[2], segment_id, sequence))
    if row is not None:
        appended_at_us, mask, payload = row
        return Stored(uuid, sequence, mask % (1 << 64), appended_at_us, bytes(payload))
    _, _, _, tier, path, first, last = found
    if tier == "archived" and archive is not None:
        [stored] = archive.read(ArchivedSegment(uuid, path, first, last), sequence - 1, 1, 1)
        return stored
    if tier != "live":  # dropped before the read or during it
        raise _gone(connection, stream)
    raise LogHole(stream=stream.name, sequence=sequence)


def _gone(connection: Connection, stream: StreamRow) -> Gone:
    """What can be read first, and the cursor from which it follows."""
    first = stream.first or 1
    [_, uuid, *_] = _one(connection, "segment_of_event", (stream.id, first)) or (0, "")
    return Gone(
        first_available={"segment": uuid, "sequence": first},
        resume={"segment": uuid, "sequence": first - 1},
    )


def _one(connection: Connection, name: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = connection.execute(SQL[name], values).fetchone()
    return row


def _stream(row: tuple[Any, ...]) -> StreamRow:
    stream_id, zone_id, name, *rest = row
    count = len(StreamPolicy._fields)
    return StreamRow(stream_id, zone_id, name, StreamPolicy(*rest[:count]), *rest[count:])
