"""Drains what is due, in units of work: each claims as slots get free, has it posted, and ends when
nothing is left that it could claim. SQL module.

One event loop; PostgreSQL says what is due. Between units the drain waits for a notice of new
deliveries, for their time, or for a look in case a notice was lost, and then has the next unit
begun. Any number of drains work beside each other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple

import psycopg

from delivery.callbacks import claims
from delivery.callbacks.claiming import Claiming
from delivery.callbacks.client import Client
from delivery.callbacks.guard import Guard
from delivery.callbacks.health import Health
from delivery.callbacks.heartbeat import Alive
from delivery.callbacks.load import Loader
from delivery.callbacks.outbox import Disable, Outbox
from delivery.callbacks.posting import Parts, Posting
from delivery.callbacks.slots import Slots
from eventhub.base import limits, metrics
from eventhub.base.clock import SystemClock
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import LINE_CHARS_MAX, ThrottledLog, get_logger
from eventhub.eventlog.log import ReadsArchive
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within
from registrations.endpoints.addresses import CallbackAddresses

log = get_logger(__name__)
throttled = ThrottledLog(log)
OnConnection = Callable[[Connection], Awaitable[None]]
_LOST = (psycopg.Error, *CONNECTION_ERRORS)


class Terms(NamedTuple):
    """What a drain needs to know. `direct_url` is the database's own where the other is a pooler's;
    `disable` ends an endpoint that answered 410.
    """

    database_url: str
    direct_url: str
    secret_key: str
    addresses: CallbackAddresses
    disable: Disable
    archive: ReadsArchive | None = None


class Drain:
    """One worker's drain. `run` it in one event loop, and await `unit` there for each unit of work.

    `begin` is called in the loop when a unit should begin; it returns at once, and sees to it that
    somebody awaits `unit`.
    """

    def __init__(self, terms: Terms, begin: Callable[[], None]) -> None:
        self._terms = terms
        self._begin = begin
        self._clock = SystemClock()
        self._guard = Guard(terms.addresses)
        self._client = Client(self._guard)
        self._stir = asyncio.Event()  # something has changed ...
        self._look = True  # ... that may have made something due
        self._more = False  # the last look left something behind
        self._goes_on = False  # the last unit reached its bound with more to do
        self._stopping = False
        self._over = asyncio.Event()  # no unit is at work
        self._over.set()
        self._begun = asyncio.Event()  # the unit that was asked for
        self._failures = 0  # of units, in a row
        self._using = asyncio.Lock()
        self._connection: Connection | None = None  # of looks and units
        self._claims = False  # the unit's last turn claimed something ...
        self._claimed_s = 0.0  # ... and when one did
        health = Health()
        slots = Slots(self._clock)
        alive = Alive(self._clock, self.wake, lambda: bool(self._posting.requests))
        outbox = Outbox(terms.disable, health, self._written, self.wake)
        parts = Parts(self._clock, Random(), slots, health, alive, outbox)  # noqa: S311 - spreads retries
        self._slots, self._alive, self._outbox = slots, alive, outbox
        self._posting = Posting(parts, self._client, self._freed, self._stir.set)
        loader = Loader(terms.secret_key, self._clock, terms.archive)
        self._claiming = Claiming(parts, loader, self._posting)

    def wake(self) -> None:
        """Look now."""
        self._look = True
        self._stir.set()

    @property
    def under_way(self) -> dict[str, int]:
        """For people: slots that are held, and requests and ordered lanes."""
        return {"slots": self._slots.held, "requests": len(self._posting.requests)}

    async def run(self, stop: asyncio.Event) -> None:
        """Drain until `stop` is set; then wait a little for answers, and give back the rest."""
        looking = asyncio.create_task(self._look_out())
        writing = asyncio.create_task(self._connected("results", self._outbox.run))
        living = asyncio.create_task(
            self._connected("alive", self._alive.run, self._terms.direct_url)
        )
        await stop.wait()
        self._stopping = self._posting.stopping = True
        self._stir.set()
        await asyncio.wait([looking], timeout=limits.CALLBACK_STOP_S_MAX / 4)
        await self._finish(looking, writing, living)
        self._disconnect()  # ends a unit that waits for the database
        self._client.close()
        self._guard.close()

    async def unit(self) -> int:
        """Claim and post until nothing is left that this worker has room for, or a bound is
        reached; returns the number of deliveries claimed. Requests that are slow go on afterwards.
        At once 0 while another unit is at work. Raises DatabaseUnavailable.
        """
        if not self._over.is_set() or self._stopping:
            self.wake()
            return 0
        self._over.clear()
        self._begun.set()
        before = self._claiming.count
        try:
            async with self._using:
                await self._work()
            self._failures = 0
        except (DatabaseUnavailable, *_LOST) as error:
            self._failed(error)
            raise DatabaseUnavailable() from error
        except Exception as error:
            log.exception("callbacks_failed", part="unit")
            self._failed(error)
            raise
        finally:
            self._over.set()
            self._stir.set()  # the time to the next look begins anew
        return self._claiming.count - before

    async def _finish(self, *tasks: asyncio.Task[None]) -> None:
        """Answers that come in time are written, requests that are left are given back."""
        if self._posting.requests:
            await asyncio.wait(self._posting.requests, timeout=limits.CALLBACK_STOP_S_MAX / 2)
        left = [*self._posting.requests, *tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        try:
            async with asyncio.timeout(limits.CALLBACK_STOP_S_MAX / 4):
                await self._with_connection("last results", self._end)
        except (DatabaseUnavailable, *_LOST) as error:
            log.warning("callback_results_lost", reason=type(error).__name__)

    async def _end(self, connection: Connection) -> None:
        await self._outbox.flush(connection)
        await self._alive.free_lost(connection)
        await self._alive.leave(connection)

    async def _connected(self, name: str, work: OnConnection, url: str = "") -> None:
        """Do the work on a connection, and on another one when that breaks; nothing ends it but the
        stop.
        """
        pause_s = limits.RECONNECT_PAUSE_S
        while not self._stopping:
            began_s = self._clock.monotonic_s()
            try:
                await self._with_connection(name, work, url)
            except (DatabaseUnavailable, *_LOST) as error:
                _tell_away(error)
            except Exception:
                log.exception("callbacks_failed", part=name)
            if self._clock.monotonic_s() - began_s > 2 * limits.CONNECT_TIMEOUT_S:
                pause_s = limits.RECONNECT_PAUSE_S  # it was connected
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.RECONNECT_PAUSE_S_MAX)

    async def _with_connection(self, name: str, work: OnConnection, url: str = "") -> None:
        connection = await claims.open_connection(url or self._terms.database_url, name)
        try:
            await work(connection)
        finally:
            connection.pgconn.finish()  # at once, also when the server does not answer

    async def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = await claims.open_connection(self._terms.database_url, "drain")
            await self._alive.free_lost(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()  # at once, also when the server does not answer

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._more = False  # slots that get free are no reason to look
        self._disconnect()
        _tell_away(error)

    async def _look_out(self) -> None:
        """Have units begun, until stopped."""
        while not self._stopping:
            await self._over.wait()
            if not self._goes_on and not await self._paused(self._interval_s()):
                continue
            if self._over.is_set() and (self._goes_on or await self._is_due()):
                self._goes_on = False
                self._begun.clear()
                self._begin()
                with suppress(TimeoutError):
                    async with asyncio.timeout(2 * limits.CALLBACK_UNIT_START_S):
                        await self._begun.wait()

    async def _is_due(self) -> bool:
        self._look = False
        if not self._has_room():
            return False
        try:
            async with self._using:
                connection = await self._connect()
                with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                    found = await self._claiming.finds(connection)
        except (DatabaseUnavailable, *_LOST):
            self._disconnect()
            return True  # the unit will fail as well, and is tried again as its policy says
        self._failures = 0
        return found

    def _interval_s(self) -> float:
        """How long to wait for a notice before the next look. After a failure whoever had the unit
        run tries again; this is for when that does not come.
        """
        if self._failures:
            pause_s = 2.0 ** min(self._failures, 10)
            return min(limits.CALLBACK_UNIT_RETRY_S_MAX, pause_s) + limits.CALLBACK_UNIT_START_S
        if self._claiming.cut:
            return limits.CALLBACK_SCAN_NEXT_S
        idle_s = self._clock.monotonic_s() - self._claiming.pending_s
        is_idle = not self._posting.requests and idle_s > limits.CALLBACK_REST_AFTER_S
        return limits.CALLBACK_REST_INTERVAL_S if is_idle else limits.CALLBACK_SCAN_INTERVAL_S

    async def _paused(self, most_s: float) -> bool:
        """Wait until something stirs; true if it is time to look."""
        try:
            async with asyncio.timeout(most_s):
                await self._stir.wait()
        except TimeoutError:
            return True
        self._stir.clear()
        return self._look

    async def _work(self) -> None:
        connection = await self._connect()
        self._claimed_s = self._clock.monotonic_s()
        until_s = self._claimed_s + limits.CALLBACK_UNIT_S_MAX
        most = self._claiming.count + limits.CALLBACK_UNIT_DELIVERIES_MAX
        look = True
        while not self._stopping:
            if look:
                await self._turn(connection)
                if self._claiming.count >= most or self._clock.monotonic_s() >= until_s:
                    self._goes_on = self._more
                    return
            if self._is_done():
                return
            next_s = limits.CALLBACK_SCAN_INTERVAL_S
            look = await self._paused(limits.CALLBACK_SCAN_NEXT_S if self._claiming.cut else next_s)
            if look and self._more:
                await asyncio.sleep(limits.CALLBACK_GATHER_S)

    async def _turn(self, connection: Connection) -> None:
        """Claim once."""
        before = self._claiming.count
        self._look, self._more = False, True
        if self._has_room():
            with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                self._more = await self._claiming.claim(connection)
        self._claims = self._claiming.count > before
        if self._claims:
            self._claimed_s = self._clock.monotonic_s()
        metrics.CALLBACK_SLOTS.set(self._slots.held)

    def _is_done(self) -> bool:
        """Everything that could be claimed is posted and its results are written, or what is left
        is slow.
        """
        if self._claiming.cut or (self._claims and self._more):
            return False
        if not self._posting.requests and self._outbox.empty:
            return True
        return self._clock.monotonic_s() - self._claimed_s > limits.CALLBACK_SLOW_S

    def _has_room(self) -> bool:
        return self._alive.now and self._slots.free > 0 and not self._outbox.full

    def _freed(self) -> None:
        if self._more:
            self.wake()

    def _written(self, lanes: bool) -> None:
        """Results are written, and lanes were left if `lanes`."""
        if lanes and self._posting.lanes_go_on:
            self._posting.lanes_go_on = False
            self.wake()
        if lanes:
            self._freed()
        self._stir.set()  # the unit may be over


def _tell_away(error: Exception) -> None:
    """With what the server or the driver said: the database may be there under another name."""
    detail = " ".join(str(error.__cause__ or error).split())[:LINE_CHARS_MAX]
    throttled.warning("callbacks_wait_for_database", reason=type(error).__name__, detail=detail)
