"""Streams as rows: create one, change its policy, read it and single events. SQL module.

Zones are numbers here. Callers check permissions and names, and announce changes. The connection is
synchronous; writes need the caller's transaction.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.errors import Gone, LimitReached, LogHole, UnknownEvent, UnknownStream
from eventhub.eventlog.stored import ArchivedSegment, Cursor, ReadsArchive, StoredEvent
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars

_SEQUENCE_MAX = (1 << 63) - 1

Connection = psycopg.Connection[Any]


Durability = Literal["sync", "async", "transient"]
Matching = Literal[
    "auto", "access", "index", "counting", "sig", "memo", "lattice", "compile", "scan"
]


class StreamPolicy(NamedTuple):
    """The policy of a stream; None: no such limit. The fields are the columns of the same names."""

    durability: Durability = "sync"  # never changed
    # a segment is sealed when it has so many events, so many stored bytes, or is so old
    segment_events_max: int = limits.SEGMENT_EVENTS_DEFAULT
    segment_bytes_max: int = limits.SEGMENT_BYTES_DEFAULT
    segment_age_s_max: int | None = None
    keyed: bool = False  # the latest event of each key is retained
    restate: bool = False  # and appended again at each start of the hub (EMC-18)
    # the oldest sealed segments beyond these are dropped
    retain_events: int | None = None
    retain_bytes: int | None = None
    retain_age_s: int | None = None
    on_lag: Literal["keep", "drop"] = "keep"  # segments that a durable cursor still needs
    hold: str | None = None  # the reason of a legal hold: nothing is dropped
    archive: bool = False  # sealed segments are archived before they leave the database
    undeclared: Literal["accept", "refuse"] = "accept"  # events of undeclared types
    matching: Matching = "auto"  # the strategy that finds the registrations of its events
    quench: bool = False  # an emitter may omit events that have no listener now
    filterable_data: bool = False  # filters read the JSON body of an event as `data`


_OWN = StreamPolicy._fields
FILLED = {
    "policy": ", ".join(_OWN),
    "values": ", ".join(f"%({name})s" for name in _OWN),
    "changes": ", ".join(f"{name} = %({name})s" for name in _OWN if name != "durability"),
}
SQL = queries.load("eventhub/eventlog/sql/streams.sql", filled=FILLED)


class StreamRow(NamedTuple):
    """A stream. `sequence`: the last one, 0 in a new stream; `first`: the first readable one;
    `boot_*`: the last event before the hub's last start, None if the stream was created since. The
    position of a transient stream is not in the database: None here.
    """

    id: int
    zone_id: int | None  # None: the hub-wide `system`
    name: str
    policy: StreamPolicy
    created_at_us: int
    boot_segment: str | None
    boot_sequence: int | None
    deletes_at_us: int | None  # the end of the grace period of its deletion; None: not scheduled
    segment: str | None  # UUID of the segment being written (EMC-14)
    segment_first: int | None
    sequence: int | None
    first: int | None

    @property
    def current(self) -> "CurrentSegment | None":
        """The segment being written."""
        if self.segment is None or self.segment_first is None or self.sequence is None:
            return None
        return CurrentSegment(self.segment, self.segment_first, self.sequence)

    @property
    def boot(self) -> Cursor | None:
        """The last event before the hub's last start."""
        if self.boot_segment is None or self.boot_sequence is None:
            return None
        return Cursor(self.boot_segment, self.boot_sequence)


class CurrentSegment(NamedTuple):
    """The segment being written. `sequence`: the last one, `first` - 1 while it is empty."""

    uuid: str
    first: int
    sequence: int


class _Policy(NamedTuple):
    """The policy of a stream."""

    id: int
    policy: StreamPolicy


class _RemovedCount(NamedTuple):
    """The number of segments of a stream that were removed for one reason."""

    stream_id: int
    removal_reason: str
    segments: int


class _EventLocation(NamedTuple):
    """The segment in which to look for an event."""

    id: int
    uuid: str
    partition_id: int
    tier: str
    archive_path: str
    first: int
    last: int


class _StoredRow(NamedTuple):
    appended_at_us: int
    mask: int  # signed
    payload: bytes


def create_stream(
    connection: Connection, zone_id: int, name: str, policy: StreamPolicy
) -> StreamRow | None:
    """Create a stream with an empty open segment; None if the zone has one of that name.

    Locks the head of `system` to the end of the transaction, so announce the stream and commit.
    Raises LimitReached.
    """
    lock_system(connection)
    count = scalars(connection).execute(SQL["count_streams"], (zone_id,)).fetchone() or 0
    if count >= limits.STREAMS_PER_ZONE_MAX:
        raise LimitReached(limit=limits.STREAMS_PER_ZONE_MAX)
    values = {"zone_id": zone_id, "name": name, **policy._asdict()}
    if scalars(connection).execute(SQL["insert_stream"], values).fetchone() is None:
        return None
    return get_stream(connection, zone_id, name)


