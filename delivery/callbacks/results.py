"""Writes the results of deliveries and their attempts, many in one statement. SQL module."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

from delivery.callbacks.claims import SQL, Claimed, delivery_keys
from delivery.callbacks.retry import RetryDecision
from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.prepared import fetch_prepared
from eventhub.postgresql.rows import fetch_value

log = get_logger(__name__)


class AttemptRecord(NamedTuple):
    """An attempt as it is stored. `started_s` is on the monotonic clock; the database assigns its
    own time when the attempt is written.
    """

    outcome: str
    status: int | None
    started_s: float
    duration_ms: int
    url: str
    request: str  # the headers, without the signature
    response: str  # the response's headers and the start of its body, or the error

    def age_us(self, now_s: float) -> int:
        """Return how long ago the attempt ended."""
        return int((now_s - self.started_s) * 1e6) - self.duration_ms * 1_000


_NOTHING = AttemptRecord("", None, 0.0, 0, "", "", "")  # written without an outcome


class DeliveryResult(NamedTuple):
    """The result of a claimed delivery; `attempt` is None if nothing was sent. `is_request`: it
    stands for the request; only one event of a batch does. `latency_ms`: of a delivered event, from
    its append to the response; None if it was sent again.
    """

    claimed: Claimed
    decision: RetryDecision
    attempt: AttemptRecord | None
    is_request: bool = True
    latency_ms: float | None = None

    @property
    def outcome(self) -> str | None:
        return None if self.attempt is None else self.attempt.outcome


class DeliveryPart(NamedTuple):
    """What deliveries have in common whose results are written together."""

    partition_id: int
    endpoint_id: int
    segment_id: int
    token: str


class DeliveredBatch(NamedTuple):
    """The deliveries that one request with several events delivered, by their sequences.
    `latencies_ms`: as in `DeliveryResult`, each with the number of deliveries.
    """

    endpoint_id: int
    parts: Mapping[DeliveryPart, Sequence[int]]
    attempt: AttemptRecord
    latencies_ms: Mapping[float, int]

    @property
    def deliveries(self) -> int:
        """The number of deliveries."""
        return sum(map(len, self.parts.values()))


class WriteCounts(NamedTuple):
    """The number of results written, and of the deliveries among them that were dead-lettered."""

    results: int = 0
    dead_lettered: int = 0


async def write_results(
    connection: Connection, results: Sequence[DeliveryResult], now_s: float
) -> WriteCounts:
    """Write results and attempts whose claim is still held. The others count as never attempted.

    `now_s` is on the clock of the attempts' `started_s`. Without a partition for the attempts' day
    only the results are written.
    """
    try:
        return await _write(connection, results, now_s, store_attempts=True)
    except psycopg.errors.CheckViolation as error:
        log.warning("attempts_not_stored", reason=str(error).splitlines()[0])
        return await _write(connection, results, now_s, store_attempts=False)


async def write_delivered(
    connection: Connection, batches: Sequence[DeliveredBatch], now_s: float
) -> int:
    """Write the results of batches and their attempts where the claim is still held; return how
    many deliveries that are. The others count as never attempted.

    `now_s`, and attempts without a partition: as in `write_results`.
    """
    try:
        return await _write_delivered(connection, batches, now_s, store_attempts=True)
    except psycopg.errors.CheckViolation as error:
        log.warning("attempts_not_stored", reason=str(error).splitlines()[0])
        return await _write_delivered(connection, batches, now_s, store_attempts=False)


async def _write(
    connection: Connection, results: Sequence[DeliveryResult], now_s: float, *, store_attempts: bool
) -> WriteCounts:
    tokens: dict[str, int] = {}
    token_positions = [tokens.setdefault(each.claimed.token, len(tokens) + 1) for each in results]
    decisions = [each.decision for each in results]
    values = {
        **delivery_keys([each.claimed for each in results]),
        **_attempt_arrays([each.attempt or _NOTHING for each in results], now_s),
        "tokens": text_array([*tokens]),
        "token_positions": int8_array(token_positions),
        "states": text_array([decision.state for decision in decisions]),
        "delays_us": int8_array([int(decision.delay_s * 1e6) for decision in decisions]),
        "retry_after_s": int8_array([decision.retry_after_s for decision in decisions]),
        "outcomes": text_array([each.outcome for each in results]),
        "store_attempts": store_attempts,
    }
    [written] = await fetch_prepared(connection, WriteCounts, SQL["write_results"], values)
    return written


async def _write_delivered(
    connection: Connection, batches: Sequence[DeliveredBatch], now_s: float, *, store_attempts: bool
) -> int:
    parts: list[DeliveryPart] = []
    attempts: list[AttemptRecord] = []
    sequences: list[int] = []
    ends: list[int] = []
    for batch in batches:
        for part, found in batch.parts.items():
            parts.append(part)
            attempts.append(batch.attempt)
            sequences += found
            ends.append(len(sequences))
    values = {
        **_attempt_arrays(attempts, now_s),
        "partitions": int8_array([part.partition_id for part in parts]),
        "endpoints": int8_array([part.endpoint_id for part in parts]),
        "segments": int8_array([part.segment_id for part in parts]),
        "tokens": text_array([part.token for part in parts]),
        "ends": int8_array(ends),
        "sequences": int8_array(sequences),
        "span": limits.BATCH_ATTEMPT_SPAN,
        "store_attempts": store_attempts,
    }
    written: int | None = await fetch_value(connection, SQL["write_delivered"], values)
    return written or 0


def _attempt_arrays(attempts: Sequence[AttemptRecord], now_s: float) -> dict[str, Any]:
    """Return what is stored of attempts as parameters of the statements."""
    return {
        "ages_us": int8_array([int((now_s - each.started_s) * 1e6) for each in attempts]),
        "statuses": int8_array([each.status for each in attempts]),
        "durations_ms": int8_array([each.duration_ms for each in attempts]),
        "urls": text_array([each.url for each in attempts]),
        "requests": text_array([each.request for each in attempts]),
        "responses": text_array([each.response for each in attempts]),
    }
