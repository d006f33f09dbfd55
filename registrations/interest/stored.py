"""What the tables say is wanted of a stream: filters of live registrations and of listeners. Sql
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
Supertypes = dict[
    tuple[str, str], tuple[str, ...]
]  # by domain and type, the declared types supertypes it


class InterestScope(NamedTuple):
    """Whose interest is scope for."""

    stream_id: int
    audience: Audience = None


class ClosureMarks(NamedTuple):
    """What of a closure changes without a barrier; equal marks, equal closures."""

    quench: bool  # an emitter may leave out what nobody wants: all listeners are known
    types: int
    listeners: str | None
    members: str | None


class ListenerInterest(NamedTuple):
    """A listen that is there: on a stream, of a client, with a filter in predicate form."""

    stream_id: int
    client_id: int
    filter: str


class FilterText(NamedTuple):
    """A filter as JSON; without a language as a text in predicate form."""

    language: str
    filter: str


class StoredFilter(NamedTuple):
    """A filter of a live registration as it is stored; the id is that of the version."""

    id: int
    language: str
    filter: str


class _Declared(NamedTuple):
    """A declared type, and the one supertypes it."""

    domain: str
    type: str
    parent: str


class _ChangedStream(NamedTuple):
    """A stream that changes were about, and the barriers of these."""

    stream: int
    barriers: list[int]


async def read_marks(connection: Connection, scope: InterestScope) -> ClosureMarks:
    values = {**_values(scope), "settled_s": limits.LISTENER_INTEREST_S}
    found = await (
        await cursor_of(connection, ClosureMarks).execute(SQL["marks"], values)
    ).fetchone()
    return found or ClosureMarks(False, 0, None, None)


async def read_registered(
    connection: Connection, scope: InterestScope, after: int
) -> list[StoredFilter]:
    """Of the live registrations, a piece by the ids of their versions; which rise, so what changes
    meanwhile comes in a later piece.
    """
    values = {**_values(scope), "after": after, "count": limits.CLOSURE_CHUNK}
    return await (
        await cursor_of(connection, StoredFilter).execute(SQL["filters"], values)
    ).fetchall()


async def read_added(
    connection: Connection, scope: InterestScope, barriers: Sequence[int]
) -> list[FilterText]:
    """Of those that came, or whose group was resumed, at some barriers; one more than the most
    tells that there are more.
    """
    bounds = {"barriers": list(barriers), "count": limits.CLOSURE_ADDED_MAX + 1}
    values = {**_values(scope), **bounds}
    return await (await cursor_of(connection, FilterText).execute(SQL["news"], values)).fetchall()


async def read_listened(connection: Connection, scope: InterestScope) -> list[FilterText]:
    """Of the listeners, in predicate form as text; one more than the most tells that there are
    more.
    """
    values = {**_values(scope), "listens_max": limits.CLOSURE_LISTENERS_MAX + 1}
    filters = await scalars(connection).execute(SQL["listened"], values)
    return [FilterText("", text) for text in await filters.fetchall()]


async def read_supertypes(connection: Connection, stream_id: int) -> Supertypes:
    """Of the declared types of a stream's zone."""
    rows = await cursor_of(connection, _Declared).execute(SQL["hierarchy"], (stream_id,))
    parents = {(row.domain, row.type): row.parent for row in await rows.fetchall()}
    return {at: _lineage(parents, at) for at in parents}


async def read_changed_streams(
    connection: Connection, barriers: Sequence[int]
) -> dict[int, list[int]]:
    """The streams that changes at some barriers were about, each with these."""
    rows = await cursor_of(connection, _ChangedStream).execute(
        SQL["changed_streams"], (list(barriers),)
    )
    return {row.stream: row.barriers for row in await rows.fetchall()}


async def read_quenched(connection: Connection, streams: Iterable[int]) -> set[int]:
    """Those of the streams that may be quenched."""
    found = await scalars(connection).execute(SQL["quenched"], (list(streams),))
    return set(await found.fetchall())


async def write_present(connection: Connection, present: Iterable[ListenerInterest]) -> None:
    """Say that listeners are there, those on streams that may be quenched; committed at once."""
    each = list(dict.fromkeys(present))
    values = {
        "streams": [one.stream_id for one in each],
        "clients": [one.client_id for one in each],
        "filters": [one.filter for one in each],
        "seconds": limits.LISTENER_INTEREST_S,
    }
    await connection.execute(SQL["listen"], values)


async def delete_expired(connection: Connection) -> None:
    """Drop what has not counted for an hour."""
    await connection.execute(SQL["forget"])


def _values(scope: InterestScope) -> dict[str, object]:
    audience = None if scope.audience is None else list(scope.audience)
    return {"stream_id": scope.stream_id, "audience": audience}


def _lineage(parents: dict[tuple[str, str], str], at: tuple[str, str]) -> tuple[str, ...]:
    domain, type = at
    found: list[str] = []
    while (domain, type) in parents and len(found) < limits.TYPE_PARENTS_MAX:
        type = parents[domain, type]
        found.append(type)
    return tuple(found)
