"""Endpoints that fail as a whole, as all workers know it: who may make the one request to an
endpoint that backs off, and what tries say of endpoints. Sql module; delivery/sql/backoffs.sql.
SQL module.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from delivery.callbacks.health import SILENT, Health
from delivery.callbacks.results import Result
from eventhub.base import limits, metrics
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import scalars

SQL = queries.load("delivery/sql/backoffs.sql")


async def take_probes(connection: Connection, endpoint_ids: Collection[int]) -> frozenset[int]:
    """Those of the endpoints that this worker may call now, once."""
    values = {"endpoints": int8_array([*endpoint_ids]), "probe_s": limits.CALLBACK_PROBE_S}
    taken = await scalars(connection).execute(SQL["take_probes"], values)
    return frozenset(await taken.fetchall())


async def return_probes(connection: Connection, endpoint_ids: Collection[int]) -> None:
    """What was taken and not used, or told nothing: somebody else may, at once."""
    values = {"endpoints": int8_array([*endpoint_ids])}
    await connection.execute(SQL["return_probes"], values)


async def note(connection: Connection, results: Sequence[Result], health: Health) -> bool:
    """Write what results say of their endpoints; nothing for those that answer as they did before.
    True if some answer again.
    """
    good = {each.claimed.endpoint_id for each in results if each.outcome == "delivered"}
    probed = {each.claimed.endpoint_id for each in results if each.claimed.probe}
    answering = [each for each in good if each in probed or health.is_known_to_fail(each)]
    failures: Counter[int] = Counter()
    failed: dict[int, list[Result]] = {}
    silent: set[int] = set()
    for each in results:
        endpoint_id = each.claimed.endpoint_id
        if each.outcome is None or each.outcome == "delivered":
            continue
        if each.outcome in SILENT:
            silent |= {endpoint_id} if each.claimed.probe else set()
            continue
        failures[endpoint_id] += 1
        if endpoint_id not in good:
            failed.setdefault(endpoint_id, []).append(each)
    if answering:
        values = {"endpoints": int8_array(answering)}
        await connection.execute(SQL["note_answers"], values)
    if failed:
        await connection.execute(SQL["note_failures"], _failures(failed))
        metrics.CALLBACK_FAILED_PROBES.inc(
            sum(each.claimed.probe for those in failed.values() for each in those)
        )
    if silent - failed.keys() - good:
        await return_probes(connection, silent - failed.keys() - good)
    health.noted(failures, good)
    return bool(answering)


def _failures(failed: dict[int, list[Result]]) -> dict[str, Any]:
    firsts = [those[0].claimed for those in failed.values()]
    return {
        "endpoints": int8_array([*failed]),
        "failures": int8_array([len(those) for those in failed.values()]),
        "alone": int8_array([int(_are_one(those)) for those in failed.values()]),
        "segments": int8_array([first.segment_id for first in firsts]),
        "sequences": int8_array([first.sequence for first in firsts]),
        "asked_s": int8_array([max(each.decision.asked_s or 0 for each in those)
                               for those in failed.values()]),
        "failures_min": limits.CALLBACK_FAILURES_MIN,
        "pause_s_base": limits.CALLBACK_BACKOFF_S_BASE,
        "pause_s_max": limits.CALLBACK_BACKOFF_S_MAX,
    }  # fmt: skip


def _are_one(results: Sequence[Result]) -> bool:
    return len({(each.claimed.segment_id, each.claimed.sequence) for each in results}) == 1
