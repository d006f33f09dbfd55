"""The backlog of pending deliveries, kept within its bounds: the oldest deliveries are dropped, the
endpoint gets a gap notice, and `system` an event. SQL module.

The composition root passes `Backlog.check` to the maintenance of the log, which calls it in one
process at a time, on its own session in autocommit mode. A pending delivery does not retain its
partition: it would move on for ever (retire.py), so the backlog is bounded here, by age as well.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from operator import add
from typing import Any, NamedTuple

import psycopg

from delivery.callbacks.circuits import exhaust_withheld
from delivery.callbacks.operational_events import announce_circuits, disable_failing
from delivery.forward.bounds import (
    BacklogBounds,
    BacklogCut,
    BacklogQuota,
    BacklogSettings,
    EndpointBacklog,
    bounds_of,
    cuts,
)
from delivery.forward.losses import announce_losses
from delivery.sessions.claim_watch import ClaimWatch, announce_skips
from delivery.statistics.counting import note_pending
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_one, fetch_value

log = get_logger(__name__)
SQL = queries.load("delivery/sql/backlog.sql")


class _EndpointCount(NamedTuple):
    """The pending deliveries of an endpoint, parallel or ordered; fields as in
    `EndpointBacklog`.
    """

    endpoint_id: int
    events: int
    bytes: int
    overdue: int
    registrations: int

    def added(self, other: "_EndpointCount") -> "_EndpointCount":
        return _EndpointCount(self.endpoint_id, *map(add, self[1:], other[1:]))


class _Owner(NamedTuple):
    """The client of an endpoint with its zone, and the endpoint's status."""

    id: int
    client_id: int
    zone_id: int
    status: str  # of ENDPOINT_STATUSES


class _Quota(NamedTuple):
    """A quota of a backlog; `client_id` None: of the zone as a whole."""

    zone_id: int
    client_id: int | None
    events: int | None
    bytes: int | None


class _DeadLetters(NamedTuple):
    """The dead letters of an endpoint, and its status; None if it was deleted."""

    endpoint_id: int
    deliveries: int
    status: str | None


class _Cutoff(NamedTuple):
    """The last delivery to be dropped."""

    created_at: datetime
    segment: int
    sequence: int


class _Noted(NamedTuple):
    """Whether anything was noted that may be announced, or end an endpoint."""

    circuits: bool
    losses: bool
    skips: bool


