"""Announces in `system` which events sessions skipped, and counts the claims of all sessions for a
metric. SQL module.

Rows of `session_skips` are written together with the end of the claims, so nothing is missed; one
process announces them. The first skipped event of a session is announced within seconds, later ones
together, so that a consumer that fails at everything produces few events.
"""

from itertools import groupby
from typing import Any, NamedTuple

from delivery.sessions.claims import SQL
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.event.json_codec import time_text
from eventhub.eventlog.retention.drop import append_in_turn
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value

log = get_logger(__name__)


class SessionSkips(NamedTuple):
    """The events that a session skipped since the last announcement, or a session group whose
    members share. `skipped`: the first of them, with stream, segment, sequence and attempts.
    """

    zone: str
    client: str
    session: int | None
    session_group: int | None
    name: str
    events: int
    skipped: list[dict[str, Any]]
    since_us: int


class ClaimWatch:
    """The claims of all sessions, as one process watches them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count_at_s = float("-inf")

    async def count(self, connection: Connection) -> None:
        """Count the claims, if it is time. Raise what psycopg raises."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._count_at_s:
            self._count_at_s = now_s + limits.CLAIMS_COUNT_INTERVAL_S
            bounds = {"rows_max": limits.CLAIMS_COUNTED_MAX}
            metrics.CLAIMS.set(await fetch_value(connection, SQL["count"], bounds))


async def announce_skips(connection: Connection) -> int:
    """Announce the skipped events that are due, for a bounded number of sessions; return how many.
    Raise what psycopg raises, and what refuses an event.
    """
    bounds = {"interval_s": limits.SKIPS_INTERVAL_S, "sessions_max": limits.SKIPS_PER_CHECK_MAX}
    async with connection.transaction():
        found = await fetch_all(connection, SessionSkips, SQL["skips_due"], bounds)
        drafts = [
            draft
            for zone, of_zone in groupby(found, key=lambda skips: skips.zone)
            for draft in drafts_of(zone, [_announcement(skips) for skips in of_zone])
        ]
        if drafts:
            await append_in_turn(connection, drafts)
    await connection.execute(SQL["forget_skips"], bounds)
    for skips in found:
        log.warning("events_skipped", **skips._asdict())
    return len(found)


def _announcement(skips: SessionSkips) -> Announcement:
    attributes: dict[str, Any] = {
        "level": "warning",
        "client": skips.client,
        "session": skips.session,
        "session_group": skips.session_group,
        "name": skips.name,
        "events": skips.events,
        "since": time_text(skips.since_us),
        "skipped": skips.skipped[: limits.SKIPPED_NAMED_MAX],
    }
    return Announcement("session.event_skipped", attributes)
