"""Reads the events of a group's journal again, in its order, outside of a forwarder. SQL module."""

import asyncio
from collections.abc import Sequence

from eventhub.base.errors import Gone, UnknownStream
from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.read import ReadLimits, read
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql.connections import Connection, connect
from registrations.pattern_groups.consumed import ConsumedRun
from registrations.pattern_groups.errors import StateUnavailable


def events_of_runs(database_url: str, runs: Sequence[ConsumedRun]) -> list[list[StoredEvent]]:
    """Return the events of each run; those that were removed from the log are left out, as a
    forwarder leaves them out. Raises StateUnavailable for events in the archive,
    DatabaseUnavailable.
    """
    return asyncio.run(_events_of_runs(database_url, runs))


async def _events_of_runs(url: str, runs: Sequence[ConsumedRun]) -> list[list[StoredEvent]]:
    connection = await connect(url, name="pattern state")
    try:
        return [await _events_of(connection, run) for run in runs]
    finally:
        await connection.close()


async def _events_of(connection: Connection, run: ConsumedRun) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    cursor = Cursor(run.segment, run.first - 1)
    while cursor.sequence < run.last:
        try:
            page = ReadLimits(run.last - cursor.sequence)
            events = await read(connection, run.stream, cursor, page)
        except (UnknownStream, StreamDeleted):
            break
        except Gone as gone:
            if "resume" not in gone.details:
                break
            cursor = Cursor(**gone.details["resume"])
            continue
        if not isinstance(events, list):
            raise StateUnavailable
        if not events:
            break
        cursor = events[-1].cursor
        found += [one for one in events if one.sequence <= run.last]
    return found
