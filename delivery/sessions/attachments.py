"""The rows of sessions that connections use: which connection serves a session, the settings of its
delivery, and its positions. SQL module.

A connection that attaches to a session replaces the one before: what an older connection still
writes has no effect.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from delivery.ordering.options import OrderName
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_one, fetch_value, fetch_values

SQL = queries.load("delivery/sql/sessions.sql")


class SessionSettings(NamedTuple):
    """A session and the settings of its delivery; those of its group, if it is in one."""

    id: int
    name: str
    kind: str
    session_group: int | None
    disconnected: bool
    quality: str
    delivery_order: OrderName
    order_options: dict[str, Any]
    window_events: int

    @property
    def reliable(self) -> bool:
        """Whether events count until they are acknowledged."""
        return self.quality == "reliable"

    @property
    def ordering(self) -> tuple[OrderName, dict[str, Any]]:
        """The order, and its options."""
        return self.delivery_order, self.order_options


class AttachedSettings(NamedTuple):
    """The present settings of a session, and the connection that serves it."""

    settings: SessionSettings
    attachment: UUID | None
    deleted: bool


class SessionPosition(NamedTuple):
    """The saved position of a session in a stream: every matching event up to the cursor is
    acknowledged, and those of `acknowledged` above it.
    """

    stream_id: int
    stream: str
    cursor: Cursor
    acknowledged: list[int]


class PositionToSave(NamedTuple):
    """A position that a connection saves."""

    session_id: int
    stream_id: int
    attachment: UUID
    cursor: Cursor
    acknowledged: list[int]


async def find_session(connection: Connection, client_id: int, name: str) -> SessionSettings | None:
    """Return a client's session by name; None if it has none."""
    values = {"client_id": client_id, "name": name}
    return await fetch_one(connection, SessionSettings, SQL["find"], values)


async def attach(
    connection: Connection, session_id: int, attachment: UUID, process: str
) -> list[SessionPosition] | None:
    """Attach a connection to a session, and return the session's positions; None if the session was
    deleted meanwhile. Claims of pulls end: the connection delivers what is not acknowledged.
    """
    values = {"session_id": session_id, "attachment": attachment, "process": process}
    async with connection.transaction():
        if await fetch_value(connection, SQL["attach"], values) is None:
            return None
        await connection.execute(SQL["end_claims"], values)
    return await positions(connection, session_id)


async def detach(connection: Connection, attached: Iterable[tuple[int, UUID]]) -> None:
    """End attachments, unless another connection has replaced them."""
    pairs = list(attached)
    values = {"sessions": [id for id, _ in pairs], "attachments": [one for _, one in pairs]}
    await connection.execute(SQL["detach"], values)


async def positions(connection: Connection, session_id: int) -> list[SessionPosition]:
    """Return the positions of a session in its streams."""
    values = {"session_id": session_id, "streams_max": limits.SESSION_STREAMS_MAX + 1}
    return await fetch_all(connection, SessionPosition, SQL["positions"], values)


async def check(connection: Connection, ids: Sequence[int]) -> dict[int, AttachedSettings]:
    """Return the present settings of sessions by id."""
    values = {"sessions": list(ids)}
    found = await fetch_all(connection, AttachedSettings, SQL["check"], values)
    return {one.settings.id: one for one in found}


async def save(connection: Connection, found: Sequence[PositionToSave]) -> set[int]:
    """Save positions; return the sessions whose positions count: the others are attached to another
    connection.
    """
    rows = [
        {
            "session_id": one.session_id,
            "stream_id": one.stream_id,
            "attachment": one.attachment,
            "segment": one.cursor.segment,
            "sequence": one.cursor.sequence,
            "acknowledged": one.acknowledged,
        }
        for one in found
    ]
    values = {"positions": orjson.dumps(rows).decode()}
    return set(await fetch_values(connection, SQL["save"], values))
