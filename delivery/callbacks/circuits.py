"""The circuit breakers of endpoints, shared by all workers: which worker may probe an endpoint, and
what attempts say about endpoints. The state chart is in registrations/endpoints/circuit.py, its
statements are in delivery/sql/circuits.sql. SQL module.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from delivery.callbacks.failures import INCONCLUSIVE, EndpointFailures, weight
from delivery.callbacks.results import DeliveredBatch, DeliveryResult
from eventhub.base import limits, metrics
from eventhub.base.logs import get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value, fetch_values

log = get_logger(__name__)
SQL = queries.load("delivery/sql/circuits.sql")


class _TakenProbe(NamedTuple):
    """A probe that this worker took; `changed`: because the endpoint was changed."""

    endpoint_id: int
    changed: bool


class DeliveryKey(NamedTuple):
    """A delivery by its endpoint and event."""

    endpoint_id: int
    segment_id: int
    sequence: int


class _Advanced(NamedTuple):
    endpoint_id: int
    segment_id: int
    sequence: int
    early_s: float


class ExhaustPass(NamedTuple):
    """What one pass of `exhaust_withheld` did: the deliveries that it marked, and the last endpoint
    that it examined; None: it has examined all.
    """

    dead: int
    after: int | None


class _ExhaustedEndpoint(NamedTuple):
    """An endpoint that has failed for as long as its schedule takes."""

    endpoint_id: int
    total_s: int


async def take_probes(connection: Connection, endpoint_ids: Collection[int]) -> dict[int, bool]:
    """Return those of the endpoints that this worker may now call with one request, and whether
    because they were changed.
    """
    values = {"endpoints": int8_array([*endpoint_ids]), "probe_s": limits.CALLBACK_PROBE_S}
    taken = await fetch_all(connection, _TakenProbe, SQL["take_probes"], values)
    return {each.endpoint_id: each.changed for each in taken}


async def return_probes(
    connection: Connection, endpoint_ids: Collection[int], *, pause_s: float = 0.0
) -> None:
    """Return probes that were unused or inconclusive: any worker may take them after the pause."""
    values = {"endpoints": int8_array([*endpoint_ids]), "pause_s": pause_s}
    await connection.execute(SQL["return_probes"], values)


async def advance(
    connection: Connection, endpoint_ids: Collection[int], *, ordered: bool
) -> dict[DeliveryKey, float]:
    """Make the next delivery of each probed endpoint due if none is: otherwise an endpoint that has
    recovered would wait for hours. Return the seconds until those deliveries would have been due.
    """
    query = SQL["advance_ordered" if ordered else "advance_parallel"]
    found = await fetch_all(
        connection, _Advanced, query, {"endpoints": int8_array([*endpoint_ids])}
    )
    return {DeliveryKey(*each[:3]): each.early_s for each in found}


async def hasten(connection: Connection, endpoint_ids: Collection[int]) -> None:
    """Make deliveries that failed while the endpoints' circuits were open due at once, a bounded
    number of each endpoint.
    """
    for endpoint_id in endpoint_ids:
        values = {
            "endpoint": endpoint_id,
            "deliveries_max": limits.CALLBACK_HASTENED_MAX,
            "lanes_max": limits.CALLBACK_HASTENED_LANES_MAX,
        }
        await connection.execute(SQL["hasten"], values)


async def record_results(
    connection: Connection,
    results: Sequence[DeliveryResult],
    failures: EndpointFailures,
    delivered: Sequence[DeliveredBatch] = (),
) -> bool:
    """Write what results say about their endpoints, and nothing for endpoints whose state is
    unchanged. Return True if some endpoint has recovered.
    """
    succeeded = {each.claimed.endpoint_id for each in results if each.outcome == "delivered"}
    succeeded.update(each.endpoint_id for each in delivered)
    probed = {each.claimed.endpoint_id for each in results if each.claimed.probe}
    recovered = [each for each in succeeded if each in probed or failures.is_known_to_fail(each)]
    counts: Counter[int] = Counter()
    failed: dict[int, list[DeliveryResult]] = {}
    inconclusive: set[int] = set()
    for each in results:
        endpoint_id = each.claimed.endpoint_id
        if each.attempt is None or each.outcome == "delivered" or not each.is_request:
            continue
        if each.outcome in INCONCLUSIVE:
            inconclusive |= {endpoint_id} if each.claimed.probe else set()
            continue
        counts[endpoint_id] += weight(each.attempt.status, each.decision.retry_after_s)
        if endpoint_id not in succeeded:
            failed.setdefault(endpoint_id, []).append(each)
    if recovered:
        values = {"endpoints": int8_array(recovered)}
        await hasten(connection, await fetch_values(connection, SQL["close"], values))
    if failed:
        await connection.execute(SQL["write_failures"], _failures(failed, counts))
        metrics.CALLBACK_FAILED_PROBES.inc(
            sum(each.claimed.probe for those in failed.values() for each in those)
        )
    if inconclusive - failed.keys() - succeeded:
        await return_probes(connection, inconclusive - failed.keys() - succeeded)
    failures.record_written(counts, succeeded)
    return bool(recovered)


def _failures(
    failed: Mapping[int, Sequence[DeliveryResult]], counts: Mapping[int, int]
) -> dict[str, Any]:
    lasts = [those[-1] for those in failed.values()]
    attempts = [last.attempt for last in lasts]
    return {
        "endpoints": int8_array([*failed]),
        "failures": int8_array([counts[each] for each in failed]),
        "probed": int8_array([each for each, those in failed.items()
                              if any(one.claimed.probe for one in those)]),
        "retry_after_s": int8_array([max(each.decision.retry_after_s or 0 for each in those)
                                     for those in failed.values()]),
        "outcomes": text_array([each and each.outcome for each in attempts]),
        "statuses": int8_array([each and each.status for each in attempts]),
        "segments": int8_array([last.claimed.segment_id for last in lasts]),
        "sequences": int8_array([last.claimed.sequence for last in lasts]),
        "failures_min": limits.CALLBACK_CIRCUIT_FAILURES,
        "pause_s_base": limits.CALLBACK_CIRCUIT_S_BASE,
        "pause_s_max": limits.CALLBACK_CIRCUIT_S_MAX,
    }  # fmt: skip


async def exhaust_withheld(connection: Connection, after: int = 0) -> ExhaustPass:
    """Mark deliveries as dead letters that open circuits have withheld for as long as the schedules
    of their endpoints take. One pass examines a bounded number of endpoints, after the given one,
    and ends early when it has marked a bounded number of deliveries.
    """
    endpoints_max = limits.CALLBACK_EXHAUST_ENDPOINTS_MAX
    bounds = {
        "total_s": sum(limits.CALLBACK_RETRY_SCHEDULE_S),
        "least_s": limits.CALLBACK_CIRCUIT_S_MAX,
        "after": after,
        "endpoints_max": endpoints_max,
    }
    found = await fetch_all(connection, _ExhaustedEndpoint, SQL["exhausted_endpoints"], bounds)
    dead, statements = 0, limits.CALLBACK_EXHAUST_STATEMENTS_MAX
    last: int | None = None
    for endpoint in found:
        count, statements = await _exhaust(connection, endpoint, statements)
        dead += count
        last = endpoint.endpoint_id
        if not statements:
            break
    else:
        last = last if len(found) == endpoints_max else None
    metrics.CALLBACK_DEAD_LETTERED.inc(dead)
    return ExhaustPass(dead, last)


async def _exhaust(
    connection: Connection, endpoint: _ExhaustedEndpoint, statements: int
) -> tuple[int, int]:
    """Mark withheld deliveries of an endpoint in at most so many full statements; return how many
    deliveries, and how many statements are left.
    """
    values = {
        "endpoint": endpoint.endpoint_id,
        "total_s": endpoint.total_s,
        "claim_s": limits.CALLBACK_CLAIM_S,
        "deliveries_max": limits.CALLBACK_EXHAUST_DELIVERIES_MAX,
    }
    count = 0
    while statements:
        marked: int = await fetch_value(connection, SQL["dead_letter_withheld"], values)
        count += marked
        if marked < limits.CALLBACK_EXHAUST_DELIVERIES_MAX:
            break
        statements -= 1
    if count:
        log.warning("withheld_dead_lettered", endpoint=endpoint.endpoint_id, count=count)
    return count, statements
