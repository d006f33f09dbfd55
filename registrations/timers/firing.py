"""Fires the timers that are due, in every forwarder; one at a time acts. SQL module.

A timer fires in one transaction: its row moves to the next time, or is deleted, and the event is
appended last. So it fires exactly once, also if the process is killed, or is stopped and another
one acts meanwhile: a row that has moved is not claimed again.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import LiteralString, NamedTuple

import psycopg

from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import pause_together_s
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog import append
from eventhub.eventlog.append import append_proven
from eventhub.eventlog.drafts import Draft
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, wait_for_notify
from eventhub.postgresql.leadership import leading_session, try_lead
from eventhub.postgresql.rows import fetch_all, fetch_value
from registrations.timers.ending import SQL
from registrations.timers.events import FiredTimer, draft_of
from registrations.timers.schedule import Schedule, UnreadableSchedule, fire, moment

log = get_logger(__name__)
throttled = ThrottledLog(log)
_NAME = "eventhub timers"
_CHANNEL: LiteralString = "eventhub_timers"  # as in the statement `notify`


class _DueTimer(NamedTuple):
    """A timer that is due. `is_gone`: its stream or client was deleted; `is_refused`: its stream
    accepts no events now.
    """

    id: int
    client_id: int
    client: str | None
    registration_id: int | None
    stream_id: int
    handle: str | None
    payload: bytes | None
    token: bytes | None
    at: datetime | None
    every_s: int | None
    start: datetime | None
    end: datetime | None
    cron: str | None
    timezone: str | None
    next_at: datetime
    due_at: datetime
    fired: int
    is_gone: bool
    is_refused: bool

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.at, self.every_s, self.start, self.end, self.cron, self.timezone)


class _Move(NamedTuple):
    """The next state of a timer. `next_at` None: it is deleted; `draft` None: it does not fire."""

    due: _DueTimer
    next_at: datetime | None
    due_at: datetime | None
    draft: Draft | None


class _ClaimedTimer(NamedTuple):
    """A timer that was moved, or deleted: then `ended_of` is its client."""

    id: int
    ended_of: int | None


class TimerFiring:
    """The firing of one process."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._notified = False
        self._count_at_s = float("-inf")

    async def run(self) -> None:
        """Let timers fire over one session of the database until it fails."""
        try:
            async with leading_session(self._url, _NAME) as connection:
                connection.add_notify_handler(lambda _: self._note())
                await connection.execute(f"LISTEN {_CHANNEL}")
                leads = False
                while True:
                    self._notified = False
                    leads = leads or await try_lead(connection, _NAME)
                    pause_s = await (self._fire if leads else _standby_s)(connection)
                    if pause_s > 0 and not self._notified:
                        await wait_for_notify(connection, pause_together_s(pause_s))
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            throttled.info("timers_postponed", reason=type(error).__name__)
            await asyncio.sleep(limits.RETAIN_FAULT_PAUSE_S)

    def _note(self) -> None:
        self._notified = True

    async def _fire(self, connection: Connection) -> float:
        """Let timers fire that are due; return the seconds until the next look."""
        left_s = await self._left_s(connection)
        if left_s is not None and left_s <= 0:
            if await fire_due(connection, self._clock) == limits.TIMERS_FIRED_AT_ONCE:
                return 0.0
            left_s = await self._left_s(connection)
        await self._count(connection)
        if left_s is None:
            return limits.TIMERS_CHECK_INTERVAL_S
        # one that is still due is being changed at this moment
        return min(max(left_s, limits.TIMER_HELD_PAUSE_S), limits.TIMERS_CHECK_INTERVAL_S)

    async def _left_s(self, connection: Connection) -> float | None:
        """Return the seconds until the first timer is due; None if there is none."""
        due = await fetch_value(connection, SQL["next"])
        return None if due is None else (due - moment(self._clock.now_us())).total_seconds()

    async def _count(self, connection: Connection) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._count_at_s:
            return
        self._count_at_s = now_s + limits.TIMERS_COUNT_INTERVAL_S
        metrics.TIMERS.set(await fetch_value(connection, SQL["total"]))
        values = {"now": moment(self._clock.now_us()), "rows_max": limits.TIMERS_COUNTED_MAX}
        metrics.TIMERS_DUE.set(await fetch_value(connection, SQL["overdue"], values))


async def _standby_s(connection: Connection) -> float:
    """Return the seconds until a process that does not lead tries again: more without timers."""
    has_timers = await fetch_value(connection, SQL["next"]) is not None
    return limits.TIMERS_LEAD_INTERVAL_S if has_timers else limits.TIMERS_CHECK_INTERVAL_S


async def fire_due(connection: Connection, clock: Clock) -> int:
    """Let the earliest timers fire that are due by the clock, TIMERS_FIRED_AT_ONCE at most; return
    how many were examined. The connection is in autocommit mode. Raises what psycopg raises, and
    EventHubError while nothing can be appended.
    """
    now = moment(clock.now_us())
    values = {"now": now, "rows_max": limits.TIMERS_FIRED_AT_ONCE}
    found = await fetch_all(connection, _DueTimer, SQL["due"], values)
    moves: list[_Move] = []
    for one in found:
        moves.append(_move(one, now))
        if one.cron is not None:
            await asyncio.sleep(0)  # counting missed times may take a while
    if not moves:
        return 0
    async with connection.transaction():
        claimed = await _claim(connection, moves, now)
        fired = [one for one in moves if one.draft is not None and one.due.id in claimed]
        drafts = [one.draft for one in fired if one.draft is not None]
        heads = await append_proven(connection, drafts) if drafts else {}
    if fired:
        await connection.execute(append.SQL["notify"], (append.heads_text(heads),))
        _report(fired, moment(clock.now_us()))
    return len(found)


def _move(due: _DueTimer, now: datetime) -> _Move:
    if due.is_gone or due.client is None:
        return _Move(due, None, None, None)
    postponed = _Move(due, due.next_at, now + timedelta(seconds=limits.TIMER_POSTPONED_S), None)
    if due.is_refused:
        return postponed
    try:
        found = fire(due.schedule, due.next_at, now)
    except UnreadableSchedule as error:
        throttled.warning("timer_postponed", timer=due.id, reason=str(error))
        return postponed
    timer = FiredTimer(
        due.id,
        due.client,
        due.registration_id,
        due.stream_id,
        due.handle,
        due.fired + 1,
        due.payload,
        due.token,
    )
    return _Move(due, found.next_at, found.next_at, draft_of(timer, found))


async def _claim(connection: Connection, moves: Sequence[_Move], now: datetime) -> set[int]:
    """Move and delete rows that nobody changed since they were read; return their ids."""
    values = {
        "ids": [one.due.id for one in moves],
        "before": [one.due.due_at for one in moves],
        "next": [one.next_at for one in moves],
        "due": [one.due_at for one in moves],
        "fires": [int(one.draft is not None) for one in moves],
        "now": now,
    }
    claimed = await fetch_all(connection, _ClaimedTimer, SQL["claim"], values)
    ended = [one.ended_of for one in claimed if one.ended_of is not None]
    if ended:
        await connection.execute(SQL["count_ended"], {"clients": ended})
    return {one.id for one in claimed}


def _report(fired: Sequence[_Move], now: datetime) -> None:
    metrics.TIMERS_FIRED.inc(len(fired))
    for one in fired:
        metrics.TIMER_LATENESS.observe(max((now - one.due.due_at).total_seconds(), 0.0))
