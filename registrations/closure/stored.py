"""What the tables say is wanted of a stream: filters of live registrations and of listens. Sql
module.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from eventhub import limits
from eventhub.eventlog import queries
from eventhub.eventlog.database import Connection

SQL = queries.load("closure.sql", Path(__file__).parent / "sql")

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


Text = tuple[str, str]  # of a filter: its language, and JSON; "" and a text in predicate form


class Version(NamedTuple):
    """A filter of a live registration as it is stored; the id is that of the version."""

    id: int
    language: str
    filter: str


async def read_marks(connection: Connection, asked: Asked) -> Marks:
    values = {**_values(asked), "settled_s": limits.LISTEN_INTEREST_S}
    row = await (await connection.execute(SQL["marks"], values)).fetchone()
    return Marks(*row) if row else Marks(False, 0, None, None)


async def read_registered(connection: Connection, asked: Asked, after: int) -> list[Version]:
    """Of the live registrations, a piece by the ids of their versions; which rise, so what changes
    meanwhile comes in a later piece.
    """
    values = {**_values(asked), "after": after, "count": limits.CLOSURE_PIECE}
    rows = await (await connection.execute(SQL["filters"], values)).fetchall()
    return [Version(*row) for row in rows]


async def read_news(connection: Connection, asked: Asked, barriers: Sequence[int]) -> list[Text]:
    """Of those that came, or whose group was resumed, at some barriers; one more than the most
    tells that there are more.
    """
    bounds = {"barriers": list(barriers), "count": limits.CLOSURE_NEWS_MAX + 1}
    rows = await (await connection.execute(SQL["news"], {**_values(asked), **bounds})).fetchall()
    return [(language, filter) for language, filter in rows]


async def read_listened(connection: Connection, asked: Asked) -> list[Text]:
    """Of the listens, in predicate form as text; one more than the most tells that there are
    more.
    """
    values = {**_values(asked), "listens_max": limits.CLOSURE_LISTENS_MAX + 1}
    rows = await (await connection.execute(SQL["listened"], values)).fetchall()
    return [("", text) for [text] in rows]


async def read_above(connection: Connection, stream_id: int) -> Above:
    """Of the declared types of a stream's zone."""
    rows = await (await connection.execute(SQL["kin"], (stream_id,))).fetchall()
    parents = {(domain, type): parent for domain, type, parent in rows}
    return {at: _lineage(parents, at) for at in parents}


async def read_touched(connection: Connection, barriers: Sequence[int]) -> dict[int, list[int]]:
    """The streams that changes at some barriers were about, each with these."""
    cursor = await connection.execute(SQL["touched"], (list(barriers),))
    return dict(await cursor.fetchall())


async def read_quenched(connection: Connection, streams: Iterable[int]) -> set[int]:
    """Those of the streams that may be quenched."""
    cursor = await connection.execute(SQL["quenched"], (list(streams),))
    return {id for [id] in await cursor.fetchall()}


async def write_present(connection: Connection, present: Iterable[Present]) -> None:
    """Say that listens are there, those on streams that may be quenched; committed at once."""
    each = list(dict.fromkeys(present))
    values = {
        "streams": [one.stream_id for one in each],
        "clients": [one.client_id for one in each],
        "filters": [one.filter for one in each],
        "seconds": limits.LISTEN_INTEREST_S,
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
