"""The start of the hub as events: a marker in `system` (EMC-17), and in streams that restate, with
the latest event of each key after it (EMC-18). SQL module.

The marker of a stream and where it stood before are one transaction, so a listen from `boot` begins
with the marker. The state follows in batches, each in a transaction of its own under the stream's
head: emits go on between them, and a key that has a newer event than the marker is not told again.
Nothing is remembered of what is done: a start that ends in the middle is followed by another start,
with another marker, and all keys.
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
    """The hub's last start. `cursor`: in `system`, before the event that tells it."""

    cursor: Cursor
    started_at_us: int


def mark_start(connection: Connection) -> Appended:
    """Tell the start in `system`, and note where all streams stood; the marker's place. On a
    connection in autocommit mode.
    """
    with connection.transaction():
        lock_system(connection)
        connection.execute(SQL["booted"])
        connection.execute(SQL["mark_all"])
        place = _tell(connection, None)
    _notify(connection, place)
    return place


def restated_streams(connection: Connection) -> list[int]:
    """The ids of the streams whose state is told again at each start."""
    return scalars(connection).execute(SQL["restated_streams"]).fetchall()


def restate(connection: Connection, stream_id: int) -> int:
    """Tell the start in the stream, then the state of its keys again: how many."""
    with connection.transaction():
        append.lock_head(connection, stream_id)
        connection.execute(SQL["mark_one"], (stream_id,))
        place = _tell(connection, stream_id)
    _notify(connection, place)
    count, after = 0, b""
    while True:
        with connection.transaction():
            append.lock_head(connection, stream_id)
            page = StatePage(after, place.sequence, limits.RESTATE_KEYS_MAX)
            found = read_state_now(connection, stream_id, page)
            if not found:
                return count
            told = append.append_in(connection, [_again(stream_id, one) for one in found])
        _notify(connection, told[-1])
        count += len(found)
        after = found[-1].digest


def last_boot(connection: Connection) -> Boot | None:
    """The hub's last start; None if it never was one."""
    return cursor_of(connection, Boot).execute(SQL["boot"]).fetchone()


def _tell(connection: Connection, stream_id: int | None) -> Appended:
    """The marker, in `system` or in another stream, inside a transaction."""
    [draft] = drafts_of(None, [Announcement("hub.started", {})])
    if stream_id is not None:
        draft = draft._replace(stream_id=stream_id)
    [place] = append.append_in(connection, [draft])
    return place


def _again(stream_id: int, state: KeyState) -> Draft:
    """The event as it was, but for its id: it is another one, caused by the first."""
    was = state.stored.event
    event = was._replace(
        id=None,
        environment={**(was.environment or {}), "reason": REASON},
        cause=f"{state.stored.segment}:{state.stored.sequence}",
    )
    return Draft(stream_id, state.stored.mask, protobuf_codec.encode(event), key=state.key)


def _notify(connection: Connection, place: Appended) -> None:
    append.notify(connection, {place.stream_id: place.sequence})
