"""`/metrics`, `/healthz` and `/readyz`: for machines that look after the hub. Plain."""

import asyncio
import os
from pathlib import Path

import orjson
import psutil
import redis.asyncio as redis

from eventhub import limits, metrics
from eventhub.access.gate import Gate
from eventhub.doors.http import Answer
from eventhub.errors import EventHubError
from eventhub.eventlog.database import reading
from eventhub.eventlog.log import Log


async def metrics_door() -> Answer:
    """All web processes' metrics when they share a folder, else this one's; made off the event
    loop.
    """
    body = await asyncio.to_thread(_metrics_text)
    return Answer(200, body, [], metrics.CONTENT_TYPE)


def _metrics_text() -> bytes:
    folder = os.environ.get(metrics.FOLDER)
    if folder:
        _forget_the_killed(Path(folder))
    return metrics.exposition(shared=bool(folder))


def _forget_the_killed(folder: Path) -> None:
    """What a process held when it was killed is not held any more; its counts stay."""
    for gauges in folder.glob("gauge_live*_*.db"):
        if not psutil.pid_exists(int(gauges.stem.rpartition("_")[2])):
            gauges.unlink(missing_ok=True)  # another may be as fast


async def health_door() -> Answer:
    """This process answers; touches no dependency."""
    return Answer(200, b'{"status":"ok"}', [])


async def ready_door(log: Log, gate: Gate, redis_url: str) -> Answer:
    """200 when requests can be served: database reached, `system` followed.

    Redis is reported, not required.
    """
    checks = {
        "database": await _database(log),
        "system": "ok" if gate.fresh() else "not confirmed within a second",
        "redis": await _redis(redis_url),
    }
    ready = checks["database"] == "ok" and checks["system"] == "ok"
    body = orjson.dumps({"status": "ready" if ready else "not ready", "checks": checks})
    return Answer(200 if ready else 503, body, [] if ready else [(b"retry-after", b"1")])


async def _database(log: Log) -> str:
    try:
        async with reading(log.pool, seconds=limits.READY_CHECK_S_MAX) as connection:
            await connection.execute("SELECT 1")
    except EventHubError:
        return "away"
    return "ok"


async def _redis(url: str) -> str:
    if not url:
        return "not configured"
    client = redis.from_url(url, socket_timeout=limits.READY_CHECK_S_MAX)
    try:
        async with asyncio.timeout(limits.READY_CHECK_S_MAX):
            await client.ping()
    except (redis.RedisError, OSError, TimeoutError):
        return "away; emit and listen go on"
    finally:
        await client.aclose()
    return "ok"
