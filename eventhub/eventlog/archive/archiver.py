"""The archiver: acquires the lease, archives due segments, and reports each. SQL module.

A failure is stored with its reason and retried later; the other segments go on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID, uuid4

import psycopg
import pyarrow as pa

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.logs import get_logger
from eventhub.eventlog.archive import catalog, layout, verify
from eventhub.eventlog.archive.catalog import Connection, DueSegment, SegmentFilter
from eventhub.eventlog.archive.database_segment import DatabaseSegmentReader
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.manifest import SegmentManifest
from eventhub.eventlog.archive.write import remove_leftovers, stem_of, write_segment
from eventhub.eventlog.errors import ArchiveConflict, ArchiveUnavailable
from eventhub.postgresql.connections import blocking

log = get_logger(__name__)
_ENDS = (ArchiveUnavailable.code, DatabaseUnavailable.code)


class ArchiveResult(NamedTuple):
    """The result of one segment: archived, or the reason why not (an error's code)."""

    segment: DueSegment
    events: int = 0
    file_bytes: int = 0
    reason: str = ""
    detail: str = ""


class ArchiveLeaseLost(Exception):
    """Another archiver is running, so this one ends. The files that it wrote do no harm."""


class ArchiverStopped(Exception):
    """The archiver was stopped; the next one repeats its unfinished work."""


class Archiver:
    """One run. The connection is in autocommit mode. One user at a time."""

    def __init__(
        self,
        folder: ArchiveFolder,
        connection: Connection,
        rows: DatabaseSegmentReader,
        clock: Clock,
    ) -> None:
        self._folder = folder
        self._connection = connection
        self._rows = rows
        self._clock = clock
        self._owner: UUID = uuid4()
        self._renewed_s = 0.0
        self._cleaned = False
        self._stopping = False

    def stop(self) -> None:
        """End `run` soon; may be called by a signal handler."""
        self._stopping = True

    def run(self, choice: SegmentFilter, *, retry_failed: bool = False) -> Iterator[ArchiveResult]:
        """Archive until nothing is due, segment by segment. `retry_failed`: failed segments do not
        wait for their next attempt.

        Raises ArchiveLeaseLost, at the beginning if another archiver is running, ArchiverStopped
        after `stop`, and DatabaseUnavailable.
        """
        with self._leading():
            catalog.delete_finished_attempts(self._connection)
            if retry_failed:
                catalog.retry_failed_now(self._connection)
            while found := catalog.due_segments(self._connection, choice):
                for segment in found:
                    self._go_on()
                    attempt = catalog.start_attempt(self._connection, segment)
                    if attempt is None:
                        continue
                    done = self._archived(segment, attempt)
                    yield done
                    if done.reason in _ENDS:
                        return  # the others would fail too

    @contextmanager
    def _leading(self) -> Iterator[None]:
        self._renew(at_once=True)
        try:
            yield
        finally:
            catalog.release_lease(self._connection, self._owner)

    def _renew(self, at_once: bool = False) -> None:
        now_s = self._clock.monotonic_s()
        if at_once or now_s - self._renewed_s >= limits.ARCHIVE_RENEW_INTERVAL_S:
            if not catalog.acquire_lease(self._connection, self._owner):
                raise ArchiveLeaseLost
            self._renewed_s = now_s

    def _go_on(self) -> None:
        if self._stopping:
            raise ArchiverStopped
        self._renew()

    def _remove_unfinished(self) -> None:
        if not self._cleaned:
            self._folder.remove_unfinished()
            self._cleaned = True

    def _archived(self, segment: DueSegment, attempt: int) -> ArchiveResult:
        try:
            self._remove_unfinished()
            manifest = self._there_already(segment) or write_segment(
                self._folder, segment, lambda: self._pages(segment)
            )
            if attempt > 1:
                remove_leftovers(self._folder, segment, manifest)
        except FileNotFoundError as error:
            raise ArchiveLeaseLost from error  # the new holder removes unfinished files
        except (ArchiveLeaseLost, ArchiverStopped, psycopg.Error):
            raise
        except EventHubError as error:
            return self._failed(segment, attempt, error)
        except Exception as error:
            log.exception("archiving_failed", segment=segment.uuid)
            return self._failed(segment, attempt, EventHubError(f"{type(error).__name__}: {error}"))
        path = layout.manifest_path(stem_of(segment))
        self._renew(at_once=True)
        if not catalog.complete(self._connection, segment, path, self._owner):
            raise ArchiveLeaseLost
        log.info("segment_archived", segment=segment.uuid, bytes=manifest.file_bytes)
        return ArchiveResult(segment, manifest.events, manifest.file_bytes)

    def _pages(self, segment: DueSegment) -> Iterator[pa.Table]:
        for page in self._rows.pages(segment):
            self._go_on()
            yield page

    def _there_already(self, segment: DueSegment) -> SegmentManifest | None:
        """Return the manifest of a run that ended before it was stored in the database, if file and
        manifest are intact.

        Raises ArchiveConflict if they are intact and of other events.
        """
        path = layout.manifest_path(stem_of(segment))
        found = verify.examine(self._folder, path, self._go_on)
        if found.manifest is None or found.problems:
            return None
        manifest = found.manifest
        known = (segment.uuid, segment.first, segment.last, segment.bytes)
        if (manifest.segment, *manifest.range, manifest.payload_bytes) != known:
            raise ArchiveConflict(path=path)
        return manifest

    def _failed(self, segment: DueSegment, attempt: int, error: EventHubError) -> ArchiveResult:
        reason = (error.code, error.message)
        catalog.fail_attempt(self._connection, segment, attempt, reason)
        log.warning("segment_not_archived", segment=segment.uuid, reason=error.code)
        return ArchiveResult(segment, 0, 0, *reason)


@contextmanager
def open_archiver(archive_url: str, database_url: str, clock: Clock) -> Iterator[Archiver]:
    """Open an archiver. Raises ArchiveUnavailable, DatabaseUnavailable."""
    folder = ArchiveFolder(archive_url)
    with (
        blocking(database_url, name="archiver") as connection,
        DatabaseSegmentReader(database_url) as rows,
    ):
        yield Archiver(folder, connection, rows, clock)
