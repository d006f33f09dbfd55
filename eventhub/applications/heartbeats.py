"""Watches the heartbeats of monitored applications, in the web process that leads the watch
(eventhub/monitoring/watch.py). SQL module.

A heartbeat is missed by the clock of the database, and only if it could have been received for the
whole time-out: `watched_s` is the time since this process reached the database without
interruption. So a start of the hub, or an outage of the database, gives every application one more
time-out. The processes that do not act watch too, and the next one to act goes on at once.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from eventhub.access.grants import APPLICATIONS
from eventhub.applications import events
from eventhub.applications.changes import SQL
from eventhub.applications.events import (
    GROUP_STATE,
    MISSED,
    STATE,
    ApplicationState,
    GroupState,
    application_draft,
    group_draft,
)
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog import append
from eventhub.eventlog.append import append_proven
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value

log = get_logger(__name__)


class _Due(NamedTuple):
    """An application whose heartbeat may be missed. `stream_id` None: its zone is deleted."""

    id: int
    zone_id: int
    stream_id: int | None


class _StateCount(NamedTuple):
    state: str
    applications: int


_zone = attrgetter("zone_id", "stream_id")


class HeartbeatWatch:
    """The watch of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count_at_s = float("-inf")

    async def check(self, connection: Connection, watched_s: float) -> float:
        """Act on some missed heartbeats, on a connection in autocommit mode; return the seconds
        until the next one may be missed, 0 if there may be more. Raises what psycopg and the log
        raise.
        """
        left_s = await fetch_value(connection, SQL["next"])
        if left_s is not None and left_s <= 0:
            count = await miss_due(connection, watched_s=watched_s)
            if count == limits.HEARTBEATS_MISSED_AT_ONCE:
                return 0.0
            left_s = await fetch_value(connection, SQL["next"])
        now_s = self._clock.monotonic_s()
        if now_s >= self._count_at_s:
            await self._count(connection)
            self._count_at_s = now_s + limits.APPLICATIONS_COUNT_INTERVAL_S
        if left_s is None:
            return limits.WATCH_REST_S
        return max(float(left_s), limits.HEARTBEAT_CHECK_INTERVAL_S)

    async def _count(self, connection: Connection) -> None:
        found = dict(await fetch_all(connection, _StateCount, SQL["count"]))
        for state in events.STATES:
            metrics.APPLICATIONS.labels(state=state).set(found.get(state, 0))


async def miss_due(connection: Connection, *, watched_s: float) -> int:
    """Act on applications that may have missed a heartbeat, at most HEARTBEATS_MISSED_AT_ONCE of
    them: those that did are offline, with an event; others are due later. Return how many were
    examined. The connection is in autocommit mode.
    """
    values = {"rows_max": limits.HEARTBEATS_MISSED_AT_ONCE, "stream": APPLICATIONS}
    due = await fetch_all(connection, _Due, SQL["due"], values)
    if due:
        ids = [one.id for one in due]
        await connection.execute(SQL["postpone"], {"ids": ids, "watched_s": watched_s})
    for (_, stream_id), of_zone in groupby(due, key=_zone):
        ids = [one.id for one in of_zone]
        if stream_id is None:
            await connection.execute(SQL["forget"], (ids,))
        else:
            await _miss(connection, stream_id, ids, watched_s)
    return len(due)


async def _miss(
    connection: Connection, stream_id: int, ids: Sequence[int], watched_s: float
) -> None:
    """Set applications of a zone offline whose heartbeat is missed, in one transaction with the
    events.
    """
    async with connection.transaction():
        await connection.execute(append.SQL["lock_head"], (stream_id,))
        values = {"ids": ids, "watched_s": watched_s, "reason": MISSED}
        missed = await fetch_all(connection, ApplicationState, SQL["miss"], values)
        if not missed:
            return
        regrouped = {"applications": [one.id for one in missed], "groups": []}
        groups = await fetch_all(connection, GroupState, SQL["regroup"], regrouped)
        last = await append_proven(
            connection,
            [
                *(application_draft(stream_id, STATE, one) for one in missed),
                *(group_draft(stream_id, GROUP_STATE, one) for one in groups),
            ],
        )
    metrics.MISSED_HEARTBEATS.inc(len(missed))
    log.info("heartbeats_missed", stream=stream_id, applications=len(missed))
    await connection.execute(append.SQL["notify"], (append.heads_text(last),))
