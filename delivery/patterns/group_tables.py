"""What a runner reads of its group: the group, its snapshot and journal, and versions of its
patterns. SQL module.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from delivery.forward.leases import REST_S, lease_table
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_one, fetch_value
from registrations.pattern_groups.consumed import ConsumedRun

SQL = queries.load("delivery/sql/patterns.sql")


class GroupLease(NamedTuple):
    """The right to write for a pattern group while its row has this epoch."""

    group_id: int
    epoch: int


GROUPS = lease_table("pattern_leases", "group_id", GroupLease, REST_S)


class LeasedGroup(NamedTuple):
    """A pattern group and its checkpoint. `output_stream`: the id of the stream of its outputs;
    None: that of the event which completed a match. `sequences`: of the last consumed events;
    `is_stopped`: its status says that no forwarder can run it.
    """

    id: int
    name: str
    zone_id: int
    zone: str
    client_id: int
    client: str
    output_stream: int | None
    position: int
    streams: list[int]
    segments: list[str]
    sequences: list[int]
    is_stopped: bool

    @property
    def cursors(self) -> dict[int, Cursor]:
        """The last consumed event of each stream."""
        pairs = zip(self.segments, self.sequences, strict=True)
        return dict(zip(self.streams, (Cursor(*pair) for pair in pairs), strict=True))


class GroupSnapshot(NamedTuple):
    """The state of a group's engines after the event with the order number `position`."""

    position: int
    versions: list[int]
    state: bytes


class JournalRow(NamedTuple):
    """Events that were consumed in this order, and the versions that were added and removed before
    the first of them.
    """

    first: int
    last: int
    streams: list[int]
    segments: list[str]
    firsts: list[int]
    lasts: list[int]
    added: list[int]
    removed: list[int]

    @property
    def runs(self) -> list[ConsumedRun]:
        rows = zip(self.streams, self.segments, self.firsts, self.lasts, strict=True)
        return [ConsumedRun(*row) for row in rows]


class StoredPatternVersion(NamedTuple):
    """A version of a pattern, with the sequences at which it begins (exclusive) and ends, parallel
    to the group's streams; None: the change does not concern the stream.
    """

    id: int
    pattern: int
    name: str
    number: int
    language: str
    text: str
    once: bool
    recent: bool
    suspended: bool
    since: int  # barriers
    until: int | None
    since_sequences: list[int | None]
    until_sequences: list[int | None] | None


class PatternTotals(NamedTuple):
    """What became of a pattern: of all its versions."""

    pattern: int
    version: int
    matches: int
    dropped: dict[str, int]


class _GroupStreamName(NamedTuple):
    id: int
    name: str


async def leased_group(connection: Connection, lease: GroupLease) -> LeasedGroup | None:
    """Return the group of a lease; None if the lease is lost or the group is deleted."""
    return await fetch_one(connection, LeasedGroup, SQL["group"], lease._asdict())


async def snapshot_of(connection: Connection, group: int) -> GroupSnapshot | None:
    """Return the snapshot of a group, if there is one."""
    return await fetch_one(connection, GroupSnapshot, SQL["state"], {"group_id": group})


async def journal_of(connection: Connection, group: int) -> list[JournalRow]:
    """Return what a group consumed since its snapshot, in order."""
    return await fetch_all(connection, JournalRow, SQL["journal"], {"group_id": group})


async def versions_of(
    connection: Connection, group: int, ids: Sequence[int], after: int
) -> list[StoredPatternVersion]:
    """Return versions by id, and those that begin or end after a barrier."""
    values = {"group_id": group, "ids": int8_array(list(ids)), "after": after}
    return await fetch_all(connection, StoredPatternVersion, SQL["versions"], values)


async def group_name(connection: Connection, group: int) -> str | None:
    """Return the name of a group; None if it is deleted."""
    name: str | None = await fetch_value(connection, SQL["name"], {"group_id": group})
    return name


async def totals_of(connection: Connection, group: int) -> dict[int, PatternTotals]:
    """Return what became of a group's patterns until its checkpoint."""
    rows = await fetch_all(connection, PatternTotals, SQL["statuses"], {"group_id": group})
    return {one.pattern: one for one in rows}


async def stream_names(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """Return the names of streams."""
    values: dict[str, Any] = {"ids": int8_array(list(ids))}
    return dict(await fetch_all(connection, _GroupStreamName, SQL["stream_names"], values))
