"""Announces the members of the hub that joined and left, in every web process; one at a time acts.
It also checks what other packages watch over, and sends the heartbeat of its own process. SQL
module.

The row of a member says whether it was announced, and changes in the transaction of the event. So
each event is appended once, also if the acting process is killed between two statements, or the
whole hub is.

A member is lost without a heartbeat, and only if one could have been received all the time:
`watched_s` is the time since this process reached the database without interruption. So neither an
outage of the database nor a start of the hub makes members look lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import pause_together_s, wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.event.json_codec import moment_text
from eventhub.eventlog import append
from eventhub.eventlog.append import append_proven
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.monitoring.heartbeat import SQL, Beat
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection
from eventhub.postgresql.leadership import leading_session, try_lead
from eventhub.postgresql.rows import fetch_all, fetch_one

log = get_logger(__name__)
throttled = ThrottledLog(log)
_NAME = "eventhub members"
KINDS = ("web", "forwarder", "worker")
# What the leading process does, with `watched_s`; returns the seconds until the next step, 0 if
# there may be more to do.
Step = Callable[[Connection, float], Awaitable[float]]


class _ChangedMember(NamedTuple):
    """A member that joined, or left. `lost`: without recording that it ended."""

    id: str
    kind: str
    node: str
    pid: int
    version: str
    started_at: datetime
    last_seen_at: datetime
    lost: bool


class _Changes(NamedTuple):
    """Whether members are to be announced, and when the next one is lost."""

    is_changed: bool
    lost_in_s: float


class _KindCount(NamedTuple):
    kind: str
    members: int


class MemberWatch:
    """The watch of one process. `beat`: its heartbeat; `steps`: what the acting process does
    besides.
    """

    def __init__(self, url: str, clock: Clock, beat: Beat, steps: Sequence[Step]) -> None:
        self._url = url
        self._clock = clock
        self._beat = beat
        self._steps = (announce_members, *steps)
        self._woken = asyncio.Event()

    def wake(self, _id: int = 0) -> None:
        """Check now: a member joined or left."""
        self._woken.set()

    async def run(self) -> None:
        """Watch over one session of the database until it fails."""
        try:
            async with leading_session(self._url, _NAME) as connection:
                await self._watch(connection)
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            throttled.info("watch_postponed", reason=type(error).__name__)
            await asyncio.sleep(limits.RETAIN_FAULT_PAUSE_S)

    async def _watch(self, connection: Connection) -> None:
        since_s, leads = self._clock.monotonic_s(), False
        while True:
            self._woken.clear()
            pause_s = limits.WATCH_REST_S
            await self._beat(connection)
            leads = leads or await try_lead(connection, _NAME)
            for step in self._steps if leads else ():
                watched_s = self._clock.monotonic_s() - since_s
                try:
                    pause_s = min(pause_s, await step(connection, watched_s))
                except psycopg.errors.LockNotAvailable:  # of a stream; the watch goes on
                    pause_s = min(pause_s, limits.MEMBERS_CHECK_INTERVAL_S)
            if pause_s > 0:
                await wait_until_set(self._woken, pause_together_s(pause_s))


async def announce_members(connection: Connection, watched_s: float) -> float:
    """Announce the members that joined, then those that left, in one transaction, on a connection
    in autocommit mode; return the seconds until the next one may be lost. Raises what psycopg and
    the log raise.
    """
    values = {"watched_s": watched_s, "lost_s": limits.MEMBER_LOST_S}
    found = await fetch_one(connection, _Changes, SQL["changed"], values)
    if found is None or not found.is_changed:
        lost_in_s = found.lost_in_s if found else limits.MEMBER_LOST_S
        return max(lost_in_s, limits.MEMBERS_CHECK_INTERVAL_S)
    async with connection.transaction():
        joined = await fetch_all(connection, _ChangedMember, SQL["join"])
        left = await fetch_all(connection, _ChangedMember, SQL["depart"], values)
        announcements = [
            *(Announcement("member.joined", _joined(one)) for one in joined),
            *(Announcement("member.left", _left(one)) for one in left),
        ]
        if not announcements:
            return limits.MEMBERS_CHECK_INTERVAL_S
        heads = await append_proven(connection, drafts_of(None, announcements))
    await connection.execute(append.SQL["notify"], (append.heads_text(heads),))
    _log(joined, left)
    counts = dict(await fetch_all(connection, _KindCount, SQL["count"]))
    for kind in KINDS:
        metrics.MEMBERS.labels(kind=kind).set(counts.get(kind, 0))
    return limits.MEMBERS_CHECK_INTERVAL_S


def _joined(member: _ChangedMember) -> dict[str, Any]:
    return {"change": "join", **_identity(member)}


def _left(member: _ChangedMember) -> dict[str, Any]:
    return {
        "change": "leave",
        "reason": "lost" if member.lost else "left",
        **_identity(member),
        "last_seen_at": moment_text(member.last_seen_at),
    }


def _identity(member: _ChangedMember) -> dict[str, Any]:
    return {
        "member": member.id,
        "kind": member.kind,
        "node": member.node,
        "pid": member.pid,
        "version": member.version,
        "started_at": moment_text(member.started_at),
    }


def _log(joined: Sequence[_ChangedMember], left: Sequence[_ChangedMember]) -> None:
    for one in joined:
        log.info("member_joined", member=one.id, kind=one.kind, node=one.node, process=one.pid)
    for one in left:
        outcome = "member_lost" if one.lost else "member_left"
        log.info(outcome, member=one.id, kind=one.kind, node=one.node, process=one.pid)
