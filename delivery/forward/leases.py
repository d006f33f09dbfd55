"""Who forwards which stream: leases as rows of `forwarding`, by the database's clock. SQL module.

A lease is taken with one conditional UPDATE, which raises its epoch; every later write of the
stream names the epoch, so who has lost a lease cannot write, however late it wakes. Besides, a
process writes nothing while a lease may have ended by its own monotonic clock; if nobody took it
meanwhile, the next renewal brings it back. Every write renews its stream's lease too.

Sharing: forwarders show that they live in `forwarders`. One takes free streams only up to its share
(streams / forwarders, rounded up), and lets go of a few in each renewal while it holds more than
its share and a tenth, so that a new forwarder gets work within seconds and nothing swings.
"""

import math
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars, tuples_of
from registrations.catalog import CallbackStream

SQL = queries.load("delivery/sql/forward.sql")


class Place(NamedTuple):
    """How far a stream is matched: up to an event, and of the next one up to an endpoint."""

    segment: str  # UUID
    sequence: int
    endpoint_id: int = 0  # of the event after `sequence`; 0: none


class Lease(NamedTuple):
    """The right to write for a stream, as long as its row has this epoch."""

    stream_id: int
    epoch: int


class LeaseLost(Exception):
    """Somebody else forwards the stream, or may."""


class Share(NamedTuple):
    """How many streams there are, and how many forwarders that live. `free_s`: the seconds until
    the first lease of another forwarder ends, unless it is renewed; None: there is no other lease.
    """

    streams: int
    forwarders: int
    free_s: float | None = None

    @property
    def own(self) -> int:
        """So many streams are one forwarder's part, rounded up so that the parts cover all."""
        return math.ceil(self.streams / max(self.forwarders, 1))

    def too_many(self, held: int) -> int:
        """So many of its streams a forwarder lets go now."""
        if held <= self.own + max(self.own // 10, 1):
            return 0
        return min(held - self.own, limits.FORWARD_RELEASE_STREAMS_MAX)


class _Taken(NamedTuple):
    """A stream that was free, and where it stands."""

    stream_id: int
    epoch: int
    segment: str
    sequence: int
    endpoint_id: int


class _Renewed(NamedTuple):
    """Of streams whose leases were to be renewed: those that are lost, those that are renewed."""

    gone: list[int]
    kept: list[int]
    share: Share


class Leases:
    """The leases of one forwarder. One user at a time, but for `renew`, which another thread may
    call as well (beside.py); the connection is the caller's.

    Every method raises what psycopg raises; after a failed `renew` the leases run out.
    """

    def __init__(self, clock: Clock) -> None:
        self.owner: UUID = uuid4()
        self.share = Share(0, 1)
        self._clock = clock
        self._until_s: dict[Lease, float] = {}  # by the monotonic clock, counted from before asking
        self._changing = threading.Lock()
        self.some = threading.Event()  # set while any are held

    @property
    def held(self) -> list[Lease]:
        with self._changing:
            return list(self._until_s)

    def alive(self, lease: Lease) -> bool:
        """True while nobody else can have the lease, by this process' own clock."""
        return self._clock.monotonic_s() < self._until_s.get(lease, -math.inf)

    def left_s(self) -> float | None:
        """Seconds until the first of the leases that are held ends; None while there is none, and
        then `some` waits for one.
        """
        with self._changing:
            if not self._until_s:
                self.some.clear()
                return None
            return min(self._until_s.values()) - self._clock.monotonic_s()

    def renewed(self, lease: Lease, asked_s: float) -> None:
        """A write of the stream went through that was begun at that monotonic time."""
        self._prolong([lease], asked_s + limits.FORWARD_LEASE_S)

    def forget(self, leases: Iterable[Lease]) -> None:
        with self._changing:
            for lease in leases:
                self._until_s.pop(lease, None)

    def _prolong(self, leases: Iterable[Lease], until_s: float) -> None:
        """Those that were not forgotten meanwhile."""
        with self._changing:
            for lease in leases:
                if lease in self._until_s:
                    self._until_s[lease] = max(self._until_s[lease], until_s)

    async def acquire(self, connection: Connection) -> dict[Lease, Place]:
        """Take free streams, up to this forwarder's share."""
        room = limits.FORWARD_STREAMS_PER_PROCESS_MAX - len(self._until_s)
        if room <= 0:
            return {}
        until_s = self._clock.monotonic_s() + limits.FORWARD_LEASE_S
        values = {
            "owner": self.owner,
            "held": int8_array([lease.stream_id for lease in self._until_s]),
            "streams_max": min(room, limits.FORWARD_ACQUIRE_STREAMS_MAX),
            "lease_s": limits.FORWARD_LEASE_S,
        }
        rows = await tuples_of(connection, _Taken).execute(SQL["acquire"], values)
        taken = {
            Lease(stream_id, epoch): Place(segment, sequence, endpoint_id)
            for stream_id, epoch, segment, sequence, endpoint_id in await rows.fetchall()
        }
        with self._changing:
            self._until_s.update(dict.fromkeys(taken, until_s))
            if taken:
                self.some.set()
        return taken

    async def renew(self, connection: Connection) -> list[Lease]:
        """Prolong all, say that this forwarder lives, and learn the share; returns those lost."""
        asked = self.held
        until_s = self._clock.monotonic_s() + limits.FORWARD_LEASE_S
        values = {"owner": self.owner, "lease_s": limits.FORWARD_LEASE_S, **_arrays(asked)}
        query = await cursor_of(connection, _Renewed).execute(SQL["renew"], values)
        gone, kept, self.share = await query.fetchone() or _Renewed([], [], Share(0, 1))
        lost = [lease for lease in asked if lease.stream_id in set(gone)]
        renewed = set(kept)
        self._prolong([lease for lease in asked if lease.stream_id in renewed], until_s)
        self.forget(lost)
        return lost

    async def release(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Let go at once; stop the streams before. One of which the database is not told runs
        out.
        """
        self.forget(leases)
        await connection.execute(SQL["release"], _arrays(leases))

    async def leave(self, connection: Connection) -> None:
        """Release everything and no longer count as living."""
        await self.release(connection, self.held)
        await connection.execute(SQL["leave"], {"owner": self.owner})


async def add_streams(connection: Connection, found: Sequence[CallbackStream]) -> None:
    """Rows for streams with callbacks, at the place before which nothing can match."""
    values = {
        "streams": int8_array([stream.stream_id for stream in found]),
        "segments": [stream.segment for stream in found],
        "sequences": int8_array([stream.sequence for stream in found]),
    }
    await connection.execute(SQL["add_streams"], values)


async def known_streams(connection: Connection) -> list[int]:
    """The streams that have a row."""
    return await (await scalars(connection).execute(SQL["known_streams"])).fetchall()


async def place_of(connection: Connection, lease: Lease) -> Place | None:
    """Where the stream stands; None if the lease is lost."""
    return await (await cursor_of(connection, Place).execute(SQL["place"], lease)).fetchone()


def _arrays(leases: Sequence[Lease]) -> dict[str, bytes]:
    return {
        "streams": int8_array([lease.stream_id for lease in leases]),
        "epochs": int8_array([lease.epoch for lease in leases]),
    }
