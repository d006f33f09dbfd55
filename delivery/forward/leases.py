"""The leases of streams, rows of `forwarding`, and of anything else in a table with the same
columns, by the database's clock. SQL module.

One conditional UPDATE takes a lease and raises its epoch. Every later write of the stream names the
epoch, so a forwarder that lost its lease cannot write, however late it wakes. In addition, a
process writes nothing while a lease may have expired by its own monotonic clock; if nobody took the
lease meanwhile, the next renewal restores it. Every write renews its stream's lease too.

Sharing: forwarders send heartbeats to `forwarders`. A forwarder takes free streams only up to its
share (streams / forwarders, rounded up). While it holds more than its share plus a tenth, it
releases a few at each renewal. So a new forwarder gets work within seconds, and streams do not
oscillate.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, LiteralString, NamedTuple, TypeVar
from uuid import UUID, uuid4

from delivery.lane_marks import FILLED
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_one, fetch_values, tuples_of
from registrations.catalog import CallbackStream

SQL = queries.load("delivery/sql/forward.sql", filled=FILLED)
# between looks at what a change of registrations wakes a forwarder for, while there is none
REST_S = 30.0


class StreamPosition(NamedTuple):
    """How far a stream is matched: up to an event, and within the next one up to an endpoint."""

    segment: str  # UUID
    sequence: int
    endpoint_id: int = 0  # of the event after `sequence`; 0: none


class Lease(NamedTuple):
    """The right to write for a stream while its row has this epoch."""

    stream_id: int
    epoch: int


AnyLease = tuple[int, int]  # the id of what is leased, and the epoch
L = TypeVar("L", bound=AnyLease)


class LeaseTable(NamedTuple, Generic[L]):
    """A table whose rows are leased. `key`: its primary key; `sql`: the statements of leases.sql
    for it; `idle_s`: between two looks at it while it is empty, unless a change wakes its holder.
    """

    key: str
    sql: Mapping[str, LiteralString]
    lease: Callable[[int, int], L]
    idle_s: float


def lease_table(
    table: str, key: str, lease: Callable[[int, int], L], idle_s: float
) -> LeaseTable[L]:
    """Return a table of leases. `key`: its primary key; `idle_s`: as of LeaseTable."""
    sql = queries.load("delivery/sql/leases.sql", {"table": table, "key": key})
    return LeaseTable(key, sql, lease, idle_s)


# a look at it is the heartbeat of a forwarder too
STREAMS = lease_table("forwarding", "stream_id", Lease, limits.FORWARD_IDLE_INTERVAL_S)


class LeaseLost(Exception):
    """Another forwarder has the stream, or may have it."""


class Share(NamedTuple):
    """The number of rows of a table of leases, and of live forwarders. `free_s`: seconds until the
    first lease of another forwarder expires unless renewed; None: there is no other lease.
    """

    total: int
    forwarders: int
    free_s: float | None = None

    @property
    def own(self) -> int:
        """One forwarder's share, rounded up so that the shares cover all."""
        return math.ceil(self.total / max(self.forwarders, 1))

    def too_many(self, held: int) -> int:
        """Return how many of its leases a forwarder releases now."""
        if held <= self.own + max(self.own // 10, 1):
            return 0
        return min(held - self.own, limits.FORWARD_RELEASE_STREAMS_MAX)


class _AcquiredRow(NamedTuple):
    """What was free, and its new epoch."""

    id: int
    epoch: int


class _RenewedRow(NamedTuple):
    """The ids whose leases are lost, and those whose leases are renewed."""

    lost_ids: list[int]
    renewed_ids: list[int]
    share: Share


class Leases(Generic[L]):
    """The leases of one forwarder in one table. Used by one task, except that another thread may
    call `renew` as well (lease_renewal.py); the caller provides the connection. `owner`: the id of
    the forwarder.

    Every method raises what psycopg raises; after a failed `renew` the leases expire.
    """

    def __init__(self, clock: Clock, table: LeaseTable[L], owner: UUID | None = None) -> None:
        self.owner: UUID = owner or uuid4()
        self.share = Share(0, 1)
        self._clock = clock
        self._table = table
        self._until_s: dict[
            L, float
        ] = {}  # by the monotonic clock, from before the statement was sent
        self._changing = threading.Lock()
        self.some = threading.Event()  # set while any are held

    @property
    def idle_s(self) -> float:
        return self._table.idle_s

    @property
    def held(self) -> list[L]:
        with self._changing:
            return list(self._until_s)

    def alive(self, lease: L) -> bool:
        """Return True while nobody else can have the lease, by this process's own clock."""
        return self._clock.monotonic_s() < self._until_s.get(lease, -math.inf)

    def left_s(self) -> float | None:
        """Return the seconds until a held lease expires. Return None if none is held: then wait for
        the event `some`.
        """
        with self._changing:
            if not self._until_s:
                self.some.clear()
                return None
            return min(self._until_s.values()) - self._clock.monotonic_s()

    def named(self, lease: L) -> dict[str, int]:
        """Return a lease as fields of the process's log."""
        return {self._table.key: lease[0], "epoch": lease[1]}

    def renewed(self, lease: L, asked_s: float) -> None:
        """Record that a write under the lease succeeded that was sent at that monotonic time."""
        self._prolong([lease], asked_s + limits.FORWARD_LEASE_S)

    def forget(self, leases: Iterable[L]) -> None:
        with self._changing:
            for lease in leases:
                self._until_s.pop(lease, None)

    def _prolong(self, leases: Iterable[L], until_s: float) -> None:
        """Prolong those leases that were not forgotten meanwhile."""
        with self._changing:
            for lease in leases:
                if lease in self._until_s:
                    self._until_s[lease] = max(self._until_s[lease], until_s)

    async def acquire(self, connection: Connection) -> list[L]:
        """Take what is free, up to this forwarder's share."""
        room = limits.FORWARD_STREAMS_PER_PROCESS_MAX - len(self._until_s)
        if room <= 0:
            return []
        until_s = self._clock.monotonic_s() + limits.FORWARD_LEASE_S
        values = {
            "owner": self.owner,
            "held": int8_array([id for id, _ in self._until_s]),
            "leases_max": min(room, limits.FORWARD_ACQUIRE_STREAMS_MAX),
            "lease_s": limits.FORWARD_LEASE_S,
        }
        rows = await tuples_of(connection, _AcquiredRow).execute(self._table.sql["acquire"], values)
        taken = [self._table.lease(id, epoch) for id, epoch in await rows.fetchall()]
        with self._changing:
            self._until_s.update(dict.fromkeys(taken, until_s))
            if taken:
                self.some.set()
        return taken

    async def renew(self, connection: Connection) -> list[L]:
        """Renew all leases, send the heartbeat, read the share; return the lost leases."""
        asked = self.held
        until_s = self._clock.monotonic_s() + limits.FORWARD_LEASE_S
        values = {"owner": self.owner, "lease_s": limits.FORWARD_LEASE_S, **_arrays(asked)}
        row = await fetch_one(connection, _RenewedRow, self._table.sql["renew"], values)
        lost_ids, renewed_ids, self.share = row or _RenewedRow([], [], Share(0, 1))
        lost = [lease for lease in asked if lease[0] in set(lost_ids)]
        renewed = set(renewed_ids)
        self._prolong([lease for lease in asked if lease[0] in renewed], until_s)
        self.forget(lost)
        return lost

    async def release(self, connection: Connection, leases: Sequence[L]) -> None:
        """Release leases at once; stop their tasks first. A lease whose release fails expires."""
        self.forget(leases)
        await connection.execute(self._table.sql["release"], _arrays(leases))

    async def leave(self, connection: Connection) -> None:
        """Release all leases and unregister the forwarder."""
        await self.release(connection, self.held)
        await connection.execute(self._table.sql["leave"], {"owner": self.owner})


async def add_streams(connection: Connection, found: Sequence[CallbackStream]) -> None:
    """Insert rows for streams with callbacks, at the position before which nothing can match."""
    values = {
        "streams": int8_array([stream.stream_id for stream in found]),
        "segments": [stream.segment for stream in found],
        "sequences": int8_array([stream.sequence for stream in found]),
    }
    await connection.execute(SQL["add_streams"], values)


async def known_streams(connection: Connection) -> list[int]:
    """Return the streams that have a row."""
    return await fetch_values(connection, SQL["known_streams"])


async def position_of(connection: Connection, lease: Lease) -> StreamPosition | None:
    """Return the stream's position; None if the lease is lost."""
    return await fetch_one(connection, StreamPosition, SQL["position"], lease)


def _arrays(leases: Sequence[AnyLease]) -> dict[str, bytes]:
    return {
        "ids": int8_array([id for id, _ in leases]),
        "epochs": int8_array([epoch for _, epoch in leases]),
    }
