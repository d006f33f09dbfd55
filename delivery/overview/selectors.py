"""Reads what is going on in a zone, at a cost that does not grow with it: every count is bounded,
and what cannot be counted in time is left out.
"""

from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from django.db import transaction

from eventhub import limits
from eventhub.access.system import raw_connection
from eventhub.eventlog import queries

SQL = queries.load("overview.sql", Path(__file__).parent / "sql")


class StreamState(NamedTuple):
    """`last` given, and how far it is `matched` for callbacks: None when none ever wanted it."""

    name: str
    last: int
    matched: int | None

    @property
    def lag(self) -> int | None:
        return None if self.matched is None else max(0, self.last - self.matched)


class Overview(NamedTuple):
    """A zone as it stands. Counts end at `limits.OVERVIEW_COUNT_MAX`; None: not counted in time."""

    streams: list[StreamState]
    events: int  # last sequences of the zone's own streams, summed
    pending: int | None
    due: int | None
    dead: int | None
    enabled: int
    disabled: int
    failing: int
    endpoints: int
    registrations: int
    forwarders: int
    workers: int


def overview(*, zone_id: int) -> Overview:
    streams = _rows("streams", zone_id)
    [(events,)] = _rows("events", zone_id)
    [(enabled, disabled, failing, endpoints)] = _rows("endpoints", zone_id)
    [(registrations,)] = _rows("registrations", zone_id)
    [(forwarders, workers)] = _rows("processes", zone_id)
    pending, due = _in_time("pending", zone_id) or (None, None)
    [dead] = _in_time("dead", zone_id) or [None]
    return Overview(
        [StreamState(*row) for row in streams],
        events, pending, due, dead, enabled, disabled, failing, endpoints, registrations,
        forwarders, workers,
    )  # fmt: skip


def _rows(name: str, zone_id: int) -> list[tuple[Any, ...]]:
    values = {
        "zone": zone_id,
        "streams_max": limits.OVERVIEW_STREAMS_MAX,
        "count_max": limits.OVERVIEW_COUNT_MAX,
        "silent_s": limits.HEALTH_SILENT_S_MAX,
    }
    return raw_connection().execute(SQL[name], values).fetchall()


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
