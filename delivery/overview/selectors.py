"""Reads a zone's overview: counts are bounded, and slow ones left out. Django module."""

from typing import Any

import psycopg
from django.db import transaction
from psycopg.rows import dict_row

from delivery.health import watch
from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.version import VERSION
from eventhub.postgresql import queries

SQL = queries.load("delivery/sql/overview.sql")


def overview(*, zone_id: int) -> dict[str, Any]:
    """Return a zone's overview, for OverviewSerializer. Counts end at OVERVIEW_COUNT_MAX."""
    at_us, health = SystemClock().now_us(), watch.last_report()
    values = {
        "zone": zone_id,
        "streams_max": limits.OVERVIEW_STREAMS_MAX,
        "count_max": limits.OVERVIEW_COUNT_MAX,
        "silent_s": limits.HEALTH_SILENT_S_MAX,
    }
    [totals] = _read("totals", values)
    [endpoints] = _read("endpoints", values)
    [processes] = _read("processes", values)
    pending = _in_time("pending", values) or {"pending": None, "due": None}
    dead_lettered = _in_time("dead_lettered", values) or {"dead_lettered": None}
    return {
        **totals,
        "at": at_us,
        "version": VERSION,
        "streams": _read("streams", values),
        "backlog": {**pending, **dead_lettered},
        "endpoints": endpoints,
        "processes": processes,
        "health": health and health.json(),
    }


def _read(name: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    return raw_connection().cursor(row_factory=dict_row).execute(SQL[name], values).fetchall()


def _in_time(name: str, values: dict[str, Any]) -> dict[str, Any] | None:
    """Return the only row of a statement, or None if it takes too long."""
    timeout = (f"{limits.OVERVIEW_COUNT_MS_MAX}ms",)
    try:
        with transaction.atomic():
            raw_connection().execute("SELECT set_config('statement_timeout', %s, true)", timeout)
            [found] = _read(name, values)
            return found
    except psycopg.errors.QueryCanceled:
        return None
