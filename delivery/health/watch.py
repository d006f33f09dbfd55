"""Checks the hub's components every few seconds, in each web process, and caches the result, so
that a request costs nothing. SQL module.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import psycopg
import redis.asyncio as redis

from delivery.health import facts, rules
from delivery.health.facts import HealthFacts
from eventhub.access.authorizer import Authorizer
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.env import Env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import pause_together_s, wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.log import Log
from eventhub.eventlog.maintenance import Maintenance
from eventhub.http.health import DATABASE_DOWN, SYSTEM_DOWN, WELL, Component, HealthReport
from eventhub.postgresql.connections import reading

throttled = ThrottledLog(get_logger(__name__))
_watches: list["HealthWatch"] = []  # the one of this process, while it serves


class WatchedParts(NamedTuple):
    """The parts of this process that report their own health."""

    log: Log
    authorizer: Authorizer
    maintenance: Maintenance


def last_report() -> HealthReport | None:
    """Return this process's last health report, from any thread; None if it is no web process."""
    return _watches[-1].recent() if _watches else None


class HealthWatch:
    """Checks in `run`; `report` returns the result of the last check."""

    def __init__(self, watched: WatchedParts, env: Env, clock: Clock) -> None:
        self._watched = watched
        self._env = env
        self._clock = clock
        self._facts: HealthFacts | None = None
        self._checked_us = 0  # when the database answered last ...
        self._checked_s = -math.inf  # ... on the monotonic clock
        self._redis = Component("redis", "starting" if env.redis_url else "off")
        self._requested = asyncio.Event()
        self._requested_s = clock.monotonic_s()
        self._last: HealthReport | None = None

    async def run(self) -> None:
        """Check until cancelled, through outages; less often while nobody requests a report."""
        _watches.append(self)
        try:
            async with _redis_client(self._env.redis_url) as client:
                while True:
                    self._requested.clear()
                    await asyncio.gather(self._check(), self._check_redis(client))
                    self._last = self._report()
                    for each in self._last.components:
                        metrics.HEALTH.labels(component=each.name).set(each.status in WELL)
                    if self._is_requested():
                        await asyncio.sleep(limits.HEALTH_CHECK_INTERVAL_S)
                    else:
                        pause_s = pause_together_s(limits.HEALTH_REST_S)
                        await wait_until_set(self._requested, pause_s)
        finally:
            _watches.remove(self)

    def report(self) -> HealthReport:
        """Return all components, as of the last answer of the database; on the event loop."""
        self.recent()
        self._requested.set()
        return self._report()

    def recent(self) -> HealthReport | None:
        """Return the result of the last check; from any thread."""
        self._requested_s = self._clock.monotonic_s()
        return self._last

    def _is_requested(self) -> bool:
        return self._clock.monotonic_s() - self._requested_s < limits.HEALTH_REQUESTED_S

    def _report(self) -> HealthReport:
        own = [self._database(), self._system(), self._storage(), self._redis]
        return HealthReport(self._checked_us, (*own, *self._database_components()))

    async def _check(self) -> None:
        try:
            async with reading(self._watched.log.pool) as connection:
                self._facts = await facts.read(connection)
        except (DatabaseUnavailable, psycopg.Error) as error:
            throttled.info("health_postponed", reason=type(error).__name__)
            return
        self._checked_us = self._clock.now_us()
        self._checked_s = self._clock.monotonic_s()

    async def _check_redis(self, client: "redis.Redis | None") -> None:
        if client is not None:
            self._redis = await _redis(client)

    def _database_components(self) -> list[Component]:
        if self._facts is None or self._stale:
            return rules.unknown(since_us=self._checked_us or None)
        return rules.components_of(self._facts, archive=bool(self._env.archive_url))

    @property
    def _stale(self) -> bool:
        return self._clock.monotonic_s() - self._checked_s > limits.HEALTH_STALE_S_MAX

    def _database(self) -> Component:
        return DATABASE_DOWN if self._stale else Component("database", "ok")

    def _system(self) -> Component:
        is_followed = self._watched.authorizer.age_s() < limits.HEALTH_STALE_S_MAX
        return Component("system", "ok") if is_followed else SYSTEM_DOWN

    def _storage(self) -> Component:
        refusal = self._watched.maintenance.refusal()
        if refusal is None:
            return Component("storage", "ok")
        return Component("storage", "degraded", f"Emits are refused: {refusal.message}")


@asynccontextmanager
async def _redis_client(url: str) -> "AsyncIterator[redis.Redis | None]":
    """Yield a Redis client, or None without a Redis."""
    if not url:
        yield None
        return
    async with redis.from_url(url, socket_timeout=limits.READY_CHECK_S_MAX) as client:
        yield client


async def _redis(client: "redis.Redis") -> Component:
    try:
        async with asyncio.timeout(limits.READY_CHECK_S_MAX):
            await client.ping()
    except (redis.RedisError, OSError, TimeoutError):
        reason = (
            "Redis does not answer: emit, listen and callbacks go on, but for transient streams;"
            " the timetable, jobs and builds of match indexes wait."
        )
        return Component("redis", "degraded", reason)
    return Component("redis", "ok")
