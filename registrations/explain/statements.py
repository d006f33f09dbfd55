"""Reads the versions of registrations with their status for one event, and an event by its
sequence. SQL module.
"""

from typing import Any, NamedTuple

import psycopg

from eventhub.base.errors import Gone, UnknownEvent
from eventhub.eventlog.backward_cursors import before, stream_ends
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, fetch_all, fetch_values
from registrations.explain.conditions import VersionStatus

SQL = queries.load("registrations/sql/explain.sql")


class ExplainScope(NamedTuple):
    """An event, and the client whose registrations are evaluated; None: the whole zone."""

    zone_id: int
    client_id: int | None
    stream_id: int
    sequence: int


async def read_registrations_naming(
    connection: psycopg.AsyncConnection[Any], scope: ExplainScope, after: int, count: int
) -> list[int]:
    """Read at most `count` live registrations after one that name the stream, or did."""
    values = {**scope._asdict(), "after": after, "count": count}
    return await fetch_values(connection, SQL["registrations_naming"], values)


async def read_statuses(
    connection: psycopg.AsyncConnection[Any], scope: ExplainScope, registrations: list[int]
) -> list[VersionStatus]:
    """Read the versions and their statuses, ordered by registration and version."""
    values = {**scope._asdict(), "registrations": registrations}
    return await fetch_all(connection, VersionStatus, SQL["version_statuses"], values)


def read_statuses_sync(
    connection: psycopg.Connection[Any], scope: ExplainScope, registrations: list[int]
) -> list[VersionStatus]:
    """Read the same on a blocking connection."""
    values = {**scope._asdict(), "registrations": registrations}
    return cursor_of(connection, VersionStatus).execute(SQL["version_statuses"], values).fetchall()


async def event_at(log: Log, stream: StreamInfo, sequence: int) -> StoredEvent:
    """Read one event from the log, the archive or memory. Raises UnknownEvent if no event has the
    sequence yet, Gone if the event is no longer stored.
    """
    head = (await stream_ends(log, stream)).head
    if not 0 < sequence <= head.sequence:
        raise UnknownEvent(stream=stream.name)
    cursor = await before(log, stream, Cursor(head.segment, sequence), 1)
    if cursor is None:
        raise Gone("The event is no longer stored.", stream=stream.name)
    transient = stream.durability == "transient"
    read = log.transient.reader(stream.id) if transient else log.reader(stream.id)
    found = await read(cursor, ReadLimits(1, 1))
    if not found or found[0].sequence != sequence:
        raise Gone("The event is no longer stored.", stream=stream.name)
    return found[0]
