"""Reads what is going on in a zone, at a cost that does not grow with it: every count is bounded,
and what cannot be counted in time is left out.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psycopg
from django.db import transaction

from delivery.health import watch
from eventhub import limits
from eventhub.access.system import raw_connection
from eventhub.clock import SystemClock
from eventhub.doors.health import ReadinessJson
from eventhub.eventlog import queries
from eventhub.eventlog.rows import cursor_of, scalars
from eventhub.version import VERSION

SQL = queries.load("overview.sql", Path(__file__).parent / "sql")


T = TypeVar("T")


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


class _Owed(NamedTuple):
    pending: int | None = None
    due: int | None = None


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
    health: ReadinessJson | None  # None: no web process serves


def overview(*, zone_id: int) -> Overview:
    at_us, health = SystemClock().now_us(), watch.last_report()
    connection, values = raw_connection(), _values(zone_id)
    [events] = scalars(connection).execute(SQL["events"], values)
    [endpoints] = cursor_of(connection, Endpoints).execute(SQL["endpoints"], values)
    [processes] = cursor_of(connection, Processes).execute(SQL["processes"], values)
    [registrations] = scalars(connection).execute(SQL["registrations"], values)
    streams = cursor_of(connection, StreamState).execute(SQL["streams"], values).fetchall()
    owed = cursor_of(connection, _Owed)
    counted = _in_time(lambda: owed.execute(SQL["pending"], values).fetchone())
    lost = scalars(connection)
    dead = _in_time(lambda: lost.execute(SQL["dead"], values).fetchone())
    return Overview(
        at_us,
        VERSION,
        streams,
        events,
        Backlog(*(counted or _Owed()), dead),
        endpoints,
        registrations,
        processes,
        health and health.json(),
    )


def _values(zone_id: int) -> dict[str, Any]:
    return {
        "zone": zone_id,
        "streams_max": limits.OVERVIEW_STREAMS_MAX,
        "count_max": limits.OVERVIEW_COUNT_MAX,
        "silent_s": limits.HEALTH_SILENT_S_MAX,
    }


def _in_time(read: Callable[[], T]) -> T | None:
    """What is read, or None when it takes too long."""
    try:
        with transaction.atomic():
            raw_connection().execute(
                "SELECT set_config('statement_timeout', %s, true)",
                (f"{limits.OVERVIEW_COUNT_MS_MAX}ms",),
            )
            return read()
    except psycopg.errors.QueryCanceled:
        return None
