"""The results and releases that a dispatcher has yet to write to the database. SQL module.

Nothing is lost while the database is unavailable: results wait here, and the dispatcher stops
claiming when too many do. A claim whose result is never written expires, and its delivery is posted
again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import psycopg

from delivery.callbacks import claims
from delivery.callbacks.circuits import record_results, return_probes
from delivery.callbacks.claims import Claimed, LaneKey
from delivery.callbacks.failures import EndpointFailures
from delivery.callbacks.results import (
    DeliveredBatch,
    DeliveryResult,
    write_delivered,
    write_results,
)
from delivery.statistics.counting import AttemptCounter
from eventhub.base import limits, metrics
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within
from registrations.endpoints import health

log = get_logger(__name__)
throttled = ThrottledLog(log)
Disable = Callable[[Connection, int, str], Awaitable[object]]


class _OutboxBatch(NamedTuple):
    """What is written together, in this order: a lane is freed only after its results are
    written.
    """

    results: list[DeliveryResult]
    delivered: list[DeliveredBatch]
    returned: list[Claimed]
    lanes: list[tuple[LaneKey, str]]
    probes: list[int]  # endpoint ids

    @property
    def empty(self) -> bool:
        return not any(self)


class ResultOutbox:
    """Collects and writes results. `written` is called after a write, with True if lanes were left;
    `more_due` is called when an endpoint has recovered or may be probed again, when a lane that was
    left has more deliveries, and when claims were given back.

    Used by one event loop; only `run` writes.
    """

    def __init__(
        self,
        disable: Disable,
        failures: EndpointFailures,
        written: Callable[[bool], None],
        more_due: Callable[[], None],
    ) -> None:
        self._disable = disable
        self._failures = failures
        self._written = written
        self._writing = False
        self._more_due = more_due
        self._batch = _OutboxBatch([], [], [], [], [])
        self._attempts = AttemptCounter()
        self._counted_s = time.monotonic()  # when the counts were written last
        self._some = asyncio.Event()
        self._many = asyncio.Event()

    @property
    def full(self) -> bool:
        return (
            len(self._batch.results) >= limits.CALLBACK_UNWRITTEN_MAX
            or sum(each.deliveries for each in self._batch.delivered) >= limits.BATCH_UNWRITTEN_MAX
        )

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be written and nothing is being written."""
        return self._batch.empty and not self._writing

    def add(self, result: DeliveryResult) -> None:
        results = self._batch.results
        results.append(result)
        if len(results) == 1:
            self._some.set()
        if len(results) >= limits.CALLBACK_FLUSH_RESULTS_MAX:
            self._many.set()

    def add_delivered(self, batch: DeliveredBatch) -> None:
        """Take the results of deliveries that one request delivered."""
        self._batch.delivered.append(batch)
        self._some.set()

    def give_back(self, claimed: Claimed) -> None:
        """Release a claimed delivery that was not attempted, or whose attempt was interrupted."""
        self._batch.returned.append(claimed)
        if claimed.probe:
            self._batch.probes.append(claimed.endpoint_id)
        self._some.set()

    def return_probe(self, endpoint_id: int) -> None:
        """Return the probe of an endpoint that was not made."""
        self._batch.probes.append(endpoint_id)
        self._some.set()

    def leave(self, lane: LaneKey, token: str) -> None:
        """Free a lane."""
        self._batch.lanes.append((lane, token))
        self._some.set()

    def hurry(self) -> None:
        """Write at once if lanes are to be freed: no result will join them soon, and their next
        deliveries wait for it.
        """
        if self._batch.lanes:
            self._many.set()

    async def run(self, connection: Connection) -> None:
        """Write until cancelled; raise what psycopg raises when the database is unavailable."""
        while True:
            if not await self._wait_for_some():
                await self._write_counts(connection)
                continue
            if not self._many.is_set():
                await self._wait_for_many()
            await self.flush(connection)
            if time.monotonic() - self._counted_s > limits.ENDPOINT_STATISTICS_INTERVAL_S:
                await self._write_counts(connection)

    async def _wait_for_some(self) -> bool:
        """Wait for something to write; return False if only counts of attempts are due."""
        most_s = None if self._attempts.empty else limits.ENDPOINT_STATISTICS_INTERVAL_S
        try:
            async with asyncio.timeout(most_s):
                await self._some.wait()
        except TimeoutError:
            return False
        return True

    async def _wait_for_many(self) -> None:
        try:
            async with asyncio.timeout(limits.CALLBACK_FLUSH_INTERVAL_S):
                await self._many.wait()
        except TimeoutError:
            pass

    async def finish(self, connection: Connection) -> None:
        """Write everything collected, and the counts of attempts."""
        await self.flush(connection)
        await self._write_counts(connection)

    async def flush(self, connection: Connection) -> None:
        """Write everything collected. What cannot be written is put back."""
        self._some.clear()
        self._many.clear()
        batch, self._batch = self._batch, _OutboxBatch([], [], [], [], [])
        lanes, self._writing = bool(batch.lanes), True
        try:
            with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                await self._write(connection, batch)
        finally:
            self._writing = False
            self._put_back(batch)
        self._written(lanes)

    async def _write(self, connection: Connection, batch: _OutboxBatch) -> None:
        """Write a batch and remove from it what is written."""
        while batch.results or batch.delivered:
            part = batch.results[: limits.CALLBACK_FLUSH_RESULTS_MAX]
            delivered = batch.delivered[: limits.BATCH_FLUSH_REQUESTS_MAX]
            await _write_delivered(connection, delivered)
            await _write_part(connection, part)
            await _note_health(connection, part, delivered)
            if await record_results(connection, part, self._failures, delivered):
                self._more_due()
            self._attempts.add(part)
            self._attempts.add_delivered(delivered)
            del batch.results[: len(part)]
            del batch.delivered[: len(delivered)]
            for endpoint_id in {r.claimed.endpoint_id for r in part if r.decision.disables}:
                await self._disable(connection, endpoint_id, "gone")
        if batch.returned:
            await claims.give_back(connection, batch.returned)
            batch.returned.clear()
            self._more_due()
        if batch.probes:
            await return_probes(connection, batch.probes)
            batch.probes.clear()
            self._more_due()
        if batch.lanes:
            due = await claims.leave_lanes(connection, batch.lanes)
            batch.lanes.clear()
            if due:
                self._more_due()

    async def _write_counts(self, connection: Connection) -> None:
        """Write the counts of attempts; results count without them as well."""
        self._counted_s = time.monotonic()
        if self._attempts.empty:
            return
        try:
            with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                await self._attempts.write(connection)
        except CONNECTION_ERRORS:
            raise
        except psycopg.Error as error:
            throttled.warning("endpoint_statistics_not_written", reason=type(error).__name__)

    def _put_back(self, batch: _OutboxBatch) -> None:
        if batch.empty:
            return
        since = self._batch
        self._batch = _OutboxBatch(
            batch.results + since.results,
            batch.delivered + since.delivered,
            batch.returned + since.returned,
            batch.lanes + since.lanes,
            batch.probes + since.probes,
        )
        self._some.set()


