"""Holds the leases of one forwarder in one table, with a task for each: takes what is free, renews,
releases some when other forwarders have fewer, and ends those that are lost. SQL module.

Concurrency contract: `run` is one task; everything runs in one event loop.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import psycopg
from prometheus_client import Gauge

from delivery.forward.lease_renewal import BackgroundRenewal, background_renewal
from delivery.forward.leases import L, LeaseLost, Leases
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import pause_together_s, wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.monitoring.heartbeat import Beat
from eventhub.postgresql.arrays import adapt
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within, connect

log = get_logger(__name__)
throttled = ThrottledLog(log)


class LeasedWork(Protocol):
    """The work under one lease. `run` raises LeaseLost; `stop` ends it after the statement under
    way.
    """

    async def run(self) -> None: ...

    def stop(self) -> None: ...


W = TypeVar("W", bound=LeasedWork)


class LeaseHolder(Generic[L, W]):
    """The leases of this process in one table, and the work under each. `work` starts it; `count`
    shows how many there are.
    """

    def __init__(
        self, leases: Leases[L], url: str, clock: Clock, work: Callable[[L], W], count: Gauge
    ) -> None:
        self.works: dict[L, W] = {}
        self.beat: Beat | None = None  # the process's heartbeat, sent with renewals
        self._leases = leases
        self._url = url
        self._clock = clock
        self._work = work
        self._count = count
        self._tasks: dict[L, asyncio.Task[None]] = {}
        self._renew_at_s = 0.0
        self._acquire_at_s = math.inf  # when one may be free
        self._wake_up = asyncio.Event()

    def wake(self) -> None:
        """Look for free leases now: there is a new one."""
        self._renew_at_s = 0.0
        self._wake_up.set()

    async def run(self) -> None:
        """Renew leases and take free ones until cancelled. It has its own connection, so that no
        write delays a renewal; a thread renews while a long match blocks the event loop.
        """
        async with background_renewal(
            self._leases, self._url, self._clock, self._lose
        ) as background:
            await self._hold(background)

    async def _hold(self, background: BackgroundRenewal[L]) -> None:
        connection: Connection | None = None
        while True:
            self._wake_up.clear()
            background.record_progress()
            try:
                if connection is None:
                    connection = await connect(self._url, name="eventhub leases")
                    adapt(connection)
                await self._renew_and_acquire(connection)
                pause_s = self._pause_s()
            except (psycopg.Error, EventHubError, *CONNECTION_ERRORS) as error:
                throttled.warning("leases_not_renewed", error=type(error).__name__)
                if connection is not None:
                    await connection.close()
                connection = None
                pause_s = limits.HEAD_POLL_INTERVAL_S  # also if it knows of no leases
                self._renew_at_s = self._acquire_at_s = self._clock.monotonic_s() + pause_s
            await wait_until_set(self._wake_up, pause_s)

    def _pause_s(self) -> float:
        """Return the pause until the next step; an empty table needs none but its heartbeat."""
        if not self._leases.share.total:
            return pause_together_s(self._leases.idle_s)
        next_s = min(self._renew_at_s, self._acquire_at_s)
        return max(next_s - self._clock.monotonic_s(), 0.0)

    async def stop(self) -> None:
        """Finish the statements under way and release every lease at once."""
        await self._end(list(self.works))
        try:
            async with await connect(self._url, name="eventhub leases") as connection:
                adapt(connection)
                with answered_within(connection, limits.FORWARD_STOP_S_MAX):
                    await self._leases.leave(connection)
        except (psycopg.Error, EventHubError, *CONNECTION_ERRORS) as error:
            log.warning("leases_left_to_expire", error=type(error).__name__)

    async def _renew_and_acquire(self, connection: Connection) -> None:
        now_s = self._clock.monotonic_s()
        if now_s >= self._renew_at_s:
            self._renew_at_s = now_s + limits.FORWARD_RENEW_INTERVAL_S
            with answered_within(connection, limits.FORWARD_LEASE_S):
                self._lose(await self._leases.renew(connection))
                if self.beat is not None:
                    await self.beat(connection)
            free_s = self._leases.share.free_s
            self._acquire_at_s = math.inf if free_s is None else now_s + free_s
            await self._share(connection)
        if now_s < self._acquire_at_s:
            return
        self._acquire_at_s = math.inf
        with answered_within(connection, limits.FORWARD_LEASE_S):
            taken = await self._leases.acquire(connection)
        for lease in taken:
            self._start(lease)
        if taken:
            self._acquire_at_s = now_s + limits.FORWARD_ACQUIRE_INTERVAL_S  # there may be more
        self._count.set(len(self.works))

    async def _share(self, connection: Connection) -> None:
        """Release some leases while another forwarder has less than its share. The database's time
        limit does not cover the time they take to stop.
        """
        count = self._leases.share.too_many(len(self.works))
        released = list(self.works)[:count]
        if released:
            await self._end(released)
            with answered_within(connection, limits.FORWARD_LEASE_S):
                await self._leases.release(connection, released)
            log.info(
                "leases_shared", released=len(released), forwarders=self._leases.share.forwarders
            )

    def _start(self, lease: L) -> None:
        work = self.works[lease] = self._work(lease)
        task = self._tasks[lease] = asyncio.create_task(self._run(lease, work))
        task.add_done_callback(lambda _: self._on_ended(lease))
        log.info("lease_taken", **self._leases.named(lease))

    async def _run(self, lease: L, work: W) -> None:
        try:
            await work.run()
        except LeaseLost:
            self._lose([lease])
        except Exception:
            log.exception("leased_work_failed", **self._leases.named(lease))
            self._leases.forget([lease])  # it expires, and is taken again

    def _on_ended(self, lease: L) -> None:
        self.works.pop(lease, None)
        self._tasks.pop(lease, None)

    def _lose(self, leases: Iterable[L]) -> None:
        for lease in leases:
            task = self._tasks.get(lease)
            self._leases.forget([lease])
            metrics.LEASES_LOST.inc()
            log.warning("lease_lost", **self._leases.named(lease))
            if task is not None and task is not asyncio.current_task():
                task.cancel()

    async def _end(self, leases: list[L]) -> None:
        """Stop tasks after their statement under way; cancel those that take too long."""
        tasks = [self._tasks[lease] for lease in leases if lease in self._tasks]
        for lease in leases:
            self.works[lease].stop()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=limits.FORWARD_STOP_S_MAX)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
