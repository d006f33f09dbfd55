"""Archiving as a job of a worker. It runs in a process of its own, so that it takes no memory or
time from the worker's other tasks. SQL module.
"""

import json
from typing import Any, NamedTuple

from eventhub.base import metrics
from eventhub.base.child import ChildProcess
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.archive import catalog
from eventhub.eventlog.archive.catalog import ArchiveStatus, SegmentFilter
from eventhub.postgresql.connections import blocking

log = get_logger(__name__)
throttled = ThrottledLog(log)


class SegmentReport(NamedTuple):
    """The result for one segment, as a line of JSON from the process. `reason`: why it failed, or
    "".
    """

    segment: str
    events: int
    bytes: int  # of the file
    reason: str = ""

    def line(self) -> str:
        return json.dumps(self._asdict())


class ArchiveProcess:
    """Runs the archiver's process when segments are due, one run at a time in this process."""

    def __init__(self) -> None:
        self._child = ChildProcess()
        self._last: SegmentReport | None = None  # of the run that is under way

    def at_work(self) -> dict[str, Any]:
        """Return the segment that was archived last, for display."""
        last = self._last
        return {} if last is None else {"last_segment": last.segment, "events": last.events}

    def run(self, database_url: str, archive_url: str) -> None:
        """Archive due segments and update the metrics. Return at once if a run is in progress."""
        with self._child.exclusive() as ours:
            if not ours:
                return
            try:
                with blocking(database_url, name="archiver") as connection:
                    busy = _measure(connection, archive_url).busy
                    if (
                        archive_url
                        and not busy
                        and catalog.due_segments(connection, SegmentFilter())
                    ):
                        self._archive()
                        _measure(connection, archive_url)
            except DatabaseUnavailable as error:
                throttled.info("archiving_postponed", reason=error.code)

    def stop(self) -> None:
        """End the process, if there is one; the next run repeats its unfinished work."""
        self._child.stop()

    def _archive(self) -> None:
        with self._child.started("eventhub.eventlog.archive") as process:
            for line in process.stdout or ():
                fields: dict[str, Any] = json.loads(line)
                self._last = SegmentReport(**fields)
                _count(self._last)
        self._last = None
        if process.returncode and not self._child.is_stopped:
            metrics.ARCHIVE_FAILURES.labels(reason="process").inc()
            log.warning("archiver_failed", status=process.returncode)


def _count(report: SegmentReport) -> None:
    if report.reason:
        metrics.ARCHIVE_FAILURES.labels(reason=report.reason).inc()
    else:
        metrics.ARCHIVED_EVENTS.inc(report.events)
        metrics.ARCHIVED_BYTES.inc(report.bytes)


def _measure(connection: catalog.Connection, archive_url: str) -> ArchiveStatus:
    found = catalog.status(connection)
    metrics.ARCHIVE_CONFIGURED.set(bool(archive_url))
    metrics.ARCHIVE_LAG_S.set(found.lag_s)
    metrics.ARCHIVE_WAITING_EVENTS.set(found.waiting.events)
    return found
