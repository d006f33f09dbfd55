"""The archive catalog in the database: due segments, the lease of the archiver, failed attempts.
SQL module.

One archiver at a time holds the lease, for some seconds by the database's clock. A stopped archiver
that resumes late does no harm: files are named by their content, and its `complete` is refused.
"""

from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from eventhub.base import limits
from eventhub.eventlog.stored import ArchivedSegment
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars

SQL = queries.load("eventhub/eventlog/sql/archive.sql")
Connection = psycopg.Connection[Any]


class SegmentFilter(NamedTuple):
    """The segments to process: all, those of the streams of a name, or one by its UUID."""

    stream: str | None = None
    segment: str | None = None


class DueSegment(NamedTuple):
    """A sealed segment that is not archived. `last` is `first` - 1 if it is empty."""

    id: int
    uuid: str
    first: int
    last: int
    bytes: int  # stored bytes
    stream_id: int
    zone_id: int | None  # None: the hub-wide stream
    stream: str


class ArchivedRow(NamedTuple):
    """An archived segment, as the database knows it."""

    id: int
    stream_id: int
    zone_id: int | None
    stream: str
    uuid: str
    path: str  # of its manifest
    first: int
    last: int
    bytes: int
    before: int | None  # the last sequence of the stream's segment before; None: there is none


class ArchiveTotals(NamedTuple):
    segments: int
    events: int
    bytes: int  # stored bytes


_NOTHING = ArchiveTotals(0, 0, 0)


class _WaitingTotals(NamedTuple):
    """The totals of the waiting segments, and the age of the oldest; None if there are none."""

    tally: ArchiveTotals
    lag_s: float | None


class ArchiveFailure(NamedTuple):
    """The reason why a segment is not archived, and the time of its next attempt."""

    zone_id: int | None
    stream: str
    segment: str
    attempts: int
    reason: str  # an error's code
    detail: str
    retry_at_us: int


class ArchiveStatus(NamedTuple):
    """The status of archiving. `lag_s`: the time for which the oldest sealed segment has waited; 0
    if there is none.
    """

    waiting: ArchiveTotals
    lag_s: float
    archived: ArchiveTotals
    busy: bool  # an archiver is at work
    failures: list[ArchiveFailure]


def due_segments(connection: Connection, choice: SegmentFilter) -> list[DueSegment]:
    """Return waiting segments whose next attempt is due, the oldest first, a bounded number."""
    bounds = {
        "segments_max": limits.ARCHIVE_SEGMENTS_PER_SCAN_MAX,
        "retry_s_max": limits.ARCHIVE_RETRY_S_MAX,
    }
    values = {**choice._asdict(), **bounds}
    return cursor_of(connection, DueSegment).execute(SQL["due_segments"], values).fetchall()


def delete_finished_attempts(connection: Connection) -> None:
    """Delete the attempts of segments that are archived or no longer live."""
    connection.execute(SQL["delete_finished_attempts"])


def retry_failed_now(connection: Connection) -> None:
    """Make all failed segments due at once."""
    connection.execute(SQL["retry_failed_now"])


async def expedite(
    connection: psycopg.AsyncConnection[Any], segment_id: int, segment: str, *, act: bool
) -> str:
    """Make one segment due at once (its UUID must match, too), or return why not: `archived`
    already, `gone`, `open`, or `archive_policy` if its stream is not archived. Without `act`, only
    check.
    """
    values = {"segment_id": segment_id, "segment": segment, "act": act}
    reason = await (await scalars(connection).execute(SQL["expedite"], values)).fetchone()
    return "gone" if reason is None else str(reason)


async def archived_copy(
    connection: psycopg.AsyncConnection[Any], segment_id: int
) -> ArchivedSegment | None:
    """Return the archived copy of a segment; None if it is not archived."""
    query = cursor_of(connection, ArchivedSegment)
    return await (await query.execute(SQL["archived_copy"], {"segment_id": segment_id})).fetchone()


def acquire_lease(connection: Connection, owner: UUID) -> bool:
    """Acquire or renew the lease; return False if another archiver holds it."""
    values = {"owner": owner, "lease_s": limits.ARCHIVE_LEASE_S}
    return connection.execute(SQL["acquire_lease"], values).rowcount == 1


def release_lease(connection: Connection, owner: UUID) -> None:
    connection.execute(SQL["release_lease"], {"owner": owner})


def start_attempt(connection: Connection, segment: DueSegment) -> int | None:
    """Return the number of this attempt, from 1; None if the segment need not be archived
    any more.
    """
    values = {"segment_id": segment.id}
    attempt: int | None = scalars(connection).execute(SQL["start_attempt"], values).fetchone()
    return attempt


def fail_attempt(
    connection: Connection, segment: DueSegment, attempt: int, reason: tuple[str, str]
) -> None:
    """Store the reason (code and text); each pause before the next attempt is twice as long."""
    pause_s = min(
        limits.ARCHIVE_RETRY_S_BASE * 2 ** min(attempt - 1, 20), limits.ARCHIVE_RETRY_S_MAX
    )
    code, detail = reason
    values = {"segment_id": segment.id, "pause_s": pause_s, "reason": code, "detail": detail}
    connection.execute(SQL["fail_attempt"], values)


def complete(connection: Connection, segment: DueSegment, path: str, owner: UUID) -> bool:
    """Mark the segment as archived, once its manifest is written. Return False if the lease is lost
    or the segment has changed.
    """
    values = {"segment_id": segment.id, "path": path, "owner": owner}
    return connection.execute(SQL["complete"], values).rowcount == 1


def status(connection: Connection, stream: str | None = None) -> ArchiveStatus:
    """Return the status of archiving, of all streams or those of a name."""
    of = {"stream": stream}
    waiting = cursor_of(connection, _WaitingTotals).execute(SQL["waiting"], of).fetchone()
    archived = cursor_of(connection, ArchiveTotals).execute(SQL["archived"], of).fetchone()
    tally, lag_s = waiting or _WaitingTotals(_NOTHING, None)
    lease = {"lease_s": limits.ARCHIVE_LEASE_S}
    busy = connection.execute(SQL["lease_holder"], lease).fetchone() is not None
    values = {"stream": stream, "failures_max": limits.ARCHIVE_FAILURES_SHOWN_MAX}
    failures = cursor_of(connection, ArchiveFailure).execute(SQL["failures"], values).fetchall()
    return ArchiveStatus(tally, lag_s or 0.0, archived or _NOTHING, busy, failures)


def archived_segments(connection: Connection, choice: SegmentFilter) -> list[ArchivedRow]:
    """Return the segments for `verify`, in the order of each stream."""
    rows = cursor_of(connection, ArchivedRow)
    return rows.execute(SQL["archived_segments"], choice._asdict()).fetchall()