async def _write_delivered(connection: Connection, batches: list[DeliveredBatch]) -> None:
    """Write the results of batches in one statement, or of one batch after the other if that is
    refused. A batch whose results are refused is dropped, and its claims expire.
    """
    if not batches:
        return
    try:
        written = await write_delivered(connection, batches, time.monotonic())
    except CONNECTION_ERRORS:
        raise
    except psycopg.Error as error:
        if len(batches) > 1:
            for each in batches:
                await _write_delivered(connection, [each])
            return
        log.error("callback_result_refused", reason=str(error), at=[*batches[0].parts][:1])
        return
    count = sum(each.deliveries for each in batches)
    metrics.CALLBACK_LATE_RESULTS.inc(count - written)
    metrics.CALLBACK_ATTEMPTS.labels("delivered").inc(count)


async def _write_part(connection: Connection, part: list[DeliveryResult]) -> None:
    """Write results in one statement, or one by one if that is refused. A single result that is
    refused is dropped, and its claim expires.
    """
    if not part:
        return
    try:
        written = await write_results(connection, part, time.monotonic())
    except CONNECTION_ERRORS:
        raise
    except psycopg.Error as error:
        if len(part) > 1:
            for each in part:
                await _write_part(connection, [each])
            return
        log.error("callback_result_refused", reason=str(error), at=part[0].claimed[:4])
        return
    metrics.CALLBACK_LATE_RESULTS.inc(len(part) - written.results)
    metrics.CALLBACK_DEAD_LETTERED.inc(written.dead_lettered)
    states = Counter(each.decision.state for each in part if each.outcome is None)
    metrics.CALLBACK_EXPIRED.inc(states["expired"])
    metrics.CALLBACK_CANCELLED.inc(states["cancelled"])
    for outcome, count in Counter(each.outcome for each in part).items():
        if outcome is not None:
            metrics.CALLBACK_ATTEMPTS.labels(outcome).inc(count)


async def _note_health(
    connection: Connection, part: list[DeliveryResult], delivered: list[DeliveredBatch]
) -> None:
    """Update the health of endpoints from their attempts; results count without it as well."""
    now_s = time.monotonic()
    attempts = [(each.claimed.endpoint_id, each.attempt) for each in part]
    attempts += [(each.endpoint_id, each.attempt) for each in delivered]
    notes = health.health_updates(
        health.EndpointAttempt(endpoint_id, attempt.outcome, attempt.status, attempt.age_us(now_s))
        for endpoint_id, attempt in attempts
        if attempt is not None
    )
    try:
        await health.write(connection, notes)
    except CONNECTION_ERRORS:
        raise
    except psycopg.Error as error:
        throttled.warning("endpoint_health_not_written", reason=type(error).__name__)
