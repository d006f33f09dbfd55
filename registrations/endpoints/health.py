"""The health of endpoints: the last attempt, and since when all attempts have failed. SQL module.

It is written with the results of callbacks, only when the outcome changes or the row is some
seconds old: an endpoint that works costs one look-up for each batch of results.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array, text_array

SQL = queries.load("registrations/sql/endpoint_health.sql")
HealthState = Literal["untried", "ok", "failing"]
HUB_OUTCOMES = ("unreadable", "internal")  # failures of the hub, not of the endpoint


class EndpointAttempt(NamedTuple):
    """An attempt that ended `age_us` microseconds ago."""

    endpoint_id: int
    outcome: str  # `delivered`, or the reason of the failure
    status: int | None
    age_us: int


class HealthUpdate(NamedTuple):
    """The summary of some attempts at one endpoint: the last one, the last delivered one, and the
    first failed one after that.
    """

    last: EndpointAttempt
    delivered_age_us: int | None
    failing_age_us: int | None


def health_updates(tries: Iterable[EndpointAttempt]) -> list[HealthUpdate]:
    """Summarize attempts; return one update for each endpoint, by id."""
    found: dict[int, HealthUpdate] = {}
    for tried in sorted(tries, key=lambda each: -each.age_us):
        if tried.outcome in HUB_OUTCOMES:
            continue
        before = found.get(tried.endpoint_id, HealthUpdate(tried, None, None))
        if tried.outcome == "delivered":
            note = HealthUpdate(tried, tried.age_us, None)
        else:
            first = tried.age_us if before.failing_age_us is None else before.failing_age_us
            note = HealthUpdate(tried, before.delivered_age_us, first)
        found[tried.endpoint_id] = note
    return [found[endpoint_id] for endpoint_id in sorted(found)]


async def write(connection: psycopg.AsyncConnection[Any], notes: Sequence[HealthUpdate]) -> None:
    """Write the updates that change an outcome or replace a row older than some seconds. Raises
    psycopg's errors.
    """
    values = {
        "endpoints": int8_array([each.last.endpoint_id for each in notes]),
        "outcomes": text_array([each.last.outcome for each in notes]),
        "statuses": int8_array([each.last.status for each in notes]),
        "tried_us": int8_array([each.last.age_us for each in notes]),
        "delivered_us": int8_array([each.delivered_age_us for each in notes]),
        "failing_us": int8_array([each.failing_age_us for each in notes]),
        "interval_s": limits.ENDPOINT_HEALTH_INTERVAL_S,
    }
    await connection.execute(SQL["write"], values)
