"""The filters in the tables that make up the interest in a stream: those of live registrations and
of listeners. SQL module.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_one, fetch_values

SQL = queries.load("registrations/sql/interest.sql")

Audience = tuple[str, ...] | None  # groups of clients; None: all clients
# by domain and type, the declared supertypes, the nearest first
Supertypes = dict[tuple[str, str], tuple[str, ...]]


class InterestScope(NamedTuple):
    """A stream, and the clients whose interest counts."""

    stream_id: int
    audience: Audience = None


class ClosureMarks(NamedTuple):
    """The inputs of a closure that change without a barrier: a closure with equal marks and no new
    barrier is current.
    """

    quench: bool  # the stream's policy, in force: all listeners are known
    types: int  # number of declared versions of types
    listeners: str | None  # hash of the listeners
    members: str | None  # hash of the audience's members


class ListenerInterest(NamedTuple):
    """The interest of listeners: a stream, a client, and a filter in the predicate language."""

    stream_id: int
    client_id: int
    filter: str


class FilterText(NamedTuple):
    """A filter as JSON; without a language, a text in the predicate language."""

    language: str
    filter: str


class StoredFilter(NamedTuple):
    """A stored filter of a live registration, with the id of its version."""

    id: int
    language: str
    filter: str


class _Declared(NamedTuple):
    """A declared type, and its parent."""

    domain: str
    type: str
    parent: str


class _ChangedStream(NamedTuple):
    """A stream, and the barriers of changes that concern it."""

    stream: int
    barriers: list[int]


async def read_marks(connection: Connection, scope: InterestScope) -> ClosureMarks:
    values = {**_values(scope), "settled_s": limits.LISTENER_INTEREST_S}
    found = await fetch_one(connection, ClosureMarks, SQL["marks"], values)
    return found or ClosureMarks(False, 0, None, None)


async def read_registered(
    connection: Connection, scope: InterestScope, after: int
) -> list[StoredFilter]:
    """Read a chunk of the filters of live registrations by the ids of their versions. The ids
    ascend with time, so changes during the read come in a later chunk.
    """
    values = {**_values(scope), "after": after, "count": limits.CLOSURE_CHUNK}
    return await fetch_all(connection, StoredFilter, SQL["filters"], values)


async def read_added(
    connection: Connection, scope: InterestScope, barriers: Sequence[int]
) -> list[FilterText]:
    """Read the filters of registrations that started, or whose group was resumed, at some barriers;
    one more than the limit means that there are more.
    """
    bounds = {"barriers": list(barriers), "count": limits.CLOSURE_ADDED_MAX + 1}
    return await fetch_all(connection, FilterText, SQL["added"], {**_values(scope), **bounds})


async def read_listened(connection: Connection, scope: InterestScope) -> list[FilterText]:
    """Read the filters of listeners; one more than the limit means that there are more."""
    values = {**_values(scope), "listeners_max": limits.CLOSURE_LISTENERS_MAX + 1}
    return [
        FilterText("", text) for text in await fetch_values(connection, SQL["listened"], values)
    ]


async def read_supertypes(connection: Connection, stream_id: int) -> Supertypes:
    """Read the supertypes of the declared types of a stream's zone."""
    rows = await fetch_all(connection, _Declared, SQL["hierarchy"], (stream_id,))
    parents = {(row.domain, row.type): row.parent for row in rows}
    return {at: _lineage(parents, at) for at in parents}


async def read_changed_streams(
    connection: Connection, barriers: Sequence[int]
) -> dict[int, list[int]]:
    """Read the streams that changes at some barriers concern, each with its barriers."""
    rows = await fetch_all(connection, _ChangedStream, SQL["changed_streams"], (list(barriers),))
    return {row.stream: row.barriers for row in rows}


async def read_quenched(connection: Connection, streams: Iterable[int]) -> set[int]:
    """Return the streams that have the policy `quench`."""
    return set(await fetch_values(connection, SQL["quenched"], (list(streams),)))


async def renew_interests(connection: Connection, present: Iterable[ListenerInterest]) -> None:
    """Insert or renew the interest of listeners on streams with the policy `quench`."""
    each = list(dict.fromkeys(present))
    values = {
        "streams": [one.stream_id for one in each],
        "clients": [one.client_id for one in each],
        "filters": [one.filter for one in each],
        "seconds": limits.LISTENER_INTEREST_S,
    }
    await connection.execute(SQL["renew"], values)


async def delete_expired(connection: Connection) -> None:
    """Delete interests that expired more than an hour ago."""
    await connection.execute(SQL["delete_expired"])


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
