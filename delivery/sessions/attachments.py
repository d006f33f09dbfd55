"""The rows of sessions that connections use: which connection serves a session, the settings of its
delivery, and its positions. SQL module.

A connection that attaches to a session replaces the one before: what an older connection still
writes has no effect.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from delivery.ordering.options import OrderName
from eventhub.access.names import id_in_path, valid_name
from eventhub.access.sessions import CONSUMER, UnknownSession, WrongSessionKind
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.connections import PLANNED_ONCE, Connection
from eventhub.postgresql.rows import cursor_of, fetch_all, fetch_value

_FILE = "delivery/sql/sessions.sql"
SQL = queries.load(_FILE, {"sessions": "SELECT %(session_id)s::bigint"})
_OF_ATTACHED = queries.load(_FILE, {"sessions": SQL["attached"]})


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
    acknowledgements: int  # over HTTP so far
    deleted: bool


class SessionPosition(NamedTuple):
    """The saved position of a session in a stream: every matching event up to the cursor is
    acknowledged, and those of `acknowledged` above it.
    """

    stream_id: int
    stream: str
    cursor: Cursor
    acknowledged: list[int]


class Attachment(NamedTuple):
    """A connection, by an id, that attaches to the session of a client with that name."""

    client_id: int
    name: str
    id: UUID

    @property
    def session(self) -> tuple[int, str]:
        return self.client_id, self.name


class Attached(NamedTuple):
    """A session when a connection attached to it. The positions may know later acknowledgements
    over HTTP than their number; None: it did not attach, because no events may be delivered.
    `replaces`: a connection of another process may have served it.
    """

    settings: SessionSettings
    acknowledgements: int | None
    positions: list[SessionPosition]
    replaces: bool


class PositionToSave(NamedTuple):
    """A position that a connection saves, which knows so many acknowledgements over HTTP."""

    session_id: int
    attachment: UUID
    acknowledgements: int
    stream_id: int
    cursor: Cursor
    acknowledged: list[int]


class Redelivery(NamedTuple):
    """Events of a stream that a connection has to deliver again."""

    stream: str
    sequences: list[int]


class _FoundSession(NamedTuple):
    client_id: int
    settings: SessionSettings
    acknowledgements: int | None
    replaces: bool


class _OfSession(NamedTuple):
    session_id: int
    position: SessionPosition


class _Session(NamedTuple):
    id: int


class _Known(NamedTuple):
    id: int
    acknowledgements: int


def session_in_path(text: str) -> str:
    """Return the name or the id of a session in a path. Raises InvalidName, FieldTooLong."""
    return text if id_in_path(text) is not None else valid_name(text, field="session")


async def name_of(connection: Connection, client_id: int, session_id: int) -> str:
    """Return the name of a client's session. Raises UnknownSession."""
    values = {"client_id": client_id, "session_id": session_id}
    name: str | None = await fetch_value(connection, SQL["name"], values)
    if name is None:
        raise UnknownSession(field="session")
    return name


def required(settings: SessionSettings | None) -> SessionSettings:
    """Raise UnknownSession, or WrongSessionKind for one that is no consumer."""
    if settings is None:
        raise UnknownSession(field="session")
    if settings.kind != CONSUMER:
        raise WrongSessionKind(
            f"Events are delivered to sessions of kind {CONSUMER}; {settings.name} is of kind"
            f" {settings.kind}.",
            field="session",
            kind=CONSUMER,
        )
    return settings


async def attach(
    connection: Connection, attachments: Sequence[Attachment], process: str
) -> dict[tuple[int, str], Attached]:
    """Attach connections to the sessions that exist, at most one to each; return the sessions by
    client and name. Claims of pulls end: the connection delivers what is not acknowledged.

    One round trip and one transaction, whose statements see what was committed before each.
    """
    values = {
        "clients": [one.client_id for one in attachments],
        "names": [one.name for one in attachments],
        "attachments": [one.id for one in attachments],
    }
    async with connection.pipeline():
        await connection.execute(PLANNED_ONCE, prepare=True)
        sessions = cursor_of(connection, _FoundSession)
        await sessions.execute(SQL["attach"], {**values, "process": process}, prepare=True)
        await connection.execute(_OF_ATTACHED["end_claims"], values, prepare=True)
        stored = cursor_of(connection, _OfSession)
        streams_max = limits.SESSION_STREAMS_MAX + 1
        of_session = {**values, "streams_max": streams_max}
        await stored.execute(_OF_ATTACHED["positions"], of_session, prepare=True)
    positions: dict[int, list[SessionPosition]] = {}
    for row in await stored.fetchall():
        positions.setdefault(row.session_id, []).append(row.position)
    return {
        (row.client_id, row.settings.name): Attached(
            row.settings,
            row.acknowledgements,
            positions.get(row.settings.id, []),
            row.replaces,
        )
        for row in await sessions.fetchall()
    }


async def detach(connection: Connection, attached: Iterable[tuple[int, UUID]]) -> None:
    """End attachments, unless another connection has replaced them."""
    pairs = list(attached)
    values = {"sessions": [id for id, _ in pairs], "attachments": [one for _, one in pairs]}
    await connection.execute(SQL["detach"], values)


async def positions(connection: Connection, session_id: int) -> list[SessionPosition]:
    """Return the positions of a session in its streams."""
    values = {"session_id": session_id, "streams_max": limits.SESSION_STREAMS_MAX + 1}
    rows = await fetch_all(connection, _OfSession, SQL["positions"], values)
    return [row.position for row in rows]


async def altered(connection: Connection, known: Mapping[int, tuple[UUID, int]]) -> list[int]:
    """Return the sessions that another connection serves, that have other acknowledgements over
    HTTP than so many, or that do not exist. `known`: attachment and acknowledgements by id.
    """
    given = [
        {"id": id, "attachment": attachment, "acknowledgements": acknowledgements}
        for id, (attachment, acknowledgements) in known.items()
    ]
    values = {"known": orjson.dumps(given).decode()}
    rows = await fetch_all(connection, _Session, SQL["altered"], values)
    return [row.id for row in rows]


async def check(connection: Connection, ids: Sequence[int]) -> dict[int, AttachedSettings]:
    """Return the present settings of sessions by id."""
    values = {"sessions": list(ids)}
    found = await fetch_all(connection, AttachedSettings, SQL["check"], values)
    return {one.settings.id: one for one in found}


async def take_redeliveries(
    connection: Connection, session_id: int, attachment: UUID
) -> list[Redelivery]:
    """Return the events that a connection of a session has to deliver again, once."""
    values = {"session_id": session_id, "attachment": attachment}
    return await fetch_all(connection, Redelivery, SQL["take_redeliveries"], values)


async def save(connection: Connection, found: Sequence[PositionToSave]) -> dict[int, int]:
    """Save positions; return the number of acknowledgements over HTTP by session. The positions of
    a session that knows fewer are not saved, and those of a session without a number are attached
    to another connection.
    """
    rows = [
        {
            "session_id": one.session_id,
            "stream_id": one.stream_id,
            "attachment": one.attachment,
            "acknowledgements": one.acknowledgements,
            "segment": one.cursor.segment,
            "sequence": one.cursor.sequence,
            "acknowledged": one.acknowledged,
        }
        for one in found
    ]
    values = {"positions": orjson.dumps(rows).decode()}
    return dict(await fetch_all(connection, _Known, SQL["save"], values))
