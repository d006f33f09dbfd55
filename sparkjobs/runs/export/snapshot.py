"""Writes the inputs of a job: tables of one snapshot of the database, as Parquet. SQL module.

What the archive has is not copied: of a segment the file is named, and of partitions of deliveries
and attempts that left the database the rows are added. `inputs.json` is written last.

Partitions that are to be read are held from the snapshot's moment on, the oldest events are read
first, and what was read may go: no export keeps a hub from making room for long. Nothing is read
through a partitioned table itself, whose lock would keep all its partitions.
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
from registrations.match_index.epochs.facts import Moment
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
_TRIES = 3  # to hold what is there, while partitions go
Told = Callable[[str, int], None]


class ExportRequest(NamedTuple):
    """What is wanted. None: everything. `tables`: names of sparkjobs/tables.py."""

    database_url: str
    archive_url: str  # "": none
    folder: Path  # new or empty
    tables: frozenset[str]
    zone_id: int | None = None
    stream_ids: tuple[int, ...] | None = None
    since_us: int | None = None  # of segments, whose deliveries and attempts come with them
    until_us: int | None = None
    events: bool = False  # of segments that are not archived


class ExportedSnapshot(NamedTuple):
    """The moment that the inputs are of, and how many rows each table has (`events` too)."""

    now_us: int
    rows: dict[str, int]
    moments: dict[int, Moment]  # of the streams that were asked for, with their versions


def read_snapshot(folder: Path) -> ExportedSnapshot:
    """Of inputs that are written. Raises OSError, ValueError, TypeError."""
    fields = json.loads((folder / NAME).read_text())
    moments = fields.pop("moments").items()
    return ExportedSnapshot(**fields, moments={int(id): Moment(*values) for id, values in moments})


def export_inputs(export: ExportRequest, told: Told) -> ExportedSnapshot:
    """Write them. `told` is called now and then, in this thread, with the table that is being
    written and its rows so far; what it raises ends the export, and goes on.

    Raises DatabaseUnavailable, ArchiveUnavailable, StorageFull, InputsNotWritten.
    """
    opened = arrow.ArrowSnapshot(
        export.database_url, name="export", statement_s_max=limits.EXPORT_STATEMENT_S_MAX
    )
    with opened as snapshot, ThreadPoolExecutor(1) as pool:
        inputs = _Inputs(export, snapshot)
        written = pool.submit(inputs.write)
        try:
            while wait([written], limits.EXPORT_PROGRESS_INTERVAL_S).not_done:
                told(inputs.at, inputs.rows.get(inputs.at, 0))
        except BaseException:
            snapshot.cancel()
            while wait([written], limits.EXPORT_PROGRESS_INTERVAL_S).not_done:
                snapshot.cancel()  # between two statements it is not heard
            raise
        return written.result()


class _Inputs:
    """One export. `at` and `rows` are looked at by another thread."""

    def __init__(self, export: ExportRequest, snapshot: arrow.ArrowSnapshot) -> None:
        self.at = ""
        self.rows: dict[str, int] = {}
        self._export = export
        self._snapshot = snapshot
        self._archive = ArchiveFolder(export.archive_url) if export.archive_url else None
        self._read: set[str] = set()  # manifests of partitions that left
        self._holds = PartitionHolds(snapshot)
        self._there: dict[int, HeldPartition] = {}  # of events, by group
        self._groups: dict[int, list[int]] = {}  # segments whose events are to be exported
        streams = None if export.stream_ids is None else list(export.stream_ids)
        scope: dict[str, Any] = {"zone": export.zone_id, "streams": streams}
        scope["chosen"] = render("chosen", **scope)
        times = {"since": export.since_us, "until": export.until_us}
        scope["asked"] = render("asked", **times, **scope)
        self._parts = {
            **scope,
            "needed": sql.SQL(log_retention.SQL["needed"]),
            "groups": sql.SQL(drop.SQL["partitions"]),
            "missing_max": limits.EXPORT_MISSING_MAX,
            "has_archive": self._archive is not None,
        }

    def write(self) -> ExportedSnapshot:
        now_us = self._hold()
        tables = self._export.tables
        self._write(["segments"])  # says where events are
        if self._export.events:
            self._begin(EVENTS_FOLDER)
            folder, held = self._folder(EVENTS_FOLDER), self._holds.of("events")
            export_events(self._snapshot, folder, self._groups, held, self._count)
        self._write(_PARTITIONED)
        self._write(sorted(tables - {"segments", *_PARTITIONED}))
        snapshot = ExportedSnapshot(now_us, self.rows, self._moments())
        with writing():
            (self._export.folder / NAME).write_text(json.dumps(snapshot._asdict(), indent=1) + "\n")
        return snapshot

    def _write(self, names: Iterable[str]) -> None:
        """Those of them that are asked for."""
        for name in names:
            if name in self._export.tables:
                self._begin(name)
                file = self._folder(name) / _PART
                write_table(file, TABLES[name], self._batches(name), self._count)

    def _moments(self) -> dict[int, Moment]:
        if "versions" not in self._export.tables:
            return {}
        found = {}
        for stream_id in self._export.stream_ids or ():
            asked = sql.SQL(catalog.SQL["moment"].replace("%s", "{}")).format(stream_id)
            found[stream_id] = [Moment(**row) for row in self._rows_of("moment", moment=asked)]
        return {stream_id: rows[0] for stream_id, rows in found.items() if rows}

    def _hold(self) -> int:
        """The snapshot's moment; what is to be read stays from then on. One that went before it was
        held may have left for the archive, or with its events: all is looked at anew.
        """
        for _ in range(_TRIES):
            self._snapshot.begin_again()
            [moment] = self._rows_of("now")
            rows = [HeldPartition(**row) for row in self._rows_of("partitions")]
            self._there = {row.number: row for row in rows if row.parent == "events"}
            try:
                self._holds.take(self._to_read(rows))
                return int(moment["now_us"])
            except DatabaseUnavailable as error:
                failed = error
        raise failed

    def _to_read(self, there: list[HeldPartition]) -> list[HeldPartition]:
        """In the order in which they are read."""
        copied = set()
        if self._export.events:
            copied = {row["partition_id"] for row in self._rows_of("groups_copied")}
        found = [row for row in there if row.parent == "events" and row.number in copied]
        for parent in _PARTITIONED:
            if parent in self._export.tables:
                found += [row for row in there if row.parent == parent]
        return found

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        if name in _PARTITIONED:
            return self._of_partitions(name)
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
            for group, segments in segments_to_export(rows).items():
                self._groups.setdefault(group, []).extend(segments)
            yield rows

    def _of_partitions(self, name: str) -> Iterator[pa.RecordBatch]:
        """What is there, and what was archived when it left: listeners of then prove nothing."""
        for partition in self._holds.of(name):
            yield from self._statement(name, partition=partition.table)
        for row in self._rows_of("retired"):
            if row["parent"] == name != "listeners" and row["manifest"]:
                yield from self._archived_rows(row["manifest"])

    def _live(self) -> Iterator[pa.RecordBatch]:
        """Group by group. One whose partition went since the snapshot has left the database."""
        for row in self._rows_of("groups_live"):
            group, partition = row["partition_id"], self._there.get(row["partition_id"])
            if partition is None:
                yield from self._statement("live", group=group, partition=render("nothing"))
                continue
            with self._holds.passing(partition) as there:
                if there:
                    yield from self._statement("live", group=group, partition=partition.table)

    def _archived_rows(self, manifest: str) -> Iterator[pa.RecordBatch]:
        """Of segments that are asked for."""
        if self._archive is None:
            return
        try:
            for batch in archived_rows(self._archive, manifest):
                yield batch.filter(pc.is_in(batch.column("segment_id"), self._segments))
            self._read.add(manifest)
        except ArchiveDamaged as error:
            log.warning("partition_damaged", manifest=manifest, why=error.message)

    @cached_property
    def _segments(self) -> pa.Array:
        """The ids of those that are asked for."""
        batches = self._snapshot.batches(self._parts["asked"].as_string())
        return pa.concat_arrays([pa.array([], pa.int64()), *(one.column("id") for one in batches)])

    def _retired(self) -> Iterator[pa.RecordBatch]:
        """`archived`: its rows could be read, or there were none."""
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
        self.at = name

    def _count(self, rows: int) -> None:
        self.rows[self.at] += rows

    def _folder(self, name: str) -> Path:
        folder = self._export.folder / name
        with writing():
            folder.mkdir(parents=True)
        return folder


def _without_secrets(endpoints: pa.RecordBatch) -> pa.RecordBatch:
    """Of each URL its host."""
    place = endpoints.schema.get_field_index("host")
    hosts = [urlsplit(url).hostname or "" for url in endpoints.column(place).to_pylist()]
    return endpoints.set_column(place, "host", pa.array(hosts))
