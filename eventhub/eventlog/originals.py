"""Finds the stored events that new events are copies of: by their `cause`, which names a position,
or by an id that the stream has stored. Only events in the database are found. SQL module.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.start_positions import parse_cursor
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("eventhub/eventlog/sql/originals.sql")


class Copy(NamedTuple):
    """A new event that may be a copy of a stored one."""

    draft: Draft
    cause: str


class Original(NamedTuple):
    """A stored event. `at`: the position of its copy in the request. `stream`: that which the cause
    names; "" if the event has the id of its copy.
    """

    at: int
    stream: str
    payload: bytes


async def find_originals(
    connection: psycopg.AsyncConnection[Any], zone_id: int, copies: Sequence[Copy]
) -> list[Original]:
    """Return the originals of the copies in one query."""
    query = cursor_of(connection, Original)
    await query.execute(SQL["originals"], _values(zone_id, copies), binary=True)
    return await query.fetchall()


def find_originals_now(
    connection: psycopg.Connection[Any], zone_id: int, copies: Sequence[Copy]
) -> list[Original]:
    """Return the same on a synchronous connection."""
    query = cursor_of(connection, Original)
    return query.execute(SQL["originals"], _values(zone_id, copies)).fetchall()


def _values(zone_id: int, copies: Sequence[Copy]) -> dict[str, Any]:
    causes, producers, tokens = [*_causes(copies)], [*_producers(copies)], [*_tokens(copies)]
    return {
        "zone_id": zone_id,
        "window": limits.PRODUCER_WINDOW,
        **_arrays("cause", ("at", "stream", "segment", "sequence"), causes),
        **_arrays("id", ("at", "stream", "client", "incarnation", "number"), producers),
        **_arrays("token", ("at", "stream", "digest"), tokens),
    }


def _arrays(kind: str, names: Sequence[str], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {f"{kind}_{name}": [row[at] for row in rows] for at, name in enumerate(names)}


def _causes(copies: Sequence[Copy]) -> Iterator[tuple[Any, ...]]:
    for at, copy in enumerate(copies):
        stream, _, cursor = copy.cause.partition(":")
        found = parse_cursor(cursor)
        if found and "\0" not in stream:  # PostgreSQL refuses NUL, and no stream has it
            yield at, stream, *found


def _producers(copies: Sequence[Copy]) -> Iterator[tuple[Any, ...]]:
    for at, (draft, _) in enumerate(copies):
        if draft.producer is not None:
            yield at, draft.stream_id, *draft.producer


def _tokens(copies: Sequence[Copy]) -> Iterator[tuple[Any, ...]]:
    for at, (draft, _) in enumerate(copies):
        if draft.token:
            yield at, draft.stream_id, draft.token
