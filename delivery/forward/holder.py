"""Holds the leases of one forwarder and a task for each: takes free streams, renews, gives some up
when others live, drops what is lost. SQL module.

Concurrency contract: `run` is one task; everything is of one event loop.
"""

import asyncio
import math
from collections.abc import Iterable

import psycopg

from delivery.forward.lease_renewal import Beside, renewed_beside
from delivery.forward.leases import Lease, LeaseLost
from delivery.forward.stream import Parts, Stream
from eventhub.base import limits, metrics
from eventhub.base.errors import EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.waiting import set_within
from eventhub.postgresql.arrays import adapt
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within, connect

log = get_logger(__name__)
throttled = ThrottledLog(log)


class Holder:
    """The streams that this process forwards."""

    def __init__(self, parts: Parts, url: str) -> None:
        self.streams: dict[Lease, Stream] = {}
        self._parts = parts
        self._leases = parts.leases
        self._url = url
        self._tasks: dict[Lease, asyncio.Task[None]] = {}
        self._renew_at_s = 0.0
        self._free_at_s = math.inf  # when there may be a stream to take
        self._asked = asyncio.Event()

    def look(self) -> None:
        """There is a new stream to be forwarded."""
        self._renew_at_s = 0.0
        self._asked.set()

    async def run(self) -> None:
        """Renew, and take what is free, until cancelled. Its connection is its own, so
        that no write delays a renewal; nor does a long match, beside which a thread renews.
        """
        lose, clock = self._lose, self._parts.clock
        async with renewed_beside(self._leases, self._url, clock, lose) as beside:
            await self._run_streams(beside)

    async def _run_streams(self, beside: Beside) -> None:
        connection: Connection | None = None
        while True:
            self._asked.clear()
            beside.hear()
            try:
                if connection is None:
                    connection = await connect(self._url, name="eventhub leases")
                    adapt(connection)
                await self._tick(connection)
            except (psycopg.Error, EventHubError, *CONNECTION_ERRORS) as error:
                throttled.warning("leases_not_renewed", error=type(error).__name__)
                if connection is not None:
                    await connection.close()
                connection = None
                self._renew_at_s = self._parts.clock.monotonic_s() + limits.HEAD_POLL_INTERVAL_S
            await set_within(self._asked, self._pause_s())

    def _pause_s(self) -> float:
        """While there is nothing to forward, only the sign of life is due."""
        if not self._leases.share.streams:
            return limits.FORWARD_IDLE_INTERVAL_S
        next_s = min(self._renew_at_s, self._free_at_s)
        return max(next_s - self._parts.clock.monotonic_s(), 0.0)

    async def stop(self) -> None:
        """Let the statements under way end, and free every stream at once."""
        await self._end(list(self.streams))
        try:
            async with await connect(self._url, name="eventhub leases") as connection:
                adapt(connection)
                with answered_within(connection, limits.FORWARD_STOP_S_MAX):
                    await self._leases.leave(connection)
        except (psycopg.Error, EventHubError, *CONNECTION_ERRORS) as error:
            log.warning("leases_left_to_run_out", error=type(error).__name__)

    async def _tick(self, connection: Connection) -> None:
        now_s = self._parts.clock.monotonic_s()
        if now_s >= self._renew_at_s:
            self._renew_at_s = now_s + limits.FORWARD_RENEW_INTERVAL_S
            with answered_within(connection, limits.FORWARD_LEASE_S):
                self._lose(await self._leases.renew(connection))
            free_s = self._leases.share.free_s
            self._free_at_s = math.inf if free_s is None else now_s + free_s
            await self._share(connection)
        if now_s < self._free_at_s:
            return
        self._free_at_s = math.inf
        with answered_within(connection, limits.FORWARD_LEASE_S):
            taken = await self._leases.acquire(connection)
        for lease in taken:
            self._start(lease)
        if taken:
            self._free_at_s = now_s + limits.FORWARD_ACQUIRE_INTERVAL_S  # there may be more
        metrics.LEASES.set(len(self.streams))

    async def _share(self, connection: Connection) -> None:
        """Let go of some streams while another forwarder has less than its part. How long they take
        to end is not the database's time.
        """
        count = self._leases.share.too_many(len(self.streams))
        given = list(self.streams)[:count]
        if given:
            await self._end(given)
            with answered_within(connection, limits.FORWARD_LEASE_S):
                await self._leases.release(connection, given)
            log.info("leases_shared", given=len(given), forwarders=self._leases.share.forwarders)

    def _start(self, lease: Lease) -> None:
        stream = self.streams[lease] = Stream(self._parts, lease)
        task = self._tasks[lease] = asyncio.create_task(self._run(stream))
        task.add_done_callback(lambda _: self._gone(lease))
        log.info("lease_taken", stream=lease.stream_id, epoch=lease.epoch)

    async def _run(self, stream: Stream) -> None:
        try:
            await stream.run()
        except LeaseLost:
            self._lose([stream.lease])
        except Exception:
            log.exception("stream_failed", stream=stream.lease.stream_id)
            self._leases.forget([stream.lease])  # it runs out, and is taken again

    def _gone(self, lease: Lease) -> None:
        self.streams.pop(lease, None)
        self._tasks.pop(lease, None)

    def _lose(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            task = self._tasks.get(lease)
            self._leases.forget([lease])
            metrics.LEASES_LOST.inc()
            log.warning("lease_lost", stream=lease.stream_id, epoch=lease.epoch)
            if task is not None and task is not asyncio.current_task():
                task.cancel()

    async def _end(self, leases: list[Lease]) -> None:
        """Stop streams in good order; those that take too long are cancelled."""
        tasks = [self._tasks[lease] for lease in leases if lease in self._tasks]
        for lease in leases:
            self.streams[lease].stop()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=limits.FORWARD_STOP_S_MAX)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
