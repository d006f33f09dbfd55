"""Renews the leases of a forwarder from a thread while its event loop is blocked: one event may
match so many filters that the loop cannot renew in time. SQL module.

Without this another forwarder would take the stream, be blocked by the same event for as long, and
lose it again: the event would never be passed. A loop that is blocked for longer than any event
takes is considered hung, and its leases expire.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Generic

import psycopg

from delivery.forward.leases import L, Leases
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.arrays import adapt
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within, connect

throttled = ThrottledLog(get_logger(__name__))
_PAUSE_S = limits.FORWARD_RENEW_INTERVAL_S / 2


@asynccontextmanager
async def background_renewal(
    leases: Leases[L], url: str, clock: Clock, lose: Callable[[Iterable[L]], None]
) -> AsyncIterator["BackgroundRenewal[L]"]:
    """Renew the leases from a thread until the block is left. `lose` is called in the event
    loop.
    """
    background = BackgroundRenewal(leases, url, clock, lose)
    thread = threading.Thread(target=background.run, name="lease renewal", daemon=True)
    thread.start()
    try:
        yield background
    finally:
        background.end()


class BackgroundRenewal(Generic[L]):
    """The state shared by thread and event loop: the loop's last sign of progress, and the
    leases.
    """

    def __init__(
        self, leases: Leases[L], url: str, clock: Clock, lose: Callable[[Iterable[L]], None]
    ) -> None:
        self._ended = False
        self._leases = leases
        self._url = url
        self._clock = clock
        self._lose = lose
        self._loop = asyncio.get_running_loop()
        self._progress_s = clock.monotonic_s()
        self._connection: Connection | None = None

    def record_progress(self) -> None:
        """Record that the event loop is about to renew, or need not yet."""
        self._progress_s = self._clock.monotonic_s()

    def end(self) -> None:
        self._ended = True
        self._leases.some.set()

    def run(self) -> None:
        """Run the thread. It wakes at half of a lease's time, and sleeps while there is none."""
        with asyncio.Runner() as runner:
            while True:
                left_s = self._leases.left_s()
                if self._ended:
                    break
                if left_s is None:
                    self._leases.some.wait()
                    continue
                if 0 < left_s <= limits.FORWARD_LEASE_S / 2 and self._loop_is_trusted():
                    runner.run(self._renew())
                time.sleep(max(left_s - limits.FORWARD_LEASE_S / 2, _PAUSE_S))
            if self._connection is not None:
                runner.run(self._connection.close())

    def _loop_is_trusted(self) -> bool:
        """Return False if the loop is blocked for longer than any event takes: it hangs."""
        return self._clock.monotonic_s() - self._progress_s < limits.FORWARD_HELD_S_MAX

    async def _renew(self) -> None:
        held_s = self._clock.monotonic_s() - self._progress_s
        throttled.warning("forwarder_held", held_s=round(held_s, 2))
        try:
            if self._connection is None:
                self._connection = await connect(self._url, name="eventhub lease renewal")
                adapt(self._connection)
            with answered_within(self._connection, limits.FORWARD_LEASE_S):
                lost = await self._leases.renew(self._connection)
        except (psycopg.Error, EventHubError, *CONNECTION_ERRORS) as error:
            throttled.warning("leases_not_renewed", error=type(error).__name__)
            if self._connection is not None:
                await self._connection.close()
            self._connection = None
            return
        metrics.LEASE_THREAD_RENEWALS.inc()
        if lost:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._lose, lost)
