"""The rates of emits: token buckets of clients and zones that all web processes share. SQL module.

A bucket is a row of `rate_buckets`, which holds at most the events of one second. A process takes
tokens from it in advance, enough for a tenth of a second, and spends them without the database; a
caller without a quota costs nothing. All tokens come from the row, so all processes together never
emit more than rate times seconds, plus the events of one second, plus those by which the last
request exceeded what was left. Tokens that a process took and has not spent within a second are
lost, so with several processes a client may get up to a tenth less than its rate.

At its bound, a bucket is asked ten times a second by each process, however many requests come.

Concurrency contract: one event loop; the functions for Django are independent of it.
"""

import asyncio
from random import uniform
from typing import Any, NamedTuple

import psycopg
from psycopg_pool import AsyncConnectionPool

from eventhub.access.principal import Principal
from eventhub.access.quotas import RateLimited, RateState, rate_headers
from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection, reading
from eventhub.postgresql.rows import cursor_of, fetch_all, fetch_one, scalars

SQL = queries.load("eventhub/access/sql/quotas.sql")


class _Lease(NamedTuple):
    """Tokens granted from a bucket, and those left in it, below 0 for a debt."""

    granted: float
    left: float


class _Rate(NamedTuple):
    """A quota of events per second. `client_id` 0: of the whole zone."""

    client_id: int
    value: int


class _BucketKey(NamedTuple):
    """The client of a bucket; 0: the whole zone."""

    zone_id: int
    client_id: int


class _Bucket:
    """What this process knows of a bucket, and the tokens that it has taken from it."""

    def __init__(self, scope: str, key: _BucketKey, rate: int) -> None:
        self.scope = scope
        self.key = key
        self.rate = rate
        self.tokens = 0.0
        self.tokens_until_s = 0.0
        self.left = float(rate)  # in the row, after the last lease
        self.asked_s = float("-inf")
        self.ask_after_s = 0.0  # the row has no tokens until then
        self.lease: asyncio.Task[None] | None = None

    def state(self, now_s: float) -> RateState:
        refilled = min(self.left + self.rate * (now_s - self.asked_s), self.rate)
        held = self.tokens if now_s < self.tokens_until_s else 0.0
        left = 0 if now_s < self.ask_after_s and held < 1 else max(int(refilled + held), 0)
        return RateState(
            self.scope, self.rate, min(left, self.rate), -min(self.left, 0) / self.rate
        )

    def refusal(self, now_s: float) -> RateLimited:
        wait_s = max(self.ask_after_s - now_s, 0.0)
        return RateLimited(scope=self.scope, rate=self.rate, wait_s=wait_s)

    def is_empty(self, now_s: float) -> bool:
        held = self.tokens >= 1 and now_s < self.tokens_until_s
        return now_s < self.ask_after_s and not held

    def take(self, events: int, now_s: float) -> bool:
        """Spend tokens that this process has; return whether it had enough."""
        if self.tokens < events or now_s >= self.tokens_until_s:
            return False
        self.tokens -= events
        return True

    def note(self, lease: _Lease, preferred: float, now_s: float) -> None:
        held = self.tokens if now_s < self.tokens_until_s else 0.0
        self.tokens = held + lease.granted
        self.tokens_until_s = now_s + limits.EMIT_RATE_HELD_S
        self.left, self.asked_s = lease.left, now_s
        if lease.granted < preferred or lease.left <= 0:
            debt_s = max(-lease.left / self.rate, 0.0)
            self.ask_after_s = now_s + max(debt_s, limits.EMIT_RATE_LEASE_S)


