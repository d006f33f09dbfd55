"""Stores delayed events as timers, in one transaction with the other events of their request.
SQL module.

Rows are locked in the order of `sql/timers.sql`: quotas, timers, the number of the client, heads.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import psycopg
from psycopg_pool import AsyncConnectionPool

from eventhub.access.quotas import quota_reached
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.errors import (
    DatabaseUnavailable,
    LimitReached,
    OutcomeUnknown,
)
from eventhub.eventlog import append
from eventhub.eventlog.append import append_whole, heads_text
from eventhub.eventlog.delayed import (
    DelayedDraft,
    MixedOutcome,
    MixedRequest,
    StoredBefore,
    StoreDelayed,
    WaitingEvent,
)
from eventhub.eventlog.drafts import Appended
from eventhub.eventlog.errors import StorageFull
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, reading, reading_pool
from eventhub.postgresql.rows import fetch_all, fetch_value
from registrations.timers.ending import SQL
from registrations.timers.schedule import moment

_SOON_US = int(2 * limits.TIMERS_CHECK_INTERVAL_S * 1e6)  # later ones are found without a wake-up


class _DelayedRow(NamedTuple):
    """The timer of a delayed event. `is_new`: it was not stored before."""

    id: int
    token: bytes | None
    due_us: int
    is_new: bool


class _Position(NamedTuple):
    digest: bytes
    segment: str
    sequence: int


class _TimerQuota(NamedTuple):
    of_zone: bool
    value: int


class _Delayed(NamedTuple):
    """The delayed events of a request. `new_ids`: the timers that it created."""

    waiting: list[WaitingEvent]
    before: list[StoredBefore]
    new_ids: list[int]


@asynccontextmanager
async def delayed_events(url: str) -> AsyncIterator[StoreDelayed]:
    """Open what stores delayed events, for `Log.store_delayed`. The database may be unavailable."""
    pool = reading_pool(url, "delay", limits.DELAYS_PER_PROCESS_MAX, idle=0)
    await pool.open()

    async def store(request: MixedRequest) -> MixedOutcome:
        return await _store(pool, request)

    try:
        yield store
    finally:
        await pool.close(timeout=2)


async def _store(pool: AsyncConnectionPool[Connection], request: MixedRequest) -> MixedOutcome:
    """Store a request, all or none. Raises UnknownStream, ProducerWindow, LimitReached,
    DatabaseUnavailable and DatabaseBusy (nothing stored), OutcomeUnknown, StorageFull.
    """
    async with reading(pool) as connection:
        try:
            async with connection.transaction():
                delayed = await _delay(connection, request)
                now = request.now
                appended = await append_whole(connection, now) if now else []
        except psycopg.errors.DiskFull as error:
            raise StorageFull(retry_after_s=limits.STORAGE_FULL_RETRY_S) from error
        except CONNECTION_ERRORS as error:
            if isinstance(error, psycopg.Error) and not connection.closed:
                raise DatabaseUnavailable() from error
            raise OutcomeUnknown() from error
        await _announce(connection, appended, delayed.waiting)
    return MixedOutcome(appended, delayed.waiting, delayed.before)


async def _delay(connection: Connection, request: MixedRequest) -> _Delayed:
    """Create the timers of delayed events. Raises LimitReached."""
    client = {"client": request.client_id, "zone": request.zone_id}
    quotas = await fetch_all(connection, _TimerQuota, SQL["lock_quotas"], client)
    first: dict[bytes, DelayedDraft] = {}  # of those with an id, by it
    for one in request.delayed:
        if one.draft.token:
            first.setdefault(one.draft.token, one)
    rows = await _insert(connection, request, first)
    before = await _stored_before(connection, first)
    found = _found(request, rows, before)
    again = [row.id for row in rows if row.is_new and row.token in before]
    if again:
        await connection.execute(SQL["delete"], (again,))
    if found.new_ids:
        values = {**client, "more": len(found.new_ids)}
        used = await fetch_value(connection, SQL["add"], values)
        await _require_room(connection, request.zone_id, quotas, used)
    return found


async def _insert(
    connection: Connection, request: MixedRequest, first: dict[bytes, DelayedDraft]
) -> list[_DelayedRow]:
    """Insert the timers of events without an id, and of the first one of each id."""
    given = [one for one in request.delayed if not one.draft.token or first[one.draft.token] is one]
    values = {
        "client": request.client_id,
        "zone": request.zone_id,
        "streams": [one.draft.stream_id for one in given],
        "payloads": [one.draft.payload for one in given],
        "dues": [one.due_us for one in given],
        "tokens": [one.draft.token or None for one in given],
        "now": moment(SystemClock().now_us()),
    }
    return await fetch_all(connection, _DelayedRow, SQL["delay"], values)


async def _stored_before(
    connection: Connection, first: dict[bytes, DelayedDraft]
) -> dict[bytes, _Position]:
    """Return the positions of events that the log has, by their tokens. This is read after the
    insert, which has waited for a timer that fires at this moment.
    """
    if not first:
        return {}
    [stream_id] = {one.draft.stream_id for one in first.values()}
    values = (stream_id, [*first])
    found = await fetch_all(connection, _Position, SQL["stored_before"], values)
    return {one.digest: one for one in found}


def _found(
    request: MixedRequest, rows: list[_DelayedRow], before: dict[bytes, _Position]
) -> _Delayed:
    """Assign the rows to the events: by token, else in their order, in which the ids ascend."""
    by_token = {row.token: row for row in rows if row.token is not None}
    plain = iter(sorted(row for row in rows if row.token is None))
    found = _Delayed([], [], [row.id for row in rows if row.is_new and row.token not in before])
    for at, draft, _ in request.delayed:
        position = before.get(draft.token)
        if position is not None:
            found.before.append(StoredBefore(at, position.segment, position.sequence))
            continue
        row = by_token[draft.token] if draft.token else next(plain)
        found.waiting.append(WaitingEvent(at, row.id, row.due_us))
    return found


async def _require_room(
    connection: Connection, zone_id: int, quotas: list[_TimerQuota], used: int
) -> None:
    """Raise LimitReached if the client has more timers than it may."""
    if used > limits.TIMERS_PER_CLIENT_MAX:
        raise LimitReached(limit=limits.TIMERS_PER_CLIENT_MAX)
    for of_zone, value in quotas:
        counted = (
            await fetch_value(connection, SQL["used_in_zone"], (zone_id,)) if of_zone else used
        )
        if counted > value:
            raise quota_reached("timers", value, of_zone=of_zone)


async def _announce(
    connection: Connection, appended: list[Appended], waiting: list[WaitingEvent]
) -> None:
    """Announce the events to readers, and the first time to the part that fires timers, unless that
    looks before. It also looks by itself, so a failure changes nothing.
    """
    soon_us = SystemClock().now_us() + _SOON_US
    try:
        new = [one for one in appended if not one.duplicate]
        if new:
            heads = heads_text({one.stream_id: one.sequence for one in new})
            await connection.execute(append.SQL["notify"], (heads,))
        if any(one.due_us < soon_us for one in waiting):
            await connection.execute(SQL["notify"])
    except CONNECTION_ERRORS:
        return