class Backlog:
    """The pending deliveries of the hub. `settings`: the bounds that the hub's settings give."""

    def __init__(self, settings: BacklogSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._check_at_s = float("-inf")
        self._exhaust_at_s = float("-inf")
        self._exhausted = 0  # the last endpoint of the search
        self._dead_letters = DeadLetterCount()
        self._claims = ClaimWatch(clock)
        self._count_at_s = float("-inf")
        self._session: Connection | None = None  # the one that has the settings
        self._had_some = True  # pending deliveries, at the last check

    async def check(self, connection: Connection, room: StorageBudget) -> None:
        """Enforce the bounds, if it is time, and announce losses. Raise what psycopg raises."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._check_at_s:
            if connection is not self._session:
                await connection.execute(SQL["settings"])
                self._session = connection
            some = await fetch_value(connection, SQL["some"])
            if some or self._had_some:
                bounds = bounds_of(self._settings, room.capacity)
                await enforce_bounds(connection, await with_quotas(connection, bounds))
            self._had_some = some
            took_s = self._clock.monotonic_s() - now_s
            pause_s = min(limits.BACKLOG_CHECK_SHARE * took_s, limits.BACKLOG_CHECK_INTERVAL_S_MAX)
            self._check_at_s = now_s + took_s + max(pause_s, limits.BACKLOG_CHECK_INTERVAL_S)
        if now_s >= self._exhaust_at_s:
            done = await exhaust_withheld(connection, self._exhausted)
            self._exhausted = done.after or 0
            if done.after is None:
                self._exhaust_at_s = now_s + limits.CALLBACK_EXHAUST_INTERVAL_S
        if now_s >= self._count_at_s and await self._dead_letters.count(connection):
            self._count_at_s = now_s + limits.DEAD_LETTERS_COUNT_INTERVAL_S
        await _announce(connection)
        await self._claims.count(connection)


async def _announce(connection: Connection) -> None:
    """Announce what was noted. One short statement instead of seven finds that nothing was."""
    noted = await fetch_one(connection, _Noted, SQL["noted"])
    if noted is None:
        return
    if noted.circuits:
        await disable_failing(connection)
        await announce_circuits(connection)
    if noted.losses:
        await announce_losses(connection)
    if noted.skips:
        await announce_skips(connection)


class DeadLetterCount:
    """The metric of dead letters, counted in passes: each continues after the endpoint at which the
    last one ended.
    """

    def __init__(self) -> None:
        self._after = 0
        self._counts: Counter[str] = Counter()

    async def count(self, connection: Connection) -> bool:
        """Count the dead letters of a bounded number of endpoints; return True, and publish the
        sums, when all are counted.
        """
        bounds = {
            "after": self._after,
            "endpoints_max": limits.DEAD_LETTERS_COUNT_ENDPOINTS_MAX,
            "deliveries_max": limits.DEAD_LETTERS_COUNTED_MAX,
        }
        found = await fetch_all(connection, _DeadLetters, SQL["dead_letters"], bounds)
        for each in found:
            self._after = each.endpoint_id
            if each.status is not None:
                self._counts[each.status] += each.deliveries
        if found:
            return False
        for status in metrics.ENDPOINT_STATUSES:
            metrics.CALLBACK_DEAD.labels(status).set(self._counts[status])
        self._after = 0
        self._counts.clear()
        return True


async def with_quotas(connection: Connection, bounds: BacklogBounds) -> BacklogBounds:
    """Return the bounds with the quotas that operators set for clients and zones."""
    quotas = await fetch_all(connection, _Quota, SQL["quotas"])
    clients = {q.client_id: BacklogQuota(q.events, q.bytes) for q in quotas if q.client_id}
    zones = {q.zone_id: BacklogQuota(q.events, q.bytes) for q in quotas if not q.client_id}
    return bounds._replace(client_quotas=clients, zone_quotas=zones)


async def enforce_bounds(connection: Connection, bounds: BacklogBounds) -> int:
    """Drop what exceeds the bounds, on a connection with SQL's settings; return how many
    deliveries.
    """
    backlogs = await _measure(connection, bounds.age_s)
    metrics.BACKLOG_EVENTS.set(sum(one.events for one in backlogs))
    metrics.BACKLOG_BYTES.set(sum(one.bytes for one in backlogs))
    await _store_counts(connection, backlogs)
    dropped = 0
    for cut in cuts(backlogs, bounds):
        dropped_now = await _drop(connection, cut, bounds.age_s)
        metrics.BACKLOG_DROPPED.labels(bound=cut.bound).inc(dropped_now)
        if dropped_now:
            endpoint = cut.backlog.endpoint_id
            log.warning("backlog_dropped", endpoint=endpoint, count=dropped_now, bound=cut.bound)
        dropped += dropped_now
    await note_pending(connection, {one.endpoint_id: one.events for one in backlogs})
    return dropped


async def _measure(connection: Connection, age_s: int) -> list[EndpointBacklog]:
    """Return the backlog of each endpoint, without deleted ones, whose deliveries are cancelled."""
    backlogs: dict[int, _EndpointCount] = {}
    for ordered in (False, True):
        async for one in _counted(connection, age_s, ordered):
            before = backlogs.get(one.endpoint_id)
            backlogs[one.endpoint_id] = one if before is None else one.added(before)
    owners: list[_Owner] = []
    if backlogs:
        owners = await fetch_all(connection, _Owner, SQL["clients"], {"endpoints": [*backlogs]})
    pending: Counter[str] = Counter()
    for owner in owners:
        pending[owner.status] += backlogs[owner.id].events
    for status in metrics.ENDPOINT_STATUSES:
        metrics.CALLBACK_PENDING.labels(status).set(pending[status])
    return [
        EndpointBacklog(
            client_id=owner.client_id, zone_id=owner.zone_id, **backlogs[owner.id]._asdict()
        )
        for owner in owners
    ]


async def _store_counts(connection: Connection, backlogs: Sequence[EndpointBacklog]) -> None:
    """Store the backlog of each client, for those who read its limits (tenant_limits)."""
    events: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    for one in backlogs:
        client = one.zone_id, one.client_id
        events[client] += one.events
        sizes[client] += one.bytes
    values = {
        "zones": [zone_id for zone_id, _ in events],
        "clients": [client_id for _, client_id in events],
        "events": [*events.values()],
        "bytes": [sizes[client] for client in events],
    }
    await connection.execute(SQL["store_counts"], values)


async def _counted(
    connection: Connection, age_s: int, ordered: bool
) -> AsyncIterator[_EndpointCount]:
    """Yield the counts of endpoints. A statement counts a few endpoints, so that none runs for
    long, and one endpoint after a statement timed out.
    """
    values = {"age_s": age_s, "ordered": ordered, "row_bytes": limits.BACKLOG_ROW_BYTES, "after": 0}
    count = limits.BACKLOG_ENDPOINTS_PER_STATEMENT_MAX
    while True:
        try:
            bounds = {**values, "endpoints_max": count}
            rows = await fetch_all(connection, _EndpointCount, SQL["waiting"], bounds)
        except psycopg.errors.QueryCanceled:
            if count == 1:
                raise
            count = 1
            continue
        for row in rows:
            yield row
        if len(rows) < count:
            return
        values["after"] = rows[-1].endpoint_id


async def _drop(connection: Connection, cut: BacklogCut, age_s: int) -> int:
    """Drop the deliveries of a cut in statements of bounded size; return how many."""
    endpoint = {"endpoint": cut.backlog.endpoint_id}
    minimum = {"events": cut.events, "bytes": cut.bytes, "age_s": age_s}
    bounds = {**endpoint, **minimum, "row_bytes": limits.BACKLOG_ROW_BYTES}
    last = await fetch_one(connection, _Cutoff, SQL["cutoff"], bounds)
    if last is None:
        return 0
    # registrations that a delivery names on average
    per_delivery = -(-cut.backlog.registrations // max(cut.backlog.events, 1))
    rows_max = limits.REGISTRATIONS_PER_STATEMENT_MAX // max(per_delivery, 1)
    values: dict[str, Any] = {
        **endpoint,
        **last._asdict(),
        "why": cut.bound,
        "rows_max": max(min(rows_max, limits.DELIVERIES_PER_STATEMENT_MAX), 1),
    }
    dropped = 0
    for ordered in (False, True):
        values["ordered"] = ordered
        while dropped_now := await fetch_value(connection, SQL["drop_oldest"], values):
            dropped += dropped_now
    return dropped
