"""The dispatcher of a worker: posts due deliveries in units of work. Each unit claims as slots
become free, posts, and ends when nothing is left that it could claim. SQL module.

One event loop; PostgreSQL decides what is due. Between units the dispatcher waits for a
notification of new deliveries, for the time of a retry, or for a periodic scan in case a
notification was lost, and then requests the next unit. Any number of dispatchers work in parallel.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple

import psycopg

from delivery.callbacks import claims
from delivery.callbacks.claiming import Claiming
from delivery.callbacks.client import HttpClient
from delivery.callbacks.failures import EndpointFailures
from delivery.callbacks.guard import Guard
from delivery.callbacks.heartbeat import WorkerHeartbeat
from delivery.callbacks.load import Loader
from delivery.callbacks.outbox import Disable, ResultOutbox
from delivery.callbacks.posting import DispatcherContext, Posting
from delivery.callbacks.sending import DeliverySender
from delivery.callbacks.sink_store import SinkStore
from delivery.callbacks.slots import CallbackSlots
from delivery.callbacks.tokens import TokenSource
from delivery.callbacks.verifier import EndpointVerifier
from eventhub.base import limits, metrics
from eventhub.base.clock import SystemClock
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import LINE_CHARS_MAX, ThrottledLog, get_logger
from eventhub.eventlog.stored import ReadsArchive
from eventhub.monitoring.heartbeat import Beat
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within
from registrations.endpoints.addresses import AllowedAddresses
from registrations.endpoints.secrets import Keyring

log = get_logger(__name__)
throttled = ThrottledLog(log)
OnConnection = Callable[[Connection], Awaitable[None]]
_LOST = (psycopg.Error, *CONNECTION_ERRORS)


class DispatcherSettings(NamedTuple):
    """The settings of a dispatcher. `direct_url` is the database's own URL where `database_url`
    leads to a pooler; `disable` disables an endpoint that answered 410; `sender` is the hub's name
    in the CloudEvents handshake.
    """

    database_url: str
    direct_url: str
    keyring: Keyring
    addresses: AllowedAddresses
    disable: Disable
    archive: ReadsArchive | None = None
    sender: str = "eventhub"


class CallbackDispatcher:
    """One worker's dispatcher. Run `run` in one event loop, and await `unit` there for each unit of
    work.

    `request_unit` is called in the loop when a unit should start; it returns at once and arranges
    that `unit` is awaited. `beat_member` sends the process's heartbeat as a member of the hub.
    """

    def __init__(
        self, settings: DispatcherSettings, request_unit: Callable[[], None], beat_member: Beat
    ) -> None:
        self._settings = settings
        self._request_unit = request_unit
        self._clock = SystemClock()
        self._guard = Guard(settings.addresses)
        self._client = HttpClient(self._guard)
        self._sinks = SinkStore(settings.addresses, self._client)
        self._changed = asyncio.Event()  # something has changed ...
        self._scan_requested = True  # ... that may have made something due
        self._has_more = False  # the last scan did not claim everything ...
        self._at_once = False  # ... although there is room
        self._continues = False  # the last unit reached its bound with more to do
        self._stopping = False
        self._idle = asyncio.Event()  # no unit is running
        self._idle.set()
        self._started = asyncio.Event()  # the requested unit
        self._failures = 0  # of units, in a row
        self._connection_lock = asyncio.Lock()
        self._connection: Connection | None = None  # of scans and units
        self._claims = False  # a claim is running ...
        self._freed = False  # ... and slots became free since it began
        self._claimed = 0  # by the unit's last claim ...
        self._claimed_s = 0.0  # ... and the time of the last one that was not empty
        failures = EndpointFailures()
        slots = CallbackSlots(self._clock)
        heartbeat = WorkerHeartbeat(
            self._clock, self.wake, lambda: bool(self._posting.requests), self._is_idle, beat_member
        )
        outbox = ResultOutbox(settings.disable, failures, self._on_results_written, self.wake)
        self._tokens = TokenSource(
            settings.database_url,
            settings.keyring,
            HttpClient(self._guard, limits.CALLBACK_ANSWER_BYTES_READ_MAX),
        )
        context = DispatcherContext(
            self._clock,
            Random(),  # noqa: S311 - spreads retries
            slots,
            failures,
            heartbeat,
            outbox,
            DeliverySender(self._client, self._tokens, self._sinks),
        )
        self._slots, self._heartbeat, self._outbox = slots, heartbeat, outbox
        self._posting = Posting(context, self._on_slot_free, self._changed.set)
        loader = Loader(settings.keyring, self._clock, settings.archive, settings.sender)
        self._claiming = Claiming(context, loader, self._posting)
        self._verifier = EndpointVerifier(
            self._client, self._tokens, loader, self._sinks, settings.sender
        )

    def wake(self) -> None:
        """Scan for due deliveries now."""
        self._scan_requested = True
        self._changed.set()

    @property
    def under_way(self) -> dict[str, int]:
        """The slots that are held, and the requests and ordered lanes under way, for display."""
        return {"slots": self._slots.held, "requests": len(self._posting.requests)}

    async def run(self, stop: asyncio.Event) -> None:
        """Dispatch until `stop` is set; then wait briefly for responses and give back the rest."""
        scheduling = asyncio.create_task(self._schedule_units())
        writing = asyncio.create_task(self._keep_connected("results", self._outbox.run))
        beating = asyncio.create_task(
            self._keep_connected("alive", self._heartbeat.run, self._settings.direct_url)
        )
        verifying = asyncio.create_task(
            self._keep_connected("verifications", self._verifier.run, self._settings.direct_url)
        )
        await stop.wait()
        self._stopping = self._posting.stopping = True
        self._changed.set()
        await asyncio.wait([scheduling], timeout=limits.CALLBACK_STOP_S_MAX / 4)
        await self._finish(scheduling, writing, beating, verifying)
        self._disconnect()  # ends a unit that waits for the database
        self._client.close()
        self._sinks.close()
        self._tokens.close()
        self._guard.close()

    async def unit(self) -> int:
        """Claim and post until nothing is left that this worker has slots for, or a bound is
        reached; return the number of deliveries claimed. Slow requests continue afterwards. Return
        0 at once while another unit is running. Raises DatabaseUnavailable.
        """
        if not self._idle.is_set() or self._stopping:
            self.wake()
            return 0
        self._idle.clear()
        self._started.set()
        before = self._claiming.count
        try:
            async with self._connection_lock:
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
            self._idle.set()
            self._changed.set()  # restarts the wait for the next scan
        return self._claiming.count - before

    async def _finish(self, *tasks: asyncio.Task[None]) -> None:
        """Write the results of requests that end in time, and give back the others."""
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
        await self._outbox.finish(connection)
        await self._heartbeat.free_unconfirmed(connection)
        await self._heartbeat.leave(connection)

    async def _keep_connected(self, name: str, work: OnConnection, url: str = "") -> None:
        """Do the work on a connection, and reconnect when that breaks, until stopped."""
        pause_s = limits.RECONNECT_PAUSE_S
        while not self._stopping:
            started_s = self._clock.monotonic_s()
            try:
                await self._with_connection(name, work, url)
            except (DatabaseUnavailable, *_LOST) as error:
                _log_database_away(error)
            except Exception:
                log.exception("callbacks_failed", part=name)
            if self._clock.monotonic_s() - started_s > 2 * limits.CONNECT_TIMEOUT_S:
                pause_s = limits.RECONNECT_PAUSE_S  # it was connected
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.RECONNECT_PAUSE_S_MAX)

    async def _with_connection(self, name: str, work: OnConnection, url: str = "") -> None:
        connection = await claims.open_connection(url or self._settings.database_url, name)
        try:
            await work(connection)
        finally:
            connection.pgconn.finish()  # at once, also when the server does not answer

    async def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = await claims.open_connection(
                self._settings.database_url, "dispatcher"
            )
            await self._heartbeat.free_unconfirmed(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()  # at once, also when the server does not answer

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._has_more = False  # free slots do not trigger a scan
        self._disconnect()
        _log_database_away(error)

    async def _schedule_units(self) -> None:
        """Request units until stopped."""
        while not self._stopping:
            await self._idle.wait()
            if not self._continues and not await self._paused(self._interval_s()):
                continue
            if self._idle.is_set() and (self._continues or await self._is_due()):
                self._continues = False
                self._started.clear()
                self._request_unit()
                with suppress(TimeoutError):
                    async with asyncio.timeout(2 * limits.CALLBACK_UNIT_START_S):
                        await self._started.wait()

    async def _is_due(self) -> bool:
        self._scan_requested = False
        if not self._has_room():
            return False
        try:
            async with self._connection_lock:
                connection = await self._connect()
                with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                    found = await self._claiming.has_due(connection)
        except (DatabaseUnavailable, *_LOST):
            self._disconnect()
            return True  # the unit fails as well, and is retried by its policy
        self._failures = 0
        return found

    def _interval_s(self) -> float:
        """Return how long to wait for a notification before the next scan. After a failure the
        caller of the unit retries it; the interval only matters if that retry is lost.
        """
        if self._failures:
            pause_s = 2.0 ** min(self._failures, 10)
            return min(limits.CALLBACK_UNIT_RETRY_S_MAX, pause_s) + limits.CALLBACK_UNIT_START_S
        if self._claiming.is_partial or self._claiming.is_throttled:
            return self._next_scan_s()
        if self._is_idle():
            return limits.CALLBACK_REST_INTERVAL_S
        return min(limits.CALLBACK_SCAN_INTERVAL_S, self._claiming.linger_s)

    def _is_idle(self) -> bool:
        """Return whether no delivery was pending for a while, also none that others claimed."""
        idle_s = self._clock.monotonic_s() - self._claiming.pending_s
        return not self._posting.requests and idle_s > limits.CALLBACK_REST_AFTER_S

    async def _paused(self, most_s: float) -> bool:
        """Wait for a change; return True if it is time to scan."""
        try:
            async with asyncio.timeout(most_s):
                await self._changed.wait()
        except TimeoutError:
            return True
        self._changed.clear()
        return self._scan_requested

    async def _work(self) -> None:
        connection = await self._connect()
        self._claimed_s = self._clock.monotonic_s()
        until_s = self._claimed_s + limits.CALLBACK_UNIT_S_MAX
        claims_max = self._claiming.count + limits.CALLBACK_UNIT_DELIVERIES_MAX
        scan = True
        while not self._stopping:
            if scan:
                await self._claim_once(connection)
                if self._claiming.count >= claims_max or self._clock.monotonic_s() >= until_s:
                    self._continues = self._has_more
                    return
            if self._is_done():
                return
            if self._at_once:
                continue
            scan = await self._paused(self._next_scan_s())
            if scan and (self._has_more or self._claimed >= limits.CALLBACK_GATHER_DELIVERIES_MIN):
                await asyncio.sleep(limits.CALLBACK_GATHER_S)

    def _next_scan_s(self) -> float:
        """Return how long to wait within a unit for a notification before the next scan."""
        if self._claiming.is_partial:
            return limits.CALLBACK_SCAN_NEXT_S
        if self._claiming.is_throttled:
            return limits.CALLBACK_THROTTLED_SCAN_S
        return min(limits.CALLBACK_SCAN_INTERVAL_S, self._claiming.linger_s)

    async def _claim_once(self, connection: Connection) -> None:
        """Claim once, if there is room."""
        before = self._claiming.count
        self._scan_requested, self._has_more, self._at_once = False, True, False
        if self._has_room():
            self._claims, self._freed = True, False
            try:
                with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                    self._has_more = await self._claiming.claim(connection)
            finally:
                self._claims = False
            if self._freed:
                self._on_slot_free()
            self._at_once = self._claiming.is_bounded
        self._claimed = self._claiming.count - before
        if self._claimed:
            self._claimed_s = self._clock.monotonic_s()
        metrics.CALLBACK_SLOTS.set(self._slots.held)

    def _is_done(self) -> bool:
        """Return True if everything claimable is posted and written, and nothing was claimed for a
        while, or only slow requests remain.
        """
        if self._claiming.is_partial or (self._claimed and self._has_more):
            return False
        if self._claiming.is_throttled:
            return False
        since_s = self._clock.monotonic_s() - self._claimed_s
        if not self._posting.requests and self._outbox.empty:
            return since_s > limits.CALLBACK_UNIT_LINGER_S
        return since_s > limits.CALLBACK_SLOW_S

    def _has_room(self) -> bool:
        return self._heartbeat.is_alive and self._slots.free > 0 and not self._outbox.full

    def _on_slot_free(self) -> None:
        self._freed = True
        if self._has_more and not self._claims:
            self.wake()

    def _on_results_written(self, lanes: bool) -> None:
        """Continue after results were written; `lanes`: lanes were left with them."""
        if lanes:
            self._on_slot_free()
        if self._claiming.is_throttled:  # fewer requests are under way
            self.wake()
        self._changed.set()  # the unit may be done


def _log_database_away(error: Exception) -> None:
    """Log that the database is unavailable, with the text of the server or driver, which may name
    another database than the operator expects.
    """
    detail = " ".join(str(error.__cause__ or error).split())[:LINE_CHARS_MAX]
    throttled.warning("callbacks_wait_for_database", reason=type(error).__name__, detail=detail)
