"""Announces the clients of a zone that connect and disconnect, as events of its stream
`eventhub.presence`: a client joins with its first socket in any web process, and leaves when it has
had none for a grace time. SQL module.

The sockets are those that every process counts (socket_places.py). One process at a time compares
them with what was announced, in `client_presences`, and changes both in one transaction for up to
PRESENCES_AT_ONCE clients. So a storm of connections costs no transaction for each, and no event is
lost or repeated when the process is killed.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

from eventhub.access.grants import PRESENCE
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock, SystemClock
from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, HUB_SOURCE, Event
from eventhub.event.json_codec import moment_text
from eventhub.eventlog import append
from eventhub.eventlog.append import append_proven
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.system import SYSTEM_DOMAIN
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value

SQL = queries.load("delivery/sql/presence.sql")


class _ChangedClient(NamedTuple):
    """A client that joined or left. `stream_id` None: the zone has no such stream any more."""

    client: str
    since: datetime
    absent_since: datetime | None
    stream_id: int | None


class PresenceWatch:
    """The watch of one process."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._check_at_s = float("-inf")

    async def check(self, connection: Connection, watched_s: float) -> float:
        """Announce changes, if it is time, on a connection in autocommit mode; return the seconds
        until the next time, 0 if there may be more. `watched_s`: the seconds in which clients could
        have connected. Raises what psycopg and the log raise.
        """
        left_s = self._check_at_s - self._clock.monotonic_s()
        if left_s > 0:
            return left_s
        is_needed = bool(await fetch_value(connection, SQL["needed"]))
        if is_needed and await announce_presence(connection, watched_s=watched_s):
            return 0.0
        if not is_needed:
            metrics.PRESENT_CLIENTS.set(0)
        self._check_at_s = self._clock.monotonic_s() + limits.PRESENCE_CHECK_INTERVAL_S
        return limits.PRESENCE_CHECK_INTERVAL_S if is_needed else limits.WATCH_REST_S


async def announce_presence(connection: Connection, *, watched_s: float) -> bool:
    """Announce clients that left, then those that joined, up to a bound of each; return True if
    there may be more.
    """
    values = {
        "stream": PRESENCE,
        "lost_s": limits.SOCKETS_LOST_S,
        "grace_s": limits.PRESENCE_GRACE_S,
        "watched_s": watched_s,
        "rows_max": limits.PRESENCES_AT_ONCE,
    }
    await connection.execute(SQL["mark"], values)
    left = await _announce(connection, SQL["leave"], values)
    joined = await _announce(connection, SQL["join"], values)
    if left or joined:
        metrics.PRESENT_CLIENTS.set(await fetch_value(connection, SQL["count"]))
    return limits.PRESENCES_AT_ONCE in (left, joined)


async def _announce(
    connection: Connection, statement: LiteralString, values: dict[str, Any]
) -> int:
    """Change the announced clients and append the events; return how many changed."""
    async with connection.transaction():
        found = await fetch_all(connection, _ChangedClient, statement, values)
        drafts = _drafts(found)
        heads = await append_proven(connection, drafts) if drafts else {}
    if heads:
        await connection.execute(append.SQL["notify"], (append.heads_text(heads),))
    return len(found)


def _drafts(found: Sequence[_ChangedClient]) -> list[Draft]:
    return [_draft(one.stream_id, one) for one in found if one.stream_id is not None]


def _draft(stream_id: int, changed: _ChangedClient) -> Draft:
    left = changed.absent_since
    attributes = {"client": changed.client, "change": "join", "since": moment_text(changed.since)}
    if left is not None:
        attributes |= {"change": "leave", "absent_since": moment_text(left)}
    event = Event(
        SYSTEM_DOMAIN,
        "presence.joined" if left is None else "presence.left",
        attributes,
        source=HUB_SOURCE,
        node="hub",
        key=changed.client,
        tombstone=left is not None,
    )
    payload = protobuf_codec.encode(event)
    return Draft(stream_id, DEFAULT_MASK, payload, key=changed.client, tombstone=left is not None)
