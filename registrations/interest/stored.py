"""What the tables say is wanted of a stream: filters of live registrations and of listens. Sql
module. SQL module.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

SQL = queries.load("registrations/interest/sql/closure.sql")

Audience = tuple[str, ...] | None  # groups of clients; None: everybody counts
Above = dict[tuple[str, str], tuple[str, ...]]  # by domain and type, the declared types above it


class Asked(NamedTuple):
    """Whose interest is asked for."""

    stream_id: int
    audience: Audience = None


class Marks(NamedTuple):
    """What of a closure changes without a barrier; equal marks, equal closures."""

    quench: bool  # an emitter may leave out what nobody wants: all listens are known
    types: int
    listens: str | None
    members: str | None


class Present(NamedTuple):
    """A listen that is there: on a stream, of a client, with a filter in predicate form."""

    stream_id: int
    client_id: int
    filter: str


class Text(NamedTuple):
    """A filter as JSON; without a language as a text in predicate form."""

    language: str
    filter: str


class Version(NamedTuple):
    """A filter of a live registration as it is stored; the id is that of the version."""

    id: int
    language: str
    filter: str


class _Declared(NamedTuple):
    """A declared type, and the one above it."""

    domain: str
    type: str
    parent: str


class _Touched(NamedTuple):
    """A stream that changes were about, and the barriers of these."""

    stream: int
    barriers: list[int]


async def read_marks(connection: Connection, asked: Asked) -> Marks:
    values = {**_values(asked), "settled_s": limits.LISTENER_INTEREST_S}
    found = await (await cursor_of(connection, Marks).execute(SQL["marks"], values)).fetchone()
    return found or Marks(False, 0, None, None)


async def read_registered(connection: Connection, asked: Asked, after: int) -> list[Version]:
    """Of the live registrations, a piece by the ids of their versions; which rise, so what changes
    meanwhile comes in a later piece.
    """
    values = {**_values(asked), "after": after, "count": limits.CLOSURE_CHUNK}
    return await (await cursor_of(connection, Version).execute(SQL["filters"], values)).fetchall()


async def read_news(connection: Connection, asked: Asked, barriers: Sequence[int]) -> list[Text]:
    """Of those that came, or whose group was resumed, at some barriers; one more than the most
    tells that there are more.
    """
    bounds = {"barriers": list(barriers), "count": limits.CLOSURE_ADDED_MAX + 1}
    values = {**_values(asked), **bounds}
    return await (await cursor_of(connection, Text).execute(SQL["news"], values)).fetchall()


async def read_listened(connection: Connection, asked: Asked) -> list[Text]:
    """Of the listens, in predicate form as text; one more than the most tells that there are
    more.
    """
    values = {**_values(asked), "listens_max": limits.CLOSURE_LISTENERS_MAX + 1}
    filters = await scalars(connection).execute(SQL["listened"], values)
    return [Text("", text) for text in await filters.fetchall()]


async def read_above(connection: Connection, stream_id: int) -> Above:
    """Of the declared types of a stream's zone."""
    rows = await cursor_of(connection, _Declared).execute(SQL["hierarchy"], (stream_id,))
    parents = {(row.domain, row.type): row.parent for row in await rows.fetchall()}
    return {at: _lineage(parents, at) for at in parents}


async def read_touched(connection: Connection, barriers: Sequence[int]) -> dict[int, list[int]]:
    """The streams that changes at some barriers were about, each with these."""
    rows = await cursor_of(connection, _Touched).execute(SQL["touched"], (list(barriers),))
    return {row.stream: row.barriers for row in await rows.fetchall()}


async def read_quenched(connection: Connection, streams: Iterable[int]) -> set[int]:
    """Those of the streams that may be quenched."""
    found = await scalars(connection).execute(SQL["quenched"], (list(streams),))
    return set(await found.fetchall())


async def write_present(connection: Connection, present: Iterable[Present]) -> None:
    """Say that listens are there, those on streams that may be quenched; committed at once."""
    each = list(dict.fromkeys(present))
    values = {
        "streams": [one.stream_id for one in each],
        "clients": [one.client_id for one in each],
        "filters": [one.filter for one in each],
        "seconds": limits.LISTENER_INTEREST_S,
    }
    await connection.execute(SQL["listen"], values)


async def forget_gone(connection: Connection) -> None:
    """Drop what has not counted for an hour."""
    await connection.execute(SQL["forget"])


def _values(asked: Asked) -> dict[str, object]:
    audience = None if asked.audience is None else list(asked.audience)
    return {"stream_id": asked.stream_id, "audience": audience}


def _lineage(parents: dict[tuple[str, str], str], at: tuple[str, str]) -> tuple[str, ...]:
    domain, type = at
    found: list[str] = []
    while (domain, type) in parents and len(found) < limits.TYPE_PARENTS_MAX:
        type = parents[domain, type]
        found.append(type)
    return tuple(found)
