"""Events for the start of the hub: a marker in `system` (EMC-17), and in streams with `restate` a
marker followed by the latest event of each key (EMC-18). SQL module.

The marker and the stream's position before it are stored in one transaction, so a reader from
`boot` begins with the marker. The state follows in batches, each in a transaction of its own that
locks the stream's head. Emits go on between them; a key that got an event after the marker is not
restated. Progress is not stored: a start that is interrupted is followed by a new one with a new
marker and all keys.
"""

from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.event import protobuf_codec
from eventhub.eventlog import append
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.keyed_state import KeyState, StatePage, read_state_now
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import lock_system
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars

SQL = queries.load("eventhub/eventlog/sql/boot.sql")
REASON = "restart"

Connection = psycopg.Connection[Any]


class Boot(NamedTuple):
    """The hub's last start. `cursor`: in `system`, before the marker."""

    cursor: Cursor
    started_at_us: int


def mark_start(connection: Connection) -> Appended:
    """Append the marker to `system` and store the positions of all streams. Return the marker's
    position. The connection is in autocommit mode.
    """
    with connection.transaction():
        lock_system(connection)
        connection.execute(SQL["set_booted_at"])
        connection.execute(SQL["mark_all"])
        marker = _append_marker(connection, None)
    _notify(connection, marker)
    return marker


def restated_streams(connection: Connection) -> list[int]:
    """Return the ids of the streams that restate their keys at each start."""
    return scalars(connection).execute(SQL["restated_streams"]).fetchall()


def restate(connection: Connection, stream_id: int) -> int:
    """Append the marker to the stream, then the latest event of each key. Return how many keys."""
    with connection.transaction():
        append.lock_head(connection, stream_id)
        connection.execute(SQL["mark_one"], (stream_id,))
        marker = _append_marker(connection, stream_id)
    _notify(connection, marker)
    count, after = 0, b""
    while True:
        with connection.transaction():
            append.lock_head(connection, stream_id)
            page = StatePage(after, marker.sequence, limits.RESTATE_KEYS_MAX)
            found = read_state_now(connection, stream_id, page)
            if not found:
                return count
            appended = append.append_in(connection, [_restated(stream_id, one) for one in found])
        _notify(connection, appended[-1])
        count += len(found)
        after = found[-1].digest


def last_boot(connection: Connection) -> Boot | None:
    """Return the hub's last start; None if it was never started."""
    return cursor_of(connection, Boot).execute(SQL["boot"]).fetchone()


def _append_marker(connection: Connection, stream_id: int | None) -> Appended:
    """Append the marker to a stream, None for `system`, inside a transaction."""
    [draft] = drafts_of(None, [Announcement("hub.started", {})])
    if stream_id is not None:
        draft = draft._replace(stream_id=stream_id)
    [appended] = append.append_in(connection, [draft])
    return appended


def _restated(stream_id: int, state: KeyState) -> Draft:
    """Build a new event with the same content and no id; the original is its cause."""
    original = state.stored.event
    event = original._replace(
        id=None,
        environment={**(original.environment or {}), "reason": REASON},
        cause=f"{state.stored.segment}:{state.stored.sequence}",
    )
    return Draft(stream_id, state.stored.mask, protobuf_codec.encode(event), key=state.key)


def _notify(connection: Connection, last: Appended) -> None:
    append.notify(connection, {last.stream_id: last.sequence})
