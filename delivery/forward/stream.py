"""Forwards one stream under its lease: follow from the checkpoint, match, write. SQL module.

Whatever happened before (a crash, a lost connection, another owner), the row in `forwarding` says
where to go on; nothing else is remembered.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import psycopg
from psycopg_pool import AsyncConnectionPool

from delivery.forward.interest import Interest
from delivery.forward.interests import Interests
from delivery.forward.leases import Lease, LeaseLost, Leases, Place, place_of
from delivery.forward.plan import Due, Piece, Where, pieces
from delivery.forward.write import Missed, places_of_segments, write, write_gap
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError, Gone
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.waiting import set_within
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, reading

log = get_logger(__name__)
throttled = ThrottledLog(log)


class Parts(NamedTuple):
    """What the streams of one forwarder share."""

    log: Log
    pool: AsyncConnectionPool[Connection]  # write.writing_pool
    leases: Leases
    interests: Interests
    clock: Clock
    wrote: Callable[[Piece], None]  # called after deliveries or a fan-out were written


class Stream:
    """One leased stream. `run` is its task; `stop` ends it in good order."""

    def __init__(self, parts: Parts, lease: Lease) -> None:
        self.lease = lease
        self.lag_events = 0
        self.lag_since_us = 0  # when the first event that is not matched yet was appended
        self._parts = parts
        self._place = Place("", 0)
        self._written_s = 0.0
        self._where: dict[str, Where] = {}
        self._waker = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        """End after the statement under way, with the checkpoint written."""
        self._stopping = True
        self._waker.set()

    async def run(self) -> None:
        """Forward until stopped or cancelled, through every absence of the database.

        Raises LeaseLost.
        """
        try:
            while not self._stopping:
                await self._try()
        finally:
            self._parts.interests.close(self.lease)

    async def _try(self) -> None:
        try:
            await self._follow_or_skip()
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            code = getattr(error, "code", type(error).__name__)
            throttled.warning("forwarding_paused", stream=self.lease.stream_id, error=code)
            self._where.clear()  # a segment may have moved to another group
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _follow_or_skip(self) -> None:
        """From the stored place: after a crash of the database, what was read may be gone."""
        place = await self._stored_place()
        try:
            await self._follow(place)
        except Gone as gone:
            if "missed" not in gone.details:
                raise
            await self._skip(gone)

    async def _stored_place(self) -> Place:
        async with reading(self._parts.pool) as connection:
            place = await place_of(connection, self.lease)
        if place is None:
            raise LeaseLost
        self._place = place
        return place

    async def _follow(self, place: Place) -> None:
        stream_id = self.lease.stream_id
        start = Cursor(place.segment, place.sequence)
        async with self._parts.log.follow(stream_id, start) as follower:
            await self._parts.interests.open(self.lease, place.sequence)
            follower.ring.wakers.add(self._waker)
            try:
                while not self._stopping:
                    await self._turn(follower)
                await self._keep_place(follower.cursor)
            finally:
                follower.ring.wakers.discard(self._waker)

    async def _turn(self, follower: Follower) -> None:
        self._waker.clear()
        batch = follower.ready(limits.READ_EVENTS_MAX)
        if batch is None:
            batch = await follower.catch_up()
        if batch:
            await self._forward(follower, batch)
        elif not self._stopping:
            await self._idle(follower)
        self.lag_events = max(follower.ring.next - 1 - follower.cursor.sequence, 0)

    async def _idle(self, follower: Follower) -> None:
        """Wait for events; a place that was not written yet is, in a while."""
        self.lag_since_us = 0
        if self._place == Place(*follower.cursor):
            await self._waker.wait()
            return
        wait_s = self._written_s + limits.CHECKPOINT_INTERVAL_S - self._parts.clock.monotonic_s()
        if not await set_within(self._waker, wait_s):
            await self._keep_place(follower.cursor)

    async def _forward(self, follower: Follower, batch: list[StoredEvent]) -> None:
        """Match a batch as far as it goes into few statements, and write."""
        self.lag_since_us = batch[0].appended_at_us
        interest = await self._parts.interests.current(self.lease, batch)
        due, last = await self._match(interest, batch)
        for piece in await self._pieces(due, last):
            if piece.rows or self._checkpoint_is_due():
                await self._write(piece)
        follower.cursor = last
        interest.advance(last.sequence)

    async def _pieces(self, due: list[Due], last: Cursor) -> list[Piece]:
        """In a thread if they are many, so that leases are renewed meanwhile."""
        if sum(len(event.owed) for event in due) <= limits.DELIVERIES_PER_STATEMENT_MAX:
            return list(pieces(self._place, due, last))
        return await asyncio.to_thread(list, pieces(self._place, due, last))

    async def _match(
        self, interest: Interest, batch: list[StoredEvent]
    ) -> tuple[list[Due], Cursor]:
        """What the events are owed to, and the last event looked at: a batch that matches much is
        cut.
        """
        clock = self._parts.clock
        now_us, pause_s = clock.now_us(), clock.monotonic_s() + limits.FORWARD_SLICE_S
        due: list[Due] = []
        rows = registrations = expired = 0
        stored = batch[0]
        for stored in batch:
            event = stored.event
            if event.expires_at_us and event.expires_at_us <= now_us:
                expired += 1
                continue
            owed = interest.owed(event, stored.sequence)
            if owed.endpoints:
                where = self._where.get(stored.segment) or await self._find_where(stored.segment)
                due.append(Due(stored.cursor, where, owed.endpoints, owed.shapes))
                rows += len(owed.endpoints)
                registrations += sum(map(len, owed.endpoints.values()))
            if (
                rows >= limits.DELIVERIES_PER_STATEMENT_MAX
                or registrations >= limits.REGISTRATIONS_PER_STATEMENT_MAX
            ):
                break
            if clock.monotonic_s() > pause_s:
                await asyncio.sleep(0)
                pause_s = clock.monotonic_s() + limits.FORWARD_SLICE_S
        metrics.EXPIRED.inc(expired)
        metrics.FORWARDED.inc(stored.sequence - batch[0].sequence + 1)
        return due, stored.cursor

    async def _find_where(self, uuid: str) -> Where:
        async with reading(self._parts.log.pool) as connection:
            self._where = await places_of_segments(connection, [*list(self._where)[-8:], uuid])
        return self._where[uuid]

    def _checkpoint_is_due(self) -> bool:
        since_s = self._parts.clock.monotonic_s() - self._written_s
        return since_s >= limits.CHECKPOINT_INTERVAL_S

    async def _keep_place(self, cursor: Cursor) -> None:
        if self._place != Place(*cursor):
            await self._write(Piece(Place(*cursor), []))

    async def _write(self, piece: Piece) -> None:
        """Raises LeaseLost, and DatabaseUnavailable when the outcome is not known."""
        await self._until_alive()
        asked_s = self._parts.clock.monotonic_s()
        async with reading(self._parts.pool) as connection:
            wrote = await write(connection, self.lease, self._place, piece)
        if not wrote:
            raise LeaseLost
        self._parts.leases.renewed(self.lease, asked_s)
        self._place = piece.to
        self._written_s = self._parts.clock.monotonic_s()
        if piece.rows:
            self._parts.wrote(piece)

    async def _until_alive(self) -> None:
        """Write nothing while the lease may have ended. Raises LeaseLost when that is certain."""
        leases = self._parts.leases
        while not leases.alive(self.lease):
            if self.lease not in leases.held:
                raise LeaseLost
            await asyncio.sleep(limits.FORWARD_ACQUIRE_INTERVAL_S)

    async def _skip(self, gone: Gone) -> None:
        """What comes next is no longer held: go on with the oldest that is, and tell those to whom
        it was owed.
        """
        await self._until_alive()
        asked_s = self._parts.clock.monotonic_s()
        missed = Missed(gone.details["missed"]["first"], Place(**gone.details["resume"]))
        async with reading(self._parts.pool) as connection:
            notices = await write_gap(connection, self.lease, self._place, missed)
        self._parts.leases.renewed(self.lease, asked_s)
        self._place = missed.to
        metrics.GAPS.labels(code=gone.code).inc()
        log.error("forwarding_gap", stream=self.lease.stream_id, missed=missed, notices=notices)
        self._parts.wrote(Piece(missed.to, []))