def lock_system(connection: Connection) -> None:
    """Lock the head of `system` to the end of the transaction, so that no stream is created or
    changed meanwhile.
    """
    connection.execute(SQL["lock_system"])


def update_policy(connection: Connection, stream_id: int, policy: StreamPolicy) -> None:
    """Change the policy except its durability. Call `lock_system` first."""
    connection.execute(SQL["update_policy"], {"id": stream_id, **policy._asdict()})


def find_stream(connection: Connection, zone_id: int, name: str) -> StreamRow | None:
    """Return the zone's stream of that name, or None; every zone has `system`."""
    found = _streams(connection, zone_id=zone_id, name=name, after="", count=1)
    return found[0] if found else None


def get_stream(connection: Connection, zone_id: int, name: str) -> StreamRow:
    """Return the zone's stream of that name. Raises UnknownStream."""
    found = find_stream(connection, zone_id, name)
    if found is None:
        raise UnknownStream(stream=name)
    return found


def list_streams(connection: Connection, zone_id: int, after: str, count: int) -> list[StreamRow]:
    """Return at most `count` streams in the order of names, after the name `after`."""
    return _streams(connection, zone_id=zone_id, name=None, after=after, count=count)


def policies(connection: Connection, ids: Sequence[int]) -> dict[int, StreamPolicy]:
    """Return the policies of streams, by id."""
    rows = cursor_of(connection, _Policy).execute(SQL["policies"], (list(ids),)).fetchall()
    return {row.id: row.policy for row in rows}


def removed_segments(connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """Return how many segments of the streams are no longer live, by id and removal reason."""
    rows = cursor_of(connection, _RemovedCount)
    found: dict[int, dict[str, int]] = {}
    for row in rows.execute(SQL["removed_segments"], (list(ids),)).fetchall():
        found.setdefault(row.stream_id, {})[row.removal_reason] = row.segments
    return found


def read_event(
    connection: Connection, stream: StreamRow, sequence: int, archive: ReadsArchive | None = None
) -> StoredEvent:
    """Return one event, from the archive if it has left the database. Raises UnknownEvent if the
    sequence is not reached, Gone if the event was dropped, ArchiveDamaged, ArchiveUnavailable.
    """
    found = _location(connection, stream, min(sequence, _SEQUENCE_MAX))
    if found is None or sequence > (stream.sequence or 0):
        raise UnknownEvent(stream=stream.name)
    row = None
    if found.tier == "live":
        row = _event(connection, found, sequence)
        found = _location(connection, stream, sequence) or found
        if row is None and found.tier == "live":  # moved to another partition meanwhile
            row = _event(connection, found, sequence)
    if row is not None:
        mask = row.mask % (1 << 64)
        return StoredEvent(found.uuid, sequence, mask, row.appended_at_us, bytes(row.payload))
    if found.tier == "archived" and archive is not None:
        segment = ArchivedSegment(found.uuid, found.archive_path, found.first, found.last)
        [stored] = archive.read(segment, sequence - 1, 1, 1)
        return stored
    if found.tier != "live":  # dropped before the read or during it
        raise _gone(connection, stream)
    raise LogHole(stream=stream.name, sequence=sequence)


def _gone(connection: Connection, stream: StreamRow) -> Gone:
    """Return the error with the first readable event and the cursor from which to resume."""
    first = stream.first or 1
    found = _location(connection, stream, first)
    uuid = found.uuid if found else ""
    return Gone(
        first_available={"segment": uuid, "sequence": first},
        resume={"segment": uuid, "sequence": first - 1},
    )


def _location(connection: Connection, stream: StreamRow, sequence: int) -> _EventLocation | None:
    values = (stream.id, sequence)
    return cursor_of(connection, _EventLocation).execute(SQL["segment_of_event"], values).fetchone()


def _streams(connection: Connection, **values: Any) -> list[StreamRow]:
    return cursor_of(connection, StreamRow).execute(SQL["streams"], values).fetchall()


def _event(connection: Connection, location: _EventLocation, sequence: int) -> _StoredRow | None:
    values = (location.partition_id, location.id, sequence)
    return cursor_of(connection, _StoredRow).execute(SQL["event_at"], values).fetchone()
