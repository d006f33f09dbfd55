"""Looks at the hub's components every few seconds, in each web process, and keeps what it found:
whoever asks costs nothing. SQL module.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import psycopg
import redis.asyncio as redis

from delivery.health import facts, rules
from delivery.health.facts import Facts
from eventhub.access.authorizer import Authorizer
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.env import Env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.waiting import set_within
from eventhub.eventlog.log import Log
from eventhub.eventlog.maintenance import Maintenance
from eventhub.http.health import DATABASE_DOWN, SYSTEM_DOWN, WELL, Component, Report
from eventhub.postgresql.connections import reading

throttled = ThrottledLog(get_logger(__name__))
_watches: list["Watch"] = []  # the one of this process, while it serves


class Watched(NamedTuple):
    """The parts of this process that know of their own health."""

    log: Log
    authorizer: Authorizer
    upkeep: Maintenance


def last_report() -> Report | None:
    """What this process found last of the hub's health, for any thread; None if it is no web
    process.
    """
    return _watches[-1].asked() if _watches else None


class Watch:
    """`run` looks; `report` says what the last look found."""

    def __init__(self, watched: Watched, env: Env, clock: Clock) -> None:
        self._watched = watched
        self._env = env
        self._clock = clock
        self._facts: Facts | None = None
        self._looked_us = 0  # when the database answered last ...
        self._looked_s = -math.inf  # ... on the monotonic clock
        self._redis = Component("redis", "starting" if env.redis_url else "off")
        self._asked = asyncio.Event()
        self._asked_s = clock.monotonic_s()
        self._last: Report | None = None

    async def run(self) -> None:
        """Look until cancelled, through every absence of the database; less often while nobody
        asks.
        """
        _watches.append(self)
        try:
            async with _redis_client(self._env.redis_url) as client:
                while True:
                    self._asked.clear()
                    await asyncio.gather(self._look(), self._ping(client))
                    self._last = self._report()
                    _show(self._last)
                    await asyncio.sleep(limits.HEALTH_CHECK_INTERVAL_S)
                    await set_within(self._asked, self._rest_s())
        finally:
            _watches.remove(self)

    def report(self) -> Report:
        """All components, as of the last look that the database answered; on the event loop."""
        self.asked()
        self._asked.set()
        return self._report()

    def asked(self) -> Report | None:
        """What the last look found; from any thread."""
        self._asked_s = self._clock.monotonic_s()
        return self._last

    def _rest_s(self) -> float:
        asked_s = self._clock.monotonic_s() - self._asked_s
        return 0.0 if asked_s < limits.HEALTH_REQUESTED_S else limits.HEALTH_REST_S

    def _report(self) -> Report:
        own = [self._database(), self._system(), self._storage(), self._redis]
        return Report(self._looked_us, (*own, *self._judged()))

    async def _look(self) -> None:
        try:
            async with reading(self._watched.log.pool) as connection:
                self._facts = await facts.read(connection)
        except (DatabaseUnavailable, psycopg.Error) as error:
            throttled.info("health_postponed", reason=type(error).__name__)
            return
        self._looked_us = self._clock.now_us()
        self._looked_s = self._clock.monotonic_s()

    async def _ping(self, client: "redis.Redis | None") -> None:
        if client is not None:
            self._redis = await _redis(client)

    def _judged(self) -> list[Component]:
        if self._facts is None or self._stale:
            return rules.unknown(since_us=self._looked_us or None)
        return rules.judged(self._facts, archive=bool(self._env.archive_url))

    @property
    def _stale(self) -> bool:
        return self._clock.monotonic_s() - self._looked_s > limits.HEALTH_STALE_S_MAX

    def _database(self) -> Component:
        return DATABASE_DOWN if self._stale else Component("database", "ok")

    def _system(self) -> Component:
        is_followed = self._watched.authorizer.age_s() < limits.HEALTH_STALE_S_MAX
        return Component("system", "ok") if is_followed else SYSTEM_DOWN

    def _storage(self) -> Component:
        refusal = self._watched.upkeep.refusal()
        if refusal is None:
            return Component("storage", "ok")
        return Component("storage", "degraded", f"Emits are refused: {refusal.message}")


@asynccontextmanager
async def _redis_client(url: str) -> "AsyncIterator[redis.Redis | None]":
    """None where there is no Redis."""
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


def _show(found: Report) -> None:
    for each in found.components:
        metrics.HEALTH.labels(component=each.name).set(each.status in WELL)
