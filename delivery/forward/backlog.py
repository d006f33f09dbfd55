"""Keeps what waits for endpoints within its bounds: the oldest goes, the endpoint gets a notice of
the gap, and `system` an event. SQL module.

The composition root gives `Backlog.look` to the log's upkeep, which calls it in one process at a
time, on a session of its own in autocommit mode. What is pending keeps no partition: it moves on
(retiring.py) and would for ever, so it is bounded here, by its age too.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from operator import add
from typing import Any, NamedTuple

import psycopg

from delivery.forward.bounds import Bounds, Cut, Waiting, Wanted, bounds_of, cuts
from delivery.forward.losses import announce_losses
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("delivery/sql/backlog.sql")


class _Counted(NamedTuple):
    """What waits for an endpoint, in one of its orders. `Waiting` says what of what."""

    endpoint_id: int
    events: int
    bytes: int
    overdue: int
    names: int

    def added(self, other: "_Counted") -> "_Counted":
        return _Counted(self.endpoint_id, *map(add, self[1:], other[1:]))


class _Owner(NamedTuple):
    """Whose an endpoint is."""

    id: int
    client_id: int


class _Last(NamedTuple):
    """The last delivery that is to go."""

    created_at: datetime
    segment: int
    sequence: int


class Backlog:
    """What waits for all endpoints of the hub. `wanted`: what the hub's settings let wait."""

    def __init__(self, wanted: Wanted, clock: Clock) -> None:
        self._wanted = wanted
        self._clock = clock
        self._look_at_s = float("-inf")

    async def look(self, connection: Connection, room: StorageBudget) -> None:
        """Count and cut, if it is time, and announce what endpoints lost. Raises what psycopg
        raises.
        """
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_at_s:
            await connection.execute(SQL["settings"])
            await bound(connection, bounds_of(self._wanted, room.capacity))
            took_s = self._clock.monotonic_s() - now_s
            pause_s = min(limits.BACKLOG_CHECK_SHARE * took_s, limits.BACKLOG_CHECK_INTERVAL_S_MAX)
            self._look_at_s = now_s + took_s + max(pause_s, limits.BACKLOG_CHECK_INTERVAL_S)
        await announce_losses(connection)


async def bound(connection: Connection, bounds: Bounds) -> int:
    """Drop what is too much; how many deliveries. On a connection with the settings of SQL."""
    found = await _measure(connection, bounds.age_s)
    metrics.BACKLOG_EVENTS.set(sum(one.events for one in found))
    metrics.BACKLOG_BYTES.set(sum(one.bytes for one in found))
    dropped = 0
    for cut in cuts(found, bounds):
        went = await _drop(connection, cut, bounds.age_s)
        metrics.BACKLOG_DROPPED.labels(bound=cut.bound).inc(went)
        if went:
            endpoint = cut.waiting.endpoint_id
            log.warning("backlog_dropped", endpoint=endpoint, count=went, bound=cut.bound)
        dropped += went
    return dropped


async def _measure(connection: Connection, age_s: int) -> list[Waiting]:
    """By endpoint; of deleted ones nothing, because theirs are cancelled."""
    found: dict[int, _Counted] = {}
    for ordered in (False, True):
        async for one in _counted(connection, age_s, ordered):
            before = found.get(one.endpoint_id)
            found[one.endpoint_id] = one if before is None else one.added(before)
    owners = await cursor_of(connection, _Owner).execute(SQL["clients"], {"endpoints": [*found]})
    return [
        Waiting(client_id=owner.client_id, **found[owner.id]._asdict())
        for owner in await owners.fetchall()
    ]


async def _counted(connection: Connection, age_s: int, ordered: bool) -> AsyncIterator[_Counted]:
    """Some endpoints at a time, so that no statement runs for long; one at a time after some that
    did.
    """
    values = {"age_s": age_s, "ordered": ordered, "row_bytes": limits.BACKLOG_ROW_BYTES, "after": 0}
    count = limits.BACKLOG_ENDPOINTS_PER_STATEMENT_MAX
    while True:
        try:
            query = cursor_of(connection, _Counted)
            await query.execute(SQL["waiting"], {**values, "endpoints_max": count})
            rows = await query.fetchall()
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


async def _drop(connection: Connection, cut: Cut, age_s: int) -> int:
    """What a cut says, in statements of bounded size; how many deliveries went."""
    endpoint = {"endpoint": cut.waiting.endpoint_id}
    asked = {"events": cut.events, "bytes": cut.bytes, "age_s": age_s}
    query = cursor_of(connection, _Last)
    bounds = {**endpoint, **asked, "row_bytes": limits.BACKLOG_ROW_BYTES}
    last = await (await query.execute(SQL["cutoff"], bounds)).fetchone()
    if last is None:
        return 0
    named = -(-cut.waiting.names // max(cut.waiting.events, 1))  # by one delivery, in the mean
    rows_max = limits.REGISTRATIONS_PER_STATEMENT_MAX // max(named, 1)
    values = {
        **endpoint,
        **last._asdict(),
        "why": cut.bound,
        "rows_max": max(min(rows_max, limits.DELIVERIES_PER_STATEMENT_MAX), 1),
    }
    dropped = 0
    for ordered in (False, True):
        while went := await _went(connection, {**values, "ordered": ordered}):
            dropped += went
    return dropped


async def _went(connection: Connection, values: dict[str, Any]) -> int:
    count = await scalars(connection).execute(SQL["drop_oldest"], values)
    return await count.fetchone() or 0
