"""Forwards one stream under its lease: read from the checkpoint, match, write. SQL module.

After a crash, a lost connection or a change of owner the row in `forwarding` says where to
continue; nothing else is remembered.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import psycopg
from psycopg_pool import AsyncConnectionPool

from delivery.forward.lease_holder import LeaseHolder
from delivery.forward.leases import Lease, LeaseLost, Leases, StreamPosition, position_of
from delivery.forward.plan import DeliveryBatch, MatchedEvent, SegmentRef, batches
from delivery.forward.stream_matcher import CallbackMatcher
from delivery.forward.stream_matchers import StreamMatchers
from delivery.forward.write import MissedEvents, segment_refs, write, write_gap
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError, Gone
from eventhub.base.event_loop import wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, reading

log = get_logger(__name__)
throttled = ThrottledLog(log)


class ForwarderContext(NamedTuple):
    """The objects that the streams of one forwarder share."""

    log: Log
    pool: AsyncConnectionPool[Connection]  # write.writing_pool
    leases: Leases[Lease]
    interests: StreamMatchers
    clock: Clock
    # called after deliveries or a fan-out were written, with whether the workers were notified
    wrote: Callable[[DeliveryBatch, bool], None]
    notifies: Callable[[], bool]  # whether a write of deliveries is to notify the workers


class StreamForwarder:
    """One leased stream. `run` is its task; `stop` ends it cleanly."""

    def __init__(self, context: ForwarderContext, lease: Lease) -> None:
        self.lease = lease
        self.lag_events = 0
        self.lag_since_us = 0  # when the first unmatched event was appended
        self._context = context
        self._position = StreamPosition("", 0)
        self._written_s = 0.0
        self._segments: dict[str, SegmentRef] = {}
        self._wake_up = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        """End after the statement under way, with the checkpoint written."""
        self._stopping = True
        self._wake_up.set()

    async def run(self) -> None:
        """Forward until stopped or cancelled, through outages of the database. Raises LeaseLost."""
        try:
            while not self._stopping:
                await self._forward_once()
        finally:
            self._context.interests.close(self.lease)

    async def _forward_once(self) -> None:
        try:
            await self._follow_or_skip()
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            code = getattr(error, "code", type(error).__name__)
            throttled.warning("forwarding_paused", stream=self.lease.stream_id, error=code)
            self._segments.clear()  # a segment may have moved to another partition
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _follow_or_skip(self) -> None:
        """Follow from the stored position; after a crash of the database events may be gone."""
        position = await self._stored_place()
        try:
            await self._follow(position)
        except Gone as gone:
            if "missed" not in gone.details:
                raise
            await self._skip(gone)

    async def _stored_place(self) -> StreamPosition:
        async with reading(self._context.pool) as connection:
            position = await position_of(connection, self.lease)
        if position is None:
            raise LeaseLost
        self._position = position
        return position

    async def _follow(self, position: StreamPosition) -> None:
        stream_id = self.lease.stream_id
        start = Cursor(position.segment, position.sequence)
        async with self._context.log.follow(stream_id, start) as follower:
            await self._context.interests.open(self.lease, position.sequence)
            follower.ring.wakers.add(self._wake_up)
            try:
                while not self._stopping:
                    await self._process_next(follower)
                await self._save_position(follower.cursor)
            finally:
                follower.ring.wakers.discard(self._wake_up)

    async def _process_next(self, follower: Follower) -> None:
        self._wake_up.clear()
        batch = follower.next_in_ring(limits.READ_EVENTS_MAX)
        if batch is None:
            batch = await follower.catch_up()
        if batch:
            await self._forward(follower, batch)
        elif not self._stopping:
            await self._idle(follower)
        self.lag_events = max(follower.ring.next - 1 - follower.cursor.sequence, 0)

    async def _idle(self, follower: Follower) -> None:
        """Wait for events; write the position after a while, if it was not yet."""
        self.lag_since_us = 0
        if self._position == StreamPosition(*follower.cursor):
            await self._wake_up.wait()
            return
        wait_s = self._written_s + limits.CHECKPOINT_INTERVAL_S - self._context.clock.monotonic_s()
        if not await wait_until_set(self._wake_up, wait_s):
            await self._save_position(follower.cursor)

    async def _forward(self, follower: Follower, batch: list[StoredEvent]) -> None:
        """Match a batch, as much as fits into a few statements, and write."""
        self.lag_since_us = batch[0].appended_at_us
        system = follower.ring.system_at(batch[-1].sequence)
        interest = await self._context.interests.current(self.lease, batch, system)
        matched, last = await self._match(interest, batch)
        for deliveries in await self._batches(matched, last):
            if deliveries.rows or self._checkpoint_is_due():
                await self._write(deliveries)
        follower.cursor = last
        interest.advance(last.sequence)

    async def _batches(self, matched: list[MatchedEvent], last: Cursor) -> list[DeliveryBatch]:
        """Plan the writes, in a thread if they are many, so that leases are renewed meanwhile."""
        if (
            sum(len(event.registrations) for event in matched)
            <= limits.DELIVERIES_PER_STATEMENT_MAX
        ):
            return list(batches(self._position, matched, last))
        return await asyncio.to_thread(list, batches(self._position, matched, last))

    async def _match(
        self, interest: CallbackMatcher, batch: list[StoredEvent]
    ) -> tuple[list[MatchedEvent], Cursor]:
        """Return the matched events and the last cursor examined: many matches cut a batch
        short.
        """
        clock, keys = self._context.clock, self._context.interests.order_keys
        now_us, pause_s = clock.now_us(), clock.monotonic_s() + limits.FORWARD_SLICE_S
        matched: list[MatchedEvent] = []
        rows = registrations = expired = 0
        stored = batch[0]
        for stored in batch:
            event = stored.event
            if event.expires_at_us and event.expires_at_us <= now_us:
                expired += 1
                continue
            match = interest.match(event, stored.sequence)
            if match.endpoints:
                segment = self._segments.get(stored.segment) or await self._find_segment(
                    stored.segment
                )
                lanes = keys.lanes(self.lease.stream_id, event, match.endpoints)
                matched.append(
                    MatchedEvent(stored.cursor, segment, match.endpoints, match.shapes, lanes)
                )
                rows += len(match.endpoints)
                registrations += sum(map(len, match.endpoints.values()))
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
        return matched, stored.cursor

    async def _find_segment(self, uuid: str) -> SegmentRef:
        async with reading(self._context.log.pool) as connection:
            self._segments = await segment_refs(connection, [*list(self._segments)[-8:], uuid])
        return self._segments[uuid]

    def _checkpoint_is_due(self) -> bool:
        since_s = self._context.clock.monotonic_s() - self._written_s
        return since_s >= limits.CHECKPOINT_INTERVAL_S

    async def _save_position(self, cursor: Cursor) -> None:
        if self._position != StreamPosition(*cursor):
            await self._write(DeliveryBatch(StreamPosition(*cursor), []))

    async def _write(self, deliveries: DeliveryBatch) -> None:
        """Write a batch. Raises LeaseLost, and DatabaseUnavailable if the outcome is unknown."""
        await self._until_alive()
        sent_s = self._context.clock.monotonic_s()
        notify = bool(deliveries.rows) and not deliveries.fanout and self._context.notifies()
        async with reading(self._context.pool) as connection:
            wrote = await write(connection, self.lease, self._position, deliveries, notify=notify)
        if not wrote:
            raise LeaseLost
        self._context.leases.renewed(self.lease, sent_s)
        self._position = deliveries.position
        self._written_s = self._context.clock.monotonic_s()
        if deliveries.rows:
            self._context.wrote(deliveries, notify)

    async def _until_alive(self) -> None:
        """Wait while the lease may have expired. Raises LeaseLost when that is certain."""
        leases = self._context.leases
        while not leases.alive(self.lease):
            if self.lease not in leases.held:
                raise LeaseLost
            await asyncio.sleep(limits.FORWARD_ACQUIRE_INTERVAL_S)

    async def _skip(self, gone: Gone) -> None:
        """Skip events no longer available, and write gap notices to their endpoints."""
        await self._until_alive()
        sent_s = self._context.clock.monotonic_s()
        missed = MissedEvents(
            gone.details["missed"]["first"], StreamPosition(**gone.details["resume"])
        )
        async with reading(self._context.pool) as connection:
            notices = await write_gap(connection, self.lease, self._position, missed)
        self._context.leases.renewed(self.lease, sent_s)
        self._position = missed.position
        metrics.GAPS.labels(code=gone.code).inc()
        log.error("forwarding_gap", stream=self.lease.stream_id, missed=missed, notices=notices)
        self._context.wrote(DeliveryBatch(missed.position, []), False)


def stream_leases(context: ForwarderContext, url: str) -> LeaseHolder[Lease, StreamForwarder]:
    """Return the holder of a forwarder's streams. `url`: the database, for renewals."""
    return LeaseHolder(
        context.leases, url, context.clock, partial(StreamForwarder, context), metrics.LEASES
    )
