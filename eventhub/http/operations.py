"""`/metrics`, `/healthz` and `/readyz`: for the systems that operate the hub. Plain module."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import orjson
import psutil

from eventhub.access.authorizer import Authorizer
from eventhub.base import limits, metrics
from eventhub.base.errors import (
    DatabaseBusy,
    DatabaseUnavailable,
    EventHubError,
    Unauthenticated,
    UnsupportedMediaType,
)
from eventhub.eventlog.log import Log
from eventhub.http.call import Call
from eventhub.http.health import DATABASE_DOWN, SYSTEM_DOWN, Component, Health
from eventhub.http.messages import Headers, Response, read_head
from eventhub.postgresql.connections import reading

DATABASE_OK = Component("database", "ok")


async def metrics_route(_call: Call) -> Response:
    """Return the metrics of all web processes if they share a folder, else of this one. A thread
    renders them.
    """
    body = await asyncio.to_thread(_metrics_text)
    return Response(200, body, [], metrics.CONTENT_TYPE)


def _metrics_text() -> bytes:
    folder = os.environ.get(metrics.FOLDER)
    if folder:
        _drop_gauges_of_killed(Path(folder))
    return metrics.exposition(shared=bool(folder))


def _drop_gauges_of_killed(folder: Path) -> None:
    """Delete the gauges of processes that were killed; their counters stay."""
    for gauges in folder.glob("gauge_live*_*.db"):
        if not psutil.pid_exists(int(gauges.stem.rpartition("_")[2])):
            gauges.unlink(missing_ok=True)  # another process may have deleted it


async def health_route(_call: Call) -> Response:
    """Return 200: the process is alive. Touches no dependency."""
    return Response(200, b'{"status":"ok"}', [])


async def ready_route(
    log: Log, authorizer: Authorizer, health: Health, headers: Headers
) -> Response:
    """Return 200 when this process can serve: the database answers and `system` is followed. Any
    other failure is reported as `degraded`.

    Only callers with a key or token receive reasons. Raises InvalidCredentials, TokenExpired.
    """
    now = [
        await _database(log),
        Component("system", "ok") if await authorizer.confirmed() else SYSTEM_DOWN,
    ]
    report = health.report().replacing(now)
    ready = report.overall() != "not ready"
    known = ready and await _is_known(authorizer, headers)
    body = orjson.dumps(report.json() if known else report.public_json())
    return Response(200 if ready else 503, body, [] if ready else [(b"retry-after", b"1")])


async def _is_known(authorizer: Authorizer, headers: Headers) -> bool:
    """Return True with a valid credential, False without one."""
    try:
        credential = read_head(headers).credential
    except (Unauthenticated, UnsupportedMediaType):
        return False
    with suppress(DatabaseUnavailable):
        await authorizer.authenticate(credential)
        return True
    return False


async def _database(log: Log) -> Component:
    try:
        async with reading(log.pool, seconds=limits.READY_CHECK_S_MAX) as connection:
            await connection.execute("SELECT 1")
    except DatabaseBusy:
        return DATABASE_OK  # it answers other requests
    except EventHubError:
        return DATABASE_DOWN
    return DATABASE_OK
