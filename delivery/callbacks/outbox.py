"""What the drain has to tell the database: results first, then what it gives back. SQL module.

Nothing is lost while the database is away: results wait here, and the drain claims no more when too
many do. What never arrives is a claim that ends by itself, and its delivery is posted again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import psycopg

from delivery.callbacks import claims
from delivery.callbacks.backoffs import note, return_probes
from delivery.callbacks.claims import Claimed, Lane
from delivery.callbacks.health import Health
from delivery.callbacks.results import Result, write_results
from eventhub.base import limits, metrics
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within
from registrations.endpoints import health

log = get_logger(__name__)
throttled = ThrottledLog(log)
Disable = Callable[[Connection, int, str], Awaitable[object]]


class _Batch(NamedTuple):
    """What is written in this order: a lane is left only when its results are there."""

    results: list[Result]
    returned: list[Claimed]
    lanes: list[tuple[Lane, str]]
    probes: list[int]  # endpoints

    @property
    def empty(self) -> bool:
        return not any(self)


class Outbox:
    """Collects and writes. `written` is called when something was, with true if lanes were left, so
    that they are claimed again; `again` when there is more to claim: an endpoint answers again, or
    may be probed at once.

    One loop uses it; `run` writes, everything else only collects.
    """

    def __init__(
        self,
        disable: Disable,
        health: Health,
        written: Callable[[bool], None],
        again: Callable[[], None],
    ) -> None:
        self._disable = disable
        self._health = health
        self._written = written
        self._writing = False
        self._again = again
        self._batch = _Batch([], [], [], [])
        self._some = asyncio.Event()
        self._many = asyncio.Event()

    @property
    def full(self) -> bool:
        return len(self._batch.results) >= limits.CALLBACK_UNWRITTEN_MAX

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be written, and nothing is being written."""
        return self._batch.empty and not self._writing

    def add(self, result: Result) -> None:
        results = self._batch.results
        results.append(result)
        if len(results) == 1:
            self._some.set()
        if len(results) >= limits.CALLBACK_FLUSH_RESULTS_MAX:
            self._many.set()

    def give_back(self, claimed: Claimed) -> None:
        """A claimed delivery that was not tried, or whose try was broken off."""
        self._batch.returned.append(claimed)
        if claimed.probe:
            self._batch.probes.append(claimed.endpoint_id)
        self._some.set()

    def return_probe(self, endpoint_id: int) -> None:
        """The one request to an endpoint that backs off was not made."""
        self._batch.probes.append(endpoint_id)
        self._some.set()

    def leave(self, lane: Lane, token: str) -> None:
        """A lane is done with, for now."""
        self._batch.lanes.append((lane, token))
        self._some.set()

    async def run(self, connection: Connection) -> None:
        """Write until cancelled; raises what psycopg raises when the database is away."""
        while True:
            await self._some.wait()
            if not self._many.is_set():
                await self._wait_for_many()
            await self.flush(connection)

    async def _wait_for_many(self) -> None:
        try:
            async with asyncio.timeout(limits.CALLBACK_FLUSH_INTERVAL_S):
                await self._many.wait()
        except TimeoutError:
            pass

    async def flush(self, connection: Connection) -> None:
        """Write all that is there. What could not be written is there again."""
        self._some.clear()
        self._many.clear()
        batch, self._batch = self._batch, _Batch([], [], [], [])
        lanes, self._writing = bool(batch.lanes), True
        try:
            with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                await self._write(connection, batch)
        finally:
            self._writing = False
            self._put_back(batch)
        self._written(lanes)

    async def _write(self, connection: Connection, batch: _Batch) -> None:
        """Takes out of the batch what is written."""
        while batch.results:
            part = batch.results[: limits.CALLBACK_FLUSH_RESULTS_MAX]
            await _write_part(connection, part)
            if await note(connection, part, self._health):
                self._again()
            del batch.results[: len(part)]
            for endpoint_id in {r.claimed.endpoint_id for r in part if r.decision.gone}:
                await self._disable(connection, endpoint_id, "gone")
        if batch.returned:
            await claims.give_back(connection, batch.returned)
            batch.returned.clear()
        if batch.probes:
            await return_probes(connection, batch.probes)
            batch.probes.clear()
            self._again()
        if batch.lanes:
            await claims.leave_lanes(connection, batch.lanes)
            batch.lanes.clear()

    def _put_back(self, batch: _Batch) -> None:
        if batch.empty:
            return
        since = self._batch
        self._batch = _Batch(
            batch.results + since.results,
            batch.returned + since.returned,
            batch.lanes + since.lanes,
            batch.probes + since.probes,
        )
        self._some.set()


async def _write_part(connection: Connection, part: list[Result]) -> None:
    """One statement, or one for each if it is refused; a single one that is refused is dropped, and
    its claim ends by itself.
    """
    try:
        written = await write_results(connection, part, time.monotonic())
    except CONNECTION_ERRORS:
        raise
    except psycopg.Error as error:
        if len(part) > 1:
            for each in part:
                await _write_part(connection, [each])
            return
        log.error("callback_result_refused", reason=str(error), at=part[0].claimed[:5])
        return
    await _note_health(connection, part)
    metrics.CALLBACK_LATE_RESULTS.inc(len(part) - written.results)
    metrics.CALLBACK_DEAD_LETTERED.inc(written.dead_lettered)
    for outcome, count in Counter(each.outcome for each in part).items():
        if outcome is None:
            metrics.CALLBACK_EXPIRED.inc(count)
        else:
            metrics.CALLBACK_ATTEMPTS.labels(outcome).inc(count)


async def _note_health(connection: Connection, part: list[Result]) -> None:
    """What the attempts say of their endpoints; without it the results count all the same."""
    now_s = time.monotonic()
    notes = health.noted(
        health.Tried(each.claimed.endpoint_id, tried.outcome, tried.status, tried.age_us(now_s))
        for each, tried in ((result, result.attempt) for result in part)
        if tried is not None
    )
    try:
        await health.write(connection, notes)
    except CONNECTION_ERRORS:
        raise
    except psycopg.Error as error:
        throttled.warning("endpoint_health_not_written", reason=type(error).__name__)
