"""The deletion of streams: scheduled with a grace period, withdrawn, done, and the removal of their
events. SQL module.

A stream is deleted in one transaction: its name is free at once, and nothing of it can be read. Its
data is then removed in statements of bounded length, each of its own; after a crash
the next process finds what is left. The rows of the stream and its segments remain.

The connection is synchronous; except for `schedule` and `withdraw`, it is in autocommit mode.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog import append, resource_changes
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.streams import lock_system
from eventhub.eventlog.system import SYSTEM_STREAM_ID, Announcement, drafts_of
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars

SQL = queries.load("eventhub/eventlog/sql/deletion.sql")

SCHEDULED = "stream.deletion.scheduled"
WITHDRAWN = "stream.deletion.withdrawn"
DELETED = "stream.deleted"
ERASED = "stream.erased"

Connection = psycopg.Connection[Any]


class DueStream(NamedTuple):
    """A stream whose grace period has ended. `is_deleted`: only the removal of data is left."""

    id: int
    zone_id: int
    zone: str
    name: str
    durability: str
    is_deleted: bool

    @property
    def resource(self) -> Resource:
        return Resource("stream", self.zone_id, self.name)


class DeletedCounts(NamedTuple):
    """The readable segments and events of a stream until it was deleted, its last sequence, and the
    registrations that its deletion ended or changed.
    """

    segments: int
    events: int
    bytes: int
    last: int
    registrations: int


class ErasedCounts(NamedTuple):
    """What was removed of a deleted stream. `pending`: deliveries that had no final state."""

    events: int
    deliveries: int
    pending: int


class _StoredSegment(NamedTuple):
    """A segment, and a partition that may have events of it."""

    id: int
    partition_id: int
    last: int


def schedule(connection: Connection, stream_id: int, grace_s: int) -> None:
    """Schedule the deletion. Call `lock_system` first; announce it in the same transaction."""
    connection.execute(SQL["schedule"], {"id": stream_id, "grace_s": grace_s})


def withdraw(connection: Connection, stream_id: int) -> bool:
    """Withdraw a scheduled deletion; return False if there is none, or its grace period has ended.
    Call `lock_system` first; announce it in the same transaction.
    """
    return connection.execute(SQL["withdraw"], (stream_id,)).rowcount > 0


def due_streams(connection: Connection) -> list[DueStream]:
    """Return some streams of which something is to be done, those that are due longest first."""
    rows = cursor_of(connection, DueStream)
    return rows.execute(SQL["due"], (limits.DELETIONS_AT_ONCE,)).fetchall()


@contextmanager
def announcing(connection: Connection, zone: str, found: list[Announcement]) -> Iterator[None]:
    """Run a transaction that appends the announcements, which the block adds, last in it."""
    with connection.transaction():
        yield
        appended = append.append_in(connection, drafts_of(zone, found)) if found else []
        changes = zip([one.resource for one in found], appended, strict=True)
        resource_changes.record(connection, [(of, at) for of, at in changes if of is not None])
    if appended:
        append.notify(connection, {SYSTEM_STREAM_ID: appended[-1].sequence})


def is_still_due(connection: Connection, stream: DueStream) -> bool:
    """Lock the stream and return whether it is to be deleted now. Call `lock_system` first."""
    return connection.execute(SQL["still_due"], (stream.id,)).rowcount > 0


def count_ended(connection: Connection, stream_id: int, registrations: int) -> None:
    """Count registrations that the deletion ended or changed, in the caller's transaction, which
    has locked `system`.
    """
    values = {"id": stream_id, "registrations": registrations}
    connection.execute(SQL["count_ended"], values)


def delete(connection: Connection, stream: DueStream) -> DeletedCounts:
    """Delete a due stream, in the caller's transaction, which announces it."""
    counts = cursor_of(connection, DeletedCounts).execute(SQL["delete"], {"id": stream.id})
    return counts.fetchone() or DeletedCounts(0, 0, 0, 0, 0)


def erase_events(connection: Connection, stream_id: int) -> Iterator[int]:
    """Remove the stored events; yield the number after each statement."""
    segments = cursor_of(connection, _StoredSegment).execute(SQL["segments"], (stream_id,))
    for segment in segments.fetchall():
        of = {"id": stream_id, "segment_id": segment.id, "partition_id": segment.partition_id}
        first = scalars(connection).execute(SQL["first_stored"], of).fetchone()
        while first is not None and first <= segment.last:
            last = first + limits.ERASE_ROWS_MAX - 1
            connection.execute(SQL["erase_events"], {**of, "first": first, "last": last})
            yield min(last, segment.last) - first + 1
            first = last + 1


def erase_rows(connection: Connection, stream_id: int) -> Iterator[int]:
    """Remove the keyed state and the rows that recognise repeated events; yield the number of rows
    after each statement.
    """
    yield from erased(connection, SQL["erase_keyed_state"], stream_id)
    yield from erased(connection, SQL["erase_digests"], stream_id)
    while True:  # the numbers of a producer first: its row finds them
        connection.execute(SQL["erase_producer_numbers"], {"id": stream_id})
        count = connection.execute(SQL["erase_producer"], {"id": stream_id}).rowcount
        if not count:
            return
        yield count


def erased(connection: Connection, statement: LiteralString, stream_id: int) -> Iterator[int]:
    """Repeat a statement that deletes at most `rows_max` rows; yield the number of each."""
    values = {"id": stream_id, "rows_max": limits.ERASE_ROWS_MAX}
    while count := connection.execute(statement, values).rowcount:
        yield count


def finish(connection: Connection, stream: DueStream) -> ErasedCounts | None:
    """Record and announce that nothing is left of a stream; None if another process did."""
    found: list[Announcement] = []
    with announcing(connection, stream.zone, found):
        lock_system(connection)
        rows = cursor_of(connection, ErasedCounts).execute(SQL["erased"], (stream.id,))
        counts = rows.fetchone()
        if counts is None:
            return None
        found.append(Announcement(ERASED, {"stream": stream.name, **counts._asdict()}))
    return counts


def archived(connection: Connection, stream_id: int) -> list[str]:
    """Return the UUIDs of the segments that the archive has, or may have in part."""
    return scalars(connection).execute(SQL["archived"], (stream_id,)).fetchall()


def is_being_archived(connection: Connection, stream_id: int) -> bool:
    """Return whether an archiver may be writing a copy of a segment."""
    values = {"id": stream_id, "lease_s": limits.ARCHIVE_LEASE_S}
    return bool(scalars(connection).execute(SQL["being_archived"], values).fetchone())


def unarchive(connection: Connection, stream_id: int) -> None:
    """Record that the archive has none of the segments any more."""
    connection.execute(SQL["unarchive"], {"id": stream_id})
