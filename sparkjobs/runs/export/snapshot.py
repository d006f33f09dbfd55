"""The export of a job's inputs: tables of one snapshot of the database, as Parquet. SQL module.

Archived data is not copied: segments are read from the archive's files, and the rows of dropped
partitions of deliveries and attempts are added from their archive. `inputs.json` is written last.

Partitions to read are locked from the snapshot's time on, the oldest events are read first, and
what was read may be dropped at once, so no export blocks retention for long. Partitioned tables are
never read through their parent, whose lock would retain all partitions.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from delivery import log_retention
from delivery.partitions.archive import archived_rows
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import get_logger
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.errors import ArchiveDamaged
from eventhub.eventlog.retention import drop
from eventhub.postgresql import arrow
from registrations import catalog
from registrations.match_index.epochs.facts import StreamSnapshot
from sparkjobs.runs.export.events import export_events
from sparkjobs.runs.export.files import write_table, writing
from sparkjobs.runs.export.holds import HeldPartition, PartitionHolds
from sparkjobs.runs.export.segments import (
    TimeRange,
    locate_events,
    require_live,
    segments_to_export,
)
from sparkjobs.runs.export.statements import render
from sparkjobs.tables import EVENTS_FOLDER, TABLES

log = get_logger(__name__)

NAME = "inputs.json"
_PART = "part-00000.parquet"
_PARTITIONED = ("deliveries", "attempts", "listeners")
_ATTEMPTS = 3  # to lock partitions that are being dropped concurrently
Report = Callable[[str, int], None]


class ExportRequest(NamedTuple):
    """The scope of an export. None: everything. `tables`: names of sparkjobs/tables.py."""

    database_url: str
    archive_url: str  # "": none
    folder: Path  # new or empty
    tables: frozenset[str]
    zone_id: int | None = None
    stream_ids: tuple[int, ...] | None = None
    since_us: int | None = None  # selects segments, with their deliveries and attempts
    until_us: int | None = None
    events: bool = False  # include events of segments that are not archived


class ExportedSnapshot(NamedTuple):
    """The time of the inputs, and the number of rows of each table (and of `events`)."""

    now_us: int
    rows: dict[str, int]
    moments: dict[int, StreamSnapshot]  # of the requested streams, with their versions


def read_snapshot(folder: Path) -> ExportedSnapshot:
    """Read the snapshot of written inputs. Raises OSError, ValueError, TypeError."""
    fields = json.loads((folder / NAME).read_text())
    moments = fields.pop("moments").items()
    return ExportedSnapshot(
        **fields, moments={int(id): StreamSnapshot(*values) for id, values in moments}
    )


def export_inputs(export: ExportRequest, report: Report) -> ExportedSnapshot:
    """Write the inputs. `report` is called regularly, in this thread, with the current table and
    its rows so far; an exception in it ends the export and propagates.

    Raises DatabaseUnavailable, ArchiveUnavailable, StorageFull, InputsNotWritten.
    """
    opened = arrow.ArrowSnapshot(
        export.database_url, name="export", statement_s_max=limits.EXPORT_STATEMENT_S_MAX
    )
    with opened as snapshot, ThreadPoolExecutor(1) as pool:
        inputs = _Export(export, snapshot)
        written = pool.submit(inputs.write)
        try:
            while wait([written], limits.EXPORT_PROGRESS_INTERVAL_S).not_done:
                report(inputs.table, inputs.rows.get(inputs.table, 0))
        except BaseException:
            snapshot.cancel()
            while wait([written], limits.EXPORT_PROGRESS_INTERVAL_S).not_done:
                snapshot.cancel()  # between two statements a cancellation has no effect
            raise
        return written.result()


class _Export:
    """One export. Another thread reads `table` and `rows`."""

    def __init__(self, export: ExportRequest, snapshot: arrow.ArrowSnapshot) -> None:
        self.table = ""
        self.rows: dict[str, int] = {}
        self._export = export
        self._snapshot = snapshot
        self._archive = ArchiveFolder(export.archive_url) if export.archive_url else None
        self._read: set[str] = set()  # manifests of dropped partitions
        self._holds = PartitionHolds(snapshot)
        self._of_events: dict[int, HeldPartition] = {}  # by partition id
        self._to_export: dict[int, list[int]] = {}  # partition id -> segments
        streams = None if export.stream_ids is None else list(export.stream_ids)
        scope: dict[str, Any] = {"zone": export.zone_id, "streams": streams}
        scope["requested_streams"] = render("requested_streams", **scope)
        times = {"since": export.since_us, "until": export.until_us}
        scope["requested_segments"] = render("requested_segments", **times, **scope)
        self._parts = {
            **scope,
            "needed": sql.SQL(log_retention.SQL["needed"]),
            "event_partitions": sql.SQL(drop.SQL["partitions"]),
            "missing_max": limits.EXPORT_MISSING_MAX,
            "has_archive": self._archive is not None,
        }

    def write(self) -> ExportedSnapshot:
        now_us = self._hold()
        tables = self._export.tables
        self._write(["segments"])  # which locates the events
        if self._export.events:
            self._begin(EVENTS_FOLDER)
            folder, held = self._folder(EVENTS_FOLDER), self._holds.of("events")
            export_events(self._snapshot, folder, self._to_export, held, self._count)
        self._write(_PARTITIONED)
        self._write(sorted(tables - {"segments", *_PARTITIONED}))
        snapshot = ExportedSnapshot(now_us, self.rows, self._moments())
        with writing():
            (self._export.folder / NAME).write_text(json.dumps(snapshot._asdict(), indent=1) + "\n")
        return snapshot

    def _write(self, names: Iterable[str]) -> None:
        """Write those tables that are requested."""
        for name in names:
            if name in self._export.tables:
                self._begin(name)
                file = self._folder(name) / _PART
                write_table(file, TABLES[name], self._batches(name), self._count)

    def _moments(self) -> dict[int, StreamSnapshot]:
        if "versions" not in self._export.tables:
            return {}
        found = {}
        for stream_id in self._export.stream_ids or ():
            query = sql.SQL(catalog.SQL["moment"].replace("%s", "{}")).format(stream_id)
            found[stream_id] = [
                StreamSnapshot(**row) for row in self._rows_of("moment", moment=query)
            ]
        return {stream_id: rows[0] for stream_id, rows in found.items() if rows}

    def _hold(self) -> int:
        """Take the snapshot, lock the partitions to read, and return the snapshot's time. If one
        was dropped before it was locked, its rows may have moved, so everything is read again.
        """
        for _ in range(_ATTEMPTS):
            self._snapshot.begin_again()
            [moment] = self._rows_of("now")
            rows = [HeldPartition(**row) for row in self._rows_of("partitions")]
            self._of_events = {row.number: row for row in rows if row.parent == "events"}
            try:
                self._holds.take(self._to_read(rows))
                return int(moment["now_us"])
            except DatabaseUnavailable as error:
                failed = error
        raise failed

    def _to_read(self, partitions: list[HeldPartition]) -> list[HeldPartition]:
        """Return the partitions to read, in reading order."""
        copied = set()
        if self._export.events:
            copied = {row["partition_id"] for row in self._rows_of("partitions_copied")}
        found = [row for row in partitions if row.parent == "events" and row.number in copied]
        for parent in _PARTITIONED:
            if parent in self._export.tables:
                found += [row for row in partitions if row.parent == parent]
        return found

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        if name in _PARTITIONED:
            return self._partitioned(name)
        if name == "retired":
            return self._retired()
        if name == "live":
            return self._live()
        found = self._statement(name)
        if name == "segments":
            return self._located(found)
        if name == "endpoints":
            return map(_without_secrets, found)
        return found

    def _located(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        span = TimeRange(self._export.since_us, self._export.until_us)
        for batch in found:
            if self._export.events and self._archive is None:
                require_live(batch)
            rows = locate_events(batch, self._archive, span)
            for partition_id, segments in segments_to_export(rows).items():
                self._to_export.setdefault(partition_id, []).extend(segments)
            yield rows

    def _partitioned(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of existing partitions and of archived ones, except archived listeners,
        which are too old to audit.
        """
        for partition in self._holds.of(name):
            yield from self._statement(name, partition=partition.table)
        for row in self._rows_of("retired"):
            if row["parent"] == name != "listeners" and row["manifest"]:
                yield from self._archived(row["manifest"])

    def _live(self) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of archived segments, by partition; a partition that was dropped
        since the snapshot has none.
        """
        for row in self._rows_of("partitions_live"):
            id, partition = row["partition_id"], self._of_events.get(row["partition_id"])
            if partition is None:
                no_rows = render("no_rows")
                yield from self._statement("live", partition_id=id, partition=no_rows)
                continue
            with self._holds.optional(partition) as exists:
                if exists:
                    yield from self._statement("live", partition_id=id, partition=partition.table)

    def _archived(self, manifest: str) -> Iterator[pa.RecordBatch]:
        """Yield the archived rows of a dropped partition that belong to requested segments."""
        if self._archive is None:
            return
        try:
            for batch in archived_rows(self._archive, manifest):
                found = batch.filter(pc.is_in(batch.column("segment_id"), self._segments))
                if "replay_id" in found.schema.names:  # no registration made those of replays
                    found = found.filter(pc.is_null(found.column("replay_id")))
                yield found
            self._read.add(manifest)
        except ArchiveDamaged as error:
            log.warning("partition_archive_damaged", manifest=manifest, detail=error.message)

    @cached_property
    def _segments(self) -> pa.Array:
        """The ids of the requested segments."""
        batches = self._snapshot.batches(self._parts["requested_segments"].as_string())
        return pa.concat_arrays([pa.array([], pa.int64()), *(one.column("id") for one in batches)])

    def _retired(self) -> Iterator[pa.RecordBatch]:
        """Yield the dropped partitions; `archived`: the rows were read, or there were none."""
        for batch in self._statement("retired"):
            rows = batch.select(["manifest", "rows"]).to_pylist()
            found = [row["manifest"] in self._read or not row["rows"] for row in rows]
            yield batch.append_column("archived", pa.array(found))

    def _statement(self, name: str, **parts: Any) -> Iterator[pa.RecordBatch]:
        return self._snapshot.batches(render(name, **self._parts, **parts).as_string())

    def _rows_of(self, name: str, **parts: Any) -> list[dict[str, Any]]:
        return [row for batch in self._statement(name, **parts) for row in batch.to_pylist()]

    def _begin(self, name: str) -> None:
        self.rows[name] = 0
        self.table = name

    def _count(self, rows: int) -> None:
        self.rows[self.table] += rows

    def _folder(self, name: str) -> Path:
        folder = self._export.folder / name
        with writing():
            folder.mkdir(parents=True)
        return folder


def _without_secrets(endpoints: pa.RecordBatch) -> pa.RecordBatch:
    """Replace each URL by its host."""
    at = endpoints.schema.get_field_index("host")
    hosts = [urlsplit(url).hostname or "" for url in endpoints.column(at).to_pylist()]
    return endpoints.set_column(at, "host", pa.array(hosts))
