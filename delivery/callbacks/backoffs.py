"""The backoffs of endpoints, shared by all workers: which worker may probe an endpoint, and what
attempts say about endpoints. The statements are in delivery/sql/backoffs.sql. SQL module.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from delivery.callbacks.failures import INCONCLUSIVE, EndpointFailures
from delivery.callbacks.results import DeliveryResult
from eventhub.base import limits, metrics
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_values

SQL = queries.load("delivery/sql/backoffs.sql")


async def take_probes(connection: Connection, endpoint_ids: Collection[int]) -> frozenset[int]:
    """Return those of the endpoints that this worker may now call with one request."""
    values = {"endpoints": int8_array([*endpoint_ids]), "probe_s": limits.CALLBACK_PROBE_S}
    return frozenset(await fetch_values(connection, SQL["take_probes"], values))


async def return_probes(connection: Connection, endpoint_ids: Collection[int]) -> None:
    """Return probes that were unused or inconclusive: any worker may take them at once."""
    values = {"endpoints": int8_array([*endpoint_ids])}
    await connection.execute(SQL["return_probes"], values)


async def record_results(
    connection: Connection, results: Sequence[DeliveryResult], failures: EndpointFailures
) -> bool:
    """Write what results say about their endpoints, and nothing for endpoints whose state is
    unchanged. Return True if some endpoint has recovered.
    """
    succeeded = {each.claimed.endpoint_id for each in results if each.outcome == "delivered"}
    probed = {each.claimed.endpoint_id for each in results if each.claimed.probe}
    recovered = [each for each in succeeded if each in probed or failures.is_known_to_fail(each)]
    counts: Counter[int] = Counter()
    failed: dict[int, list[DeliveryResult]] = {}
    inconclusive: set[int] = set()
    for each in results:
        endpoint_id = each.claimed.endpoint_id
        if each.outcome is None or each.outcome == "delivered" or not each.is_request:
            continue
        if each.outcome in INCONCLUSIVE:
            inconclusive |= {endpoint_id} if each.claimed.probe else set()
            continue
        counts[endpoint_id] += 1
        if endpoint_id not in succeeded:
            failed.setdefault(endpoint_id, []).append(each)
    if recovered:
        values = {"endpoints": int8_array(recovered)}
        await connection.execute(SQL["delete_backoffs"], values)
    if failed:
        await connection.execute(SQL["write_failures"], _failures(failed))
        metrics.CALLBACK_FAILED_PROBES.inc(
            sum(each.claimed.probe for those in failed.values() for each in those)
        )
    if inconclusive - failed.keys() - succeeded:
        await return_probes(connection, inconclusive - failed.keys() - succeeded)
    failures.record_written(counts, succeeded)
    return bool(recovered)


def _failures(failed: dict[int, list[DeliveryResult]]) -> dict[str, Any]:
    firsts = [those[0].claimed for those in failed.values()]
    return {
        "endpoints": int8_array([*failed]),
        "failures": int8_array([len(those) for those in failed.values()]),
        "single": int8_array([int(_are_one_delivery(those)) for those in failed.values()]),
        "segments": int8_array([first.segment_id for first in firsts]),
        "sequences": int8_array([first.sequence for first in firsts]),
        "retry_after_s": int8_array([max(each.decision.retry_after_s or 0 for each in those)
                               for those in failed.values()]),
        "failures_min": limits.CALLBACK_FAILURES_MIN,
        "pause_s_base": limits.CALLBACK_BACKOFF_S_BASE,
        "pause_s_max": limits.CALLBACK_BACKOFF_S_MAX,
    }  # fmt: skip


def _are_one_delivery(results: Sequence[DeliveryResult]) -> bool:
    return len({(each.claimed.segment_id, each.claimed.sequence) for each in results}) == 1
