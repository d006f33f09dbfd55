"""How much zones and clients use of what quotas bound, and the announcement of quotas that are
reached. SQL module.

The composition root passes `QuotaWatch.check` to the maintenance of the log, which calls it in one
process at a time. A quota that is reached is marked in its row. Where that refuses emits, every
process learns of it by the announcement, because the authorizer then reads its principals again.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import psycopg

from eventhub.access.quotas import Kind
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.retention.drop import append_in_turn
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, fetch_all

SQL = queries.load("delivery/sql/quotas.sql")
log = get_logger(__name__)

# Rates change too often to be announced; of backlogs, what is dropped is announced.
WATCHED: tuple[Kind, ...] = (
    *("stored_bytes", "sockets", "registrations", "endpoints", "timers", "patterns"),
)


class Bounded(NamedTuple):
    """What a quota bounds: a kind, of a client, or with 0 of a zone as a whole."""

    zone_id: int
    client_id: int
    kind: str


class _Used(NamedTuple):
    """How much is used; `used` None: of a kind that is not counted."""

    zone_id: int
    client_id: int
    kind: str
    used: int | None


class _Watched(NamedTuple):
    """A quota that is announced when it is reached."""

    id: int
    zone_id: int
    client_id: int
    kind: str
    value: int
    reached: bool

    @property
    def bounded(self) -> Bounded:
        return Bounded(self.zone_id, self.client_id, self.kind)

    def is_reached(self, used: int) -> bool:
        """Return whether it is, after it was or was not: near its value it stays as it was."""
        return used >= self.value * (limits.QUOTA_SHARE_BELOW if self.reached else 1.0)


class _Marked(NamedTuple):
    """A quota that was reached, or no longer is. `client` None: of the zone as a whole."""

    zone: str
    client: str | None
    kind: str
    value: int
    reached: bool
    used: int


def used(connection: psycopg.Connection[Any], bounded: Sequence[Bounded]) -> dict[Bounded, int]:
    """Return how much is used of each, except of `events_per_s`."""
    query = cursor_of(connection, _Used).execute(SQL["used"], _values(bounded))
    return _by_bounded(query.fetchall())


class QuotaWatch:
    """The quotas of the hub."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._check_at_s = float("-inf")

    async def check(self, connection: Connection) -> None:
        """Mark and announce quotas that are reached or no longer are, if it is time. Raise what
        psycopg raises.
        """
        now_s = self._clock.monotonic_s()
        if now_s < self._check_at_s:
            return
        await mark_reached(connection)
        took_s = self._clock.monotonic_s() - now_s
        pause_s = max(limits.QUOTA_CHECK_SHARE * took_s, limits.QUOTA_CHECK_INTERVAL_S)
        self._check_at_s = now_s + took_s + pause_s


async def mark_reached(connection: Connection) -> None:
    """Mark and announce quotas that are reached or no longer are, on a connection in autocommit
    mode.
    """
    watched = await fetch_all(connection, _Watched, SQL["watched"], {"kinds": [*WATCHED]})
    found: dict[Bounded, int] = {}
    if watched:
        values = _values([quota.bounded for quota in watched])
        found = _by_bounded(await fetch_all(connection, _Used, SQL["used"], values))
    reached = {quota.id: quota.is_reached(found[quota.bounded]) for quota in watched}
    numbers = Counter(quota.kind for quota in watched if reached[quota.id])
    for kind in WATCHED:
        metrics.QUOTAS_REACHED.labels(kind).set(numbers[kind])
    changed = [quota for quota in watched if quota.reached != reached[quota.id]]
    if not changed:
        return
    marks = {
        "ids": [quota.id for quota in changed],
        "values": [quota.value for quota in changed],
        "reached": [reached[quota.id] for quota in changed],
        "used": [found[quota.bounded] for quota in changed],
        "held_s": limits.QUOTA_REACHED_S_MIN,
    }
    async with connection.transaction():
        marked = await fetch_all(connection, _Marked, SQL["mark"], marks)
        if marked:
            await append_in_turn(connection, _announcements(marked))
    for each in marked:
        log.info("quota_reached" if each.reached else "quota_available", **each._asdict())


_zone = attrgetter("zone")


def _announcements(marked: Sequence[_Marked]) -> list[Draft]:
    drafts: list[Draft] = []
    for zone, of_zone in groupby(sorted(marked, key=_zone), key=_zone):
        drafts += drafts_of(zone, [_announcement(each) for each in of_zone])
    return drafts


def _announcement(marked: _Marked) -> Announcement:
    scope = "zone" if marked.client is None else "client"
    own = {} if marked.client is None else {"client": marked.client}
    attributes = {
        **own,
        "level": "warning" if marked.reached else "info",
        "kind": marked.kind,
        "quota": marked.value,
        "used": marked.used,
    }
    outcome = "quota_reached" if marked.reached else "quota_available"
    return Announcement(f"{scope}.{outcome}", attributes)


def _values(bounded: Sequence[Bounded]) -> dict[str, Any]:
    return {
        "zones": [each.zone_id for each in bounded],
        "clients": [each.client_id for each in bounded],
        "kinds": [each.kind for each in bounded],
        "lost_s": limits.SOCKETS_LOST_S,
    }


def _by_bounded(rows: Sequence[_Used]) -> dict[Bounded, int]:
    return {Bounded(*row[:3]): row.used for row in rows if row.used is not None}
