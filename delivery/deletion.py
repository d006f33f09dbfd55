"""The task that deletes types, channels, streams and zones at the end of their grace period, and
removes what streams stored: registrations, events, copies in the archive, state, deliveries, match
indexes. SQL module.

One process at a time does it, under an advisory lock of its session. Every step is a transaction of
its own and finds its work in the tables, so a run continues where a killed one ended.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from delivery import zone_deletion as zones
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.logs import get_logger
from eventhub.eventlog import deletion as log_deletion
from eventhub.eventlog import transient
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.removal import remove_copies
from eventhub.eventlog.deletion import DELETED, DueStream, announcing
from eventhub.eventlog.errors import ArchiveUnavailable
from eventhub.eventlog.streams import lock_system
from eventhub.eventlog.system import Announcement
from eventhub.postgresql import queries
from eventhub.postgresql.connections import blocking
from eventhub.postgresql.rows import cursor_of, scalars
from eventhub.types import deletion as definitions
from registrations import stream_deletion as registrations

SQL = queries.load("delivery/sql/deletion.sql")
log = get_logger(__name__)

Connection = psycopg.Connection[Any]


class DataStores(NamedTuple):
    """Where a hub stores data outside of the database; "": it has no such storage."""

    data: Path  # this machine's folder with the match indexes
    archive_url: str = ""
    redis_url: str = ""


class Deletion:
    """The task; a run lasts `DELETION_RUN_S_MAX` seconds at most, and a step longer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # by stream, the last delivery that was examined: the next run continues after it
        self._examined: dict[int, _DeliveryKey] = {}

    def run(self, database_url: str, stores: DataStores) -> bool:
        """Delete what is due. Return True if something is left to be continued at once."""
        until_s = self._clock.monotonic_s() + limits.DELETION_RUN_S_MAX
        try:
            with blocking(database_url, name="deletion") as connection:
                if not scalars(connection).execute(SQL["lead"]).fetchone():
                    return False
                left = self._run(connection, stores, until_s)
                # the session of a closed connection ends a moment later, and the next run comes now
                connection.execute(SQL["stop_leading"])
                return left
        except DatabaseUnavailable as error:
            log.info("deletion_postponed", reason=error.code)
        return False

    def _run(self, connection: Connection, stores: DataStores, until_s: float) -> bool:
        """Delete what is due until a time; return True if something is left."""
        for kind in (*definitions.delete_due(connection), *zones.delete_due(connection)):
            metrics.DELETIONS.labels(kind=kind).inc()
        for stream in log_deletion.due_streams(connection):
            if not self._delete(connection, stream, stores, until_s):
                return True
        return any(self._clock.monotonic_s() >= until_s for _ in zones.erase_emptied(connection))

    def _delete(
        self, connection: Connection, stream: DueStream, stores: DataStores, until_s: float
    ) -> bool:
        """Do one stream's work. Return False if time ended before it."""
        try:
            for _ in self._steps(connection, stream, stores):
                if self._clock.monotonic_s() >= until_s:
                    return False
        except EventHubError as error:  # the archive or Redis is away; others may be deleted
            log.warning("deletion_postponed", stream=stream.name, reason=error.code)
        return True

    def _steps(
        self, connection: Connection, stream: DueStream, stores: DataStores
    ) -> Iterator[int]:
        """Delete a stream, and then its data. Each step is done when it is yielded."""
        if not stream.is_deleted:
            yield from registrations.end_registrations(connection, stream)
            if not _end(connection, stream):
                return  # a registration was added since: the next run ends it
            yield 1
        registrations.erase_index(stores.data, stream.id)
        yield from _erase_deliveries(connection, stream.id, self._examined)
        yield from log_deletion.erase_events(connection, stream.id)
        yield from log_deletion.erase_rows(connection, stream.id)
        yield from registrations.erase_rows(connection, stream.id)
        _erase_copies(connection, stream, stores.archive_url)
        if stream.durability == "transient":
            transient.erase(stores.redis_url, stream.id)
        counts = log_deletion.finish(connection, stream)
        self._examined.pop(stream.id, None)
        if counts is not None:
            metrics.ERASED_EVENTS.inc(counts.events)
            log.info("stream_erased", stream=stream.name, id=stream.id, **counts._asdict())


def _end(connection: Connection, stream: DueStream) -> bool:
    """Delete a stream without registrations, and announce it. Return False if a registration names
    it, or its deletion was withdrawn.
    """
    found: list[Announcement] = []
    with announcing(connection, stream.zone, found):
        lock_system(connection)
        due = log_deletion.is_still_due(connection, stream)
        if not due or registrations.has_registrations(connection, stream.id):
            return False
        position = scalars(connection).execute(SQL["stop_forwarding"], {"id": stream.id}).fetchone()
        counts = log_deletion.delete(connection, stream)
        attributes = {
            "stream": stream.name,
            "segments": counts.segments,
            "events": counts.events,
            "bytes": counts.bytes,
            "unmatched_events": 0 if position is None else counts.last - position,
            "registrations": counts.registrations,
        }
        found.append(Announcement(DELETED, attributes, stream.resource))
    metrics.DELETIONS.labels(kind="stream").inc()
    log.info("stream_deleted", id=stream.id, **attributes)
    return True


class _DeliveryKey(NamedTuple):
    """The key of a delivery."""

    partition_id: int = 0
    endpoint_id: int = 0
    segment_id: int = 0
    sequence: int = 0


def _erase_deliveries(
    connection: Connection, stream_id: int, examined: dict[int, _DeliveryKey]
) -> Iterator[int]:
    """Remove the deliveries of a stream, from the last examined one on; yield after each statement.

    Nothing delivers events of a deleted stream, so what was examined stays without its deliveries.
    """
    for partition in scalars(connection).execute(SQL["partitions"]).fetchall():
        at = examined.get(stream_id, _DeliveryKey())
        if partition < at.partition_id:
            continue
        after = at if partition == at.partition_id else _DeliveryKey(partition)
        values = {"id": stream_id, "rows_max": limits.ERASE_ROWS_MAX}
        page = cursor_of(connection, _DeliveryKey)
        while found := page.execute(
            SQL["erase_deliveries"], {**values, **after._asdict()}
        ).fetchone():
            examined[stream_id] = after = found
            yield 1


def _erase_copies(connection: Connection, stream: DueStream, archive_url: str) -> None:
    """Remove the stream's files from the archive. Raises ArchiveUnavailable."""
    segments = log_deletion.archived(connection, stream.id)
    if not segments:
        return
    if not archive_url:
        raise ArchiveUnavailable("The archive with copies of a deleted stream is not configured.")
    if log_deletion.is_being_archived(connection, stream.id):
        raise ArchiveUnavailable("An archiver is at work; the copies are removed after it.")
    remove_copies(ArchiveFolder(archive_url), stream.zone_id, stream.name, segments)
    log_deletion.unarchive(connection, stream.id)
