"""Reads the statistics of an endpoint at a bounded cost: a look-up for each step, and a count that
ends. Django module.
"""

from datetime import datetime
from typing import Any, NamedTuple

from delivery.selectors import read_in_time
from delivery.statistics.counting import SQL
from delivery.statistics.histogram import add, percentile
from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.postgresql.rows import cursor_of

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
STEPS = {  # the length in seconds, and how many are shown
    "minute": (60, limits.ENDPOINT_STATISTICS_MINUTES),
    "hour": (3_600, limits.ENDPOINT_STATISTICS_HOURS),
}


class _AttemptCounts(NamedTuple):
    """The attempts of some time."""

    delivered: int
    client_errors: int
    server_errors: int
    timeouts: int
    connection_errors: int
    other_failures: int
    durations: list[int]
    latencies: list[int]

    def json(self) -> dict[str, Any]:
        failures = {
            "client_errors": self.client_errors,
            "server_errors": self.server_errors,
            "timeouts": self.timeouts,
            "connection_errors": self.connection_errors,
            "other": self.other_failures,
        }
        return {
            "attempts": self.delivered + sum(failures.values()),
            "delivered": self.delivered,
            "failures": failures,
            "duration_ms": _percentiles(self.durations),
            "latency_ms": _percentiles(self.latencies),
        }


class _Point(NamedTuple):
    """A minute or an hour."""

    starts_at: datetime
    pending: int
    counts: _AttemptCounts


def statistics_of(*, endpoint_id: int, step: str) -> dict[str, Any]:
    """Return the attempts at an endpoint in the last minutes or hours (`step`: one of STEPS), the
    present one included, their sum, and its pending deliveries: None if they could not be counted
    in time.
    """
    step_s, steps = STEPS[step]
    values = {"endpoint": endpoint_id, "step_s": step_s, "steps": steps}
    query = cursor_of(raw_connection(), _Point).execute(SQL["points"], values)
    points = query.fetchall()
    bounds = {"endpoint": endpoint_id, "count_max": limits.OVERVIEW_PENDING_MAX}
    found = read_in_time(SQL["pending"], bounds)
    return {
        "endpoint": endpoint_id,
        "step": step,
        "step_s": step_s,
        "pending": found and found["pending"],
        "total": _sum([point.counts for point in points]).json(),
        "points": [
            {"starts_at": starts_at, "pending": pending, **counts.json()}
            for starts_at, pending, counts in points
        ],
    }


def _sum(parts: list[_AttemptCounts]) -> _AttemptCounts:
    durations: list[int] = []
    latencies: list[int] = []
    for part in parts:
        add(durations, part.durations)
        add(latencies, part.latencies)
    numbers = map(sum, zip(*(part[:6] for part in parts), strict=True))
    return _AttemptCounts._make([*numbers, durations, latencies])


def _percentiles(histogram: list[int]) -> dict[str, float | None] | None:
    if not any(histogram):
        return None
    return {name: percentile(histogram, share) for name, share in PERCENTILES.items()}
