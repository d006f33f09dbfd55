"""Reads the events of a group's journal again, in its order, outside of a forwarder. SQL module."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eventhub.base.errors import Gone, UnknownStream
from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.read import ReadLimits, read
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql.connections import Connection, connect
from registrations.pattern_groups.consumed import ConsumedRun
from registrations.pattern_groups.errors import StateUnavailable

PagesOfRun = Callable[[ConsumedRun], Iterator[list[StoredEvent]]]


@contextmanager
def journal_reader(database_url: str) -> Iterator[PagesOfRun]:
    """Return a function that yields the events of a run in pages; those that were removed from the
    log are left out, as a forwarder leaves them out. It raises StateUnavailable for events in the
    archive, DatabaseUnavailable.
    """
    with asyncio.Runner() as runner:
        connection = runner.run(connect(database_url, name="pattern state"))

        def pages(run: ConsumedRun) -> Iterator[list[StoredEvent]]:
            cursor = Cursor(run.segment, run.first - 1)
            while cursor.sequence < run.last:
                events, cursor = runner.run(_page(connection, run, cursor))
                yield events

        try:
            yield pages
        finally:
            runner.run(connection.close())


async def _page(
    connection: Connection, run: ConsumedRun, cursor: Cursor
) -> tuple[list[StoredEvent], Cursor]:
    """Return the next events of a run, and the cursor after them; at the run's end if there are no
    more.
    """
    end = Cursor(run.segment, run.last)
    try:
        events = await read(connection, run.stream, cursor, ReadLimits(run.last - cursor.sequence))
    except (UnknownStream, StreamDeleted):
        return [], end
    except Gone as gone:
        if "resume" not in gone.details:
            return [], end
        return [], Cursor(**gone.details["resume"])
    if not isinstance(events, list):
        raise StateUnavailable
    if not events:
        return [], end
    return [one for one in events if one.sequence <= run.last], events[-1].cursor