class EmitRateLimiter:
    """The rates of one process. `pool`: of the connections that look up credentials."""

    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool
        self._buckets: dict[_BucketKey, _Bucket] = {}
        self._refused_until_s: dict[int, float] = {}  # by client: when its last refusal is due

    def require(self, principal: Principal) -> None:
        """Raise RateLimited if a rate is known to be used up: before anything is read or parsed."""
        now_s = asyncio.get_running_loop().time()
        for bucket in self._of(principal):
            if bucket.is_empty(now_s):
                raise bucket.refusal(now_s)

    def refusal_pause_s(self, principal: Principal) -> float:
        """Return how long a refusal of the principal is to be delayed, so that a client that
        repeats at once on many connections costs other clients little: at random, and the more
        refusals wait the longer.
        """
        now_s = asyncio.get_running_loop().time()
        most_s = limits.EMIT_REFUSAL_PAUSE_S_MAX
        before_s = self._refused_until_s.get(principal.client_id, 0.0)
        due_s = min(max(before_s, now_s) + 1 / limits.EMIT_REFUSALS_PER_S, now_s + most_s)
        if len(self._refused_until_s) >= limits.KEYS_CACHED_MAX:
            self._refused_until_s.clear()
        self._refused_until_s[principal.client_id] = due_s
        return max(due_s - now_s, uniform(*limits.EMIT_REFUSAL_PAUSE_S))  # noqa: S311 - spreads them

    async def spend(self, principal: Principal, events: int) -> None:
        """Count events that the principal emits. Raises RateLimited, and then counts none;
        DatabaseUnavailable.
        """
        taken: list[_Bucket] = []
        try:
            for bucket in self._of(principal):
                await self._take(bucket, events)
                taken.append(bucket)
        except BaseException:
            for bucket in taken:
                bucket.tokens += events
            raise

    def headers(self, principal: Principal) -> list[tuple[bytes, bytes]]:
        """Return the fields that tell the principal what is left of its rates."""
        now_s = asyncio.get_running_loop().time()
        states = [bucket.state(now_s) for bucket in self._of(principal)]
        return rate_headers(states) if states else []

    def _of(self, principal: Principal) -> list[_Bucket]:
        if principal.rates is None:
            return []
        found = []
        for scope, key, rate in _rates(principal):
            bucket = self._buckets.get(key)
            if bucket is None or bucket.rate != rate:
                if len(self._buckets) >= limits.KEYS_CACHED_MAX:
                    self._buckets.clear()
                bucket = self._buckets[key] = _Bucket(scope, key, rate)
            found.append(bucket)
        return found

    async def _take(self, bucket: _Bucket, events: int) -> None:
        clock = asyncio.get_running_loop().time
        while not bucket.take(events, now_s := clock()):
            if now_s < bucket.ask_after_s:
                raise bucket.refusal(now_s)
            if bucket.lease is None or bucket.lease.done():
                bucket.lease = asyncio.create_task(self._ask(bucket, events))
                bucket.lease.add_done_callback(_retrieve)
            await asyncio.shield(bucket.lease)

    async def _ask(self, bucket: _Bucket, needed: int) -> None:
        preferred = max(bucket.rate * limits.EMIT_RATE_LEASE_S, needed)
        values = _values(bucket.key, bucket.rate, needed, preferred)
        async with reading(self._pool) as connection:
            lease = await fetch_one(connection, _Lease, SQL["lease"], values)
            if lease is None:
                await connection.execute(SQL["add_bucket"], values)
                lease = await fetch_one(connection, _Lease, SQL["lease"], values)
        if lease is not None:
            bucket.note(lease, preferred, asyncio.get_running_loop().time())


def spend_now(connection: psycopg.Connection[Any], principal: Principal) -> None:
    """Count one event that a management request emits. Raises RateLimited."""
    for scope, key, rate in _rates(principal):
        values = _values(key, rate, 1, 1)
        query = cursor_of(connection, _Lease)
        lease = query.execute(SQL["lease"], values).fetchone()
        if lease is None:
            connection.execute(SQL["add_bucket"], values)
            lease = query.execute(SQL["lease"], values).fetchone()
        if lease is not None and not lease.granted:
            raise RateLimited(scope=scope, rate=rate, wait_s=-lease.left / rate)


async def seconds_to_wait(
    connection: Connection, zone_id: int, client_id: int, events: int
) -> float:
    """Count events that the hub emits in the name of a client, and return 0; or count none and
    return the seconds until it may emit.
    """
    client = {"zone": zone_id, "client": client_id}
    for rate in await fetch_all(connection, _Rate, SQL["rates"], client):
        values = _values(_BucketKey(zone_id, rate.client_id), rate.value, events, events)
        lease = await fetch_one(connection, _Lease, SQL["lease"], values)
        if lease is None:
            await connection.execute(SQL["add_bucket"], values)
            lease = await fetch_one(connection, _Lease, SQL["lease"], values)
        if lease is not None and not lease.granted:
            return max(-lease.left / rate.value, limits.EMIT_RATE_LEASE_S)
    return 0.0


def events_in_last_second(
    connection: psycopg.Connection[Any], zone_id: int, client_id: int, rate: int
) -> int:
    """Return about how many events a client, or with 0 a zone, emitted in the last second."""
    values = _values(_BucketKey(zone_id, client_id), rate, 0, 0)
    return scalars(connection).execute(SQL["spent"], values).fetchone() or 0


def _rates(principal: Principal) -> list[tuple[str, _BucketKey, int]]:
    if principal.rates is None:
        return []
    found = []
    if principal.rates.client is not None:
        key = _BucketKey(principal.zone_id, principal.client_id)
        found.append(("client", key, principal.rates.client))
    if principal.rates.zone is not None:
        found.append(("zone", _BucketKey(principal.zone_id, 0), principal.rates.zone))
    return found


def _values(key: _BucketKey, rate: int, needed: float, preferred: float) -> dict[str, Any]:
    terms = {"rate": rate, "needed": needed, "preferred": preferred}
    return {"zone": key.zone_id, "client": key.client_id, **terms}


def _retrieve(done: "asyncio.Task[None]") -> None:
    """Take note of an error, whose waiters may all be gone."""
    if not done.cancelled():
        done.exception()
