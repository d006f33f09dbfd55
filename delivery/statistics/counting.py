"""Counts the attempts at endpoints by minute and by hour. SQL module.

A worker counts in memory and adds its counts to the rows of the present minute and hour once a
second, so the cost does not grow with the number of attempts. A worker that is killed loses the
counts of its last second: these figures serve operators, the deliveries and their attempts are the
record.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from delivery.callbacks.results import DeliveredBatch, DeliveryResult
from delivery.statistics.histogram import count_in
from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection, connect

SQL = queries.load("delivery/sql/statistics.sql")
# How attempts end, in the order of the columns; every other failure is of the last one.
OUTCOME_CLASSES = (
    "delivered",
    "client_errors",
    "server_errors",
    "timeouts",
    "connection_errors",
    "other_failures",
)
_DELIVERED, _CLIENT_ERROR, _SERVER_ERROR, _TIMEOUT, _CONNECTION, _OTHER = range(6)
_BY_OUTCOME = {
    "delivered": _DELIVERED,
    "timeout": _TIMEOUT,
    **dict.fromkeys(("unknown_host", "connection", "tls", "refused_address"), _CONNECTION),
}
_BY_STATUS = {4: _CLIENT_ERROR, 5: _SERVER_ERROR}


class _EndpointCounts(NamedTuple):
    """The attempts at an endpoint since the last write."""

    outcomes: list[int]  # by class
    durations: list[int]  # a histogram of all attempts
    latencies: list[int]  # a histogram, from the append of the event to its acknowledgement


class AttemptCounter:
    """The attempts of one worker that are not written yet. Used by one event loop."""

    def __init__(self) -> None:
        self._counts: dict[int, _EndpointCounts] = {}  # by endpoint id

    @property
    def empty(self) -> bool:
        return not self._counts

    def add(self, results: Sequence[DeliveryResult]) -> None:
        """Count the attempts among results."""
        for result in results:
            attempt = result.attempt
            if attempt is None:
                continue
            counts = self._counts_of(result.claimed.endpoint_id)
            counts.outcomes[outcome_class(attempt.outcome, attempt.status)] += 1
            count_in(counts.durations, attempt.duration_ms)
            if result.latency_ms is not None:
                count_in(counts.latencies, result.latency_ms)

    def add_delivered(self, batches: Sequence[DeliveredBatch]) -> None:
        """Count the attempts of deliveries that were delivered in batches."""
        for batch in batches:
            counts = self._counts_of(batch.endpoint_id)
            counts.outcomes[_DELIVERED] += batch.deliveries
            count_in(counts.durations, batch.attempt.duration_ms, batch.deliveries)
            for latency_ms, times in batch.latencies_ms.items():
                count_in(counts.latencies, latency_ms, times)

    def _counts_of(self, endpoint_id: int) -> _EndpointCounts:
        counts = self._counts.get(endpoint_id)
        if counts is None:
            counts = self._counts[endpoint_id] = _EndpointCounts([0] * 6, [], [])
        return counts

    async def write(self, connection: Connection) -> None:
        """Add the counts to the present minute and hour; what cannot be written is kept. A worker
        that is stopped meanwhile waits for the answer: a write that was interrupted may have been
        committed, and would be counted twice. Raises psycopg's errors.
        """
        counted = self._counts
        values: dict[str, Any] = {"endpoints": int8_array([*counted])}
        for number, name in enumerate(OUTCOME_CLASSES):
            values[name] = int8_array([each.outcomes[number] for each in counted.values()])
        for name in ("durations", "latencies"):
            histograms = [_array_text(getattr(each, name)) for each in counted.values()]
            values[name] = text_array(histograms)
        adding = asyncio.ensure_future(connection.execute(SQL["add"], values))
        try:
            await asyncio.shield(adding)
        except asyncio.CancelledError:
            await adding
            self._counts = {}
            raise
        self._counts = {}


def outcome_class(outcome: str, status: int | None) -> int:
    """Return the class of an attempt, as an index of OUTCOME_CLASSES."""
    if outcome == "status" and status is not None:
        return _BY_STATUS.get(status // 100, _OTHER)
    return _BY_OUTCOME.get(outcome, _OTHER)


def _array_text(numbers: Sequence[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


async def note_pending(connection: Connection, pending: Mapping[int, int]) -> None:
    """Note the numbers of pending deliveries of endpoints, by id: the present minute and hour have
    the largest ones. Raises psycopg's errors.
    """
    numbers = sorted((id, count) for id, count in pending.items() if count)
    if not numbers:
        return
    values = {
        "endpoints": [id for id, _ in numbers],
        "pending": [count for _, count in numbers],
    }
    await connection.execute(SQL["note_pending"], values)


async def forget(url: str) -> None:
    """Delete the minutes and hours that are not shown any more. Raises what psycopg raises."""
    bounds = {
        "minutes": limits.ENDPOINT_STATISTICS_MINUTES,
        "hours": limits.ENDPOINT_STATISTICS_HOURS,
        "rows_max": limits.ENDPOINT_STATISTICS_DELETED_MAX,
    }
    connection = await connect(url, name="eventhub statistics")
    async with connection:
        while (await connection.execute(SQL["forget"], bounds)).rowcount:
            pass
