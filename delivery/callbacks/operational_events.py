"""Announces in `system` that circuits of endpoints open and close, and that endpoints fail, recover
and are disabled. A registration on `system` may have these events sent to another endpoint. SQL
module.

The rows of `circuits` are written with the results of attempts, so nothing is missed; one process
announces them, within seconds, and each circuit at most once a minute.
"""

from itertools import groupby
from typing import Any, NamedTuple

from delivery.callbacks.circuits import SQL
from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.event.json_codec import time_text
from eventhub.eventlog.retention.drop import append_in_turn
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_values
from registrations.endpoints.statements import disable

log = get_logger(__name__)


class CircuitNotice(NamedTuple):
    """What is to be announced of an endpoint's circuit. `warned`: the share of the time until the
    endpoint is disabled, in percent; `warned_before`: the one announced last.
    """

    zone: str
    client: str
    endpoint: int
    state: str
    has_switched: bool
    openings: int  # since the last announcement
    failures: int  # in a row
    warned: int
    warned_before: int
    outcome: str
    status: int | None
    since_us: int
    retry_at_us: int
    disables_at_us: int
    stream: str | None
    segment: str | None
    sequence: int


async def announce_circuits(connection: Connection) -> int:
    """Announce what happened to endpoints, for a bounded number of them; return how many events.
    Raise what psycopg raises, and what refuses an event.
    """
    bounds = {
        "interval_s": limits.CALLBACK_CIRCUIT_ANNOUNCE_S,
        "disable_after_s": limits.CALLBACK_DISABLE_AFTER_S,
        "percents": list(limits.CALLBACK_WARNED_PERCENT),
        "notices_max": limits.LOSSES_PER_CHECK_MAX,
    }
    async with connection.transaction():
        notices = await fetch_all(connection, CircuitNotice, SQL["take_notices"], bounds)
        drafts = [
            draft
            for zone, of_zone in groupby(notices, key=lambda notice: notice.zone)
            for draft in drafts_of(zone, [one for each in of_zone for one in announcements(each)])
        ]
        if drafts:
            await append_in_turn(connection, drafts)
    await connection.execute(SQL["forget_circuits"], bounds)
    return len(drafts)


async def disable_failing(connection: Connection) -> int:
    """Disable endpoints that have failed for as long as they may; return how many."""
    bounds = {
        "disable_after_s": limits.CALLBACK_DISABLE_AFTER_S,
        "endpoints_max": limits.LOSSES_PER_CHECK_MAX,
    }
    query, count = SQL["endpoints_to_disable"], 0
    for endpoint_id in await fetch_values(connection, query, {**bounds, "endpoint": None}):
        async with connection.transaction():
            still = await fetch_values(connection, query, {**bounds, "endpoint": endpoint_id})
            disabled = bool(still) and await disable(connection, endpoint_id, "failing")
        if disabled:
            log.warning("endpoint_disabled", endpoint=endpoint_id, reason="failing")
            count += 1
    return count


def announcements(notice: CircuitNotice) -> list[Announcement]:
    """Return the events of a notice: at most one of its circuit and one of its progress."""
    found = []
    if notice.has_switched:
        found.append(_announcement(notice, *_switched(notice)))
    if notice.warned > notice.warned_before:
        more = {"percent": notice.warned, "disables_at": time_text(notice.disables_at_us)}
        found.append(_announcement(notice, "failing", more))
    elif notice.warned_before and not notice.failures:
        found.append(_announcement(notice, "recovered", {}))
    return found


def _switched(notice: CircuitNotice) -> tuple[str, dict[str, Any]]:
    if notice.state == "closed":
        return "circuit_closed", {"openings": notice.openings}
    more = {"openings": notice.openings, "next_probe_at": time_text(notice.retry_at_us)}
    return "circuit_opened", more


def _announcement(notice: CircuitNotice, change: str, more: dict[str, Any]) -> Announcement:
    """Return an event of an endpoint with its last failure as the cause."""
    cursor = {"stream": notice.stream, "segment": notice.segment, "sequence": notice.sequence}
    attributes: dict[str, Any] = {
        "level": "info" if change in ("circuit_closed", "recovered") else "warning",
        "client": notice.client,
        "endpoint": notice.endpoint,
        "failures": notice.failures,
        "since": time_text(notice.since_us),
        "outcome": notice.outcome,
        "status": notice.status,
        "event": cursor,
        **more,
    }
    return Announcement(f"endpoint.{change}", attributes)
