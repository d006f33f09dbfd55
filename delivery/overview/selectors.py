"""Reads what is going on in a zone, at a cost that does not grow with it: every count is bounded,
and what cannot be counted in time is left out.
"""

from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psycopg
from django.db import transaction

from delivery.health import watch
from eventhub import limits
from eventhub.access.system import raw_connection
from eventhub.clock import SystemClock
from eventhub.eventlog import named, queries
from eventhub.version import VERSION

T = TypeVar("T")
SQL = queries.load("overview.sql", Path(__file__).parent / "sql")


class StreamState(NamedTuple):
    """`last` given, and how far it is `matched` for callbacks: None when none ever wanted it."""

    name: str
    last: int
    matched: int | None

    @property
    def lag(self) -> int | None:
        return None if self.matched is None else max(0, self.last - self.matched)


class Endpoints(NamedTuple):
    enabled: int
    disabled: int
    failing: int
    total: int


class Backlog(NamedTuple):
    """None: not counted in time."""

    pending: int | None
    due: int | None
    dead: int | None


class Processes(NamedTuple):
    forwarders: int
    workers: int


class Overview(NamedTuple):
    """A zone as it stands. Counts end at `limits.OVERVIEW_COUNT_MAX`."""

    at: int
    version: str  # of the release that answers
    streams: list[StreamState]
    events: int  # last sequences of the zone's own streams, summed
    backlog: Backlog
    endpoints: Endpoints
    registrations: int
    processes: Processes
    health: dict[str, Any] | None  # None: no web process serves


def overview(*, zone_id: int) -> Overview:
    at_us, health = SystemClock().now_us(), watch.last_report()
    [(events,)] = _rows("events", zone_id)
    [endpoints] = _named("endpoints", Endpoints, zone_id)
    [processes] = _named("processes", Processes, zone_id)
    [(registrations,)] = _rows("registrations", zone_id)
    pending, due = _in_time("pending", zone_id) or (None, None)
    [dead] = _in_time("dead", zone_id) or [None]
    return Overview(
        at_us,
        VERSION,
        _named("streams", StreamState, zone_id),
        events,
        Backlog(pending, due, dead),
        endpoints,
        registrations,
        processes,
        health and health.json(),
    )


def _named(name: str, kind: type[T], zone_id: int) -> list[T]:
    return named.rows(raw_connection(), kind, SQL[name], _values(zone_id))


def _rows(name: str, zone_id: int) -> list[tuple[Any, ...]]:
    return raw_connection().execute(SQL[name], _values(zone_id)).fetchall()


def _values(zone_id: int) -> dict[str, Any]:
    return {
        "zone": zone_id,
        "streams_max": limits.OVERVIEW_STREAMS_MAX,
        "count_max": limits.OVERVIEW_COUNT_MAX,
        "silent_s": limits.HEALTH_SILENT_S_MAX,
    }


def _in_time(name: str, zone_id: int) -> tuple[Any, ...] | None:
    """The one row, or None when it takes too long."""
    try:
        with transaction.atomic():
            raw_connection().execute(
                "SELECT set_config('statement_timeout', %s, true)",
                (f"{limits.OVERVIEW_COUNT_MS_MAX}ms",),
            )
            return _rows(name, zone_id)[0]
    except psycopg.errors.QueryCanceled:
        return None
