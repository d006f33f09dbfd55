"""Reads registrations as they stand to one event, and an event by its sequence. Sql module, no
Django.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import psycopg

from eventhub.errors import Gone, UnknownEvent
from eventhub.eventlog import queries
from eventhub.eventlog.history import before, ends_of
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import Page
from eventhub.eventlog.stored import Cursor, Stored, StreamInfo
from registrations.understand.standing import Standing

SQL = queries.load("understand.sql", Path(__file__).parent.parent / "sql")

_VERSIONS_MAX = 1 << 31


class Asked(NamedTuple):
    """Whose registrations stand to which event: at most so many versions, of registrations after
    `after`; None: of the whole zone, any registration.
    """

    zone_id: int
    client_id: int | None
    stream_id: int
    sequence: int
    after: int = 0
    versions_max: int = _VERSIONS_MAX
    registration: int | None = None


async def standing(connection: psycopg.AsyncConnection[Any], asked: Asked) -> list[Standing]:
    """By registration and version."""
    cursor = await connection.execute(SQL["standing"], asked._asdict())
    return _found(await cursor.fetchall())


def standing_now(connection: psycopg.Connection[Any], asked: Asked) -> list[Standing]:
    """The same on a connection that waits."""
    return _found(connection.execute(SQL["standing"], asked._asdict()).fetchall())


async def event_at(log: Log, stream: StreamInfo, sequence: int) -> Stored:
    """One event, wherever the stream is kept. UnknownEvent if the number is not given yet, Gone if
    it is no longer held.
    """
    head = (await ends_of(log, stream)).head
    if not 0 < sequence <= head.sequence:
        raise UnknownEvent(stream=stream.name)
    cursor = await before(log, stream, Cursor(head.segment, sequence), 1)
    if cursor is None:
        raise Gone("The event is no longer held.", stream=stream.name)
    transient = stream.durability == "transient"
    read = log.transient.reader(stream.id) if transient else log.reader(stream.id)
    found = await read(cursor, Page(1, 1))
    if not found or found[0].sequence != sequence:
        raise Gone("The event is no longer held.", stream=stream.name)
    return found[0]


def _found(rows: Iterable[tuple[Any, ...]]) -> list[Standing]:
    found: list[Standing] = []
    for id, client, groups, *more in rows:
        one = Standing(id, client, frozenset(orjson.loads(groups)), *more)
        found.append(one._replace(streams=tuple(one.streams)))
    return found
