"""How endpoints answer: the last attempt, and since when all have failed. SQL module.

It is written with the results of callbacks, and only when the outcome changes or the row is some
seconds old, so that an endpoint that works costs a look-up for each batch of results.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array, text_array

SQL = queries.load("registrations/sql/endpoint_health.sql")
State = Literal["untried", "ok", "failing"]
NOT_THE_ENDPOINTS = ("unreadable", "internal")  # outcomes that say nothing of it


class Tried(NamedTuple):
    """One attempt that has ended, `age_us` ago."""

    endpoint_id: int
    outcome: str  # `delivered`, or why not
    status: int | None
    age_us: int


class Note(NamedTuple):
    """What some attempts say of one endpoint: the last of them, the last that was delivered, and
    the first that failed after it.
    """

    last: Tried
    delivered_age_us: int | None
    failing_age_us: int | None


def noted(tries: Iterable[Tried]) -> list[Note]:
    """One note for each endpoint, by id."""
    found: dict[int, Note] = {}
    for tried in sorted(tries, key=lambda each: -each.age_us):
        if tried.outcome in NOT_THE_ENDPOINTS:
            continue
        before = found.get(tried.endpoint_id, Note(tried, None, None))
        if tried.outcome == "delivered":
            note = Note(tried, tried.age_us, None)
        else:
            first = tried.age_us if before.failing_age_us is None else before.failing_age_us
            note = Note(tried, before.delivered_age_us, first)
        found[tried.endpoint_id] = note
    return [found[endpoint_id] for endpoint_id in sorted(found)]


async def write(connection: psycopg.AsyncConnection[Any], notes: Sequence[Note]) -> None:
    """Write what has changed, or is older than a few seconds. Raises what psycopg raises."""
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
