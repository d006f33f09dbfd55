"""The export of events that are not archived: one pass over each partition, a file per segment. SQL
module.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventhub.postgresql.arrow import ArrowSnapshot
from sparkjobs.runs.export.files import ParquetFile
from sparkjobs.runs.export.holds import HeldPartition
from sparkjobs.runs.export.statements import render
from sparkjobs.tables import EVENTS


def export_events(
    snapshot: ArrowSnapshot,
    folder: Path,
    by_partition: dict[int, list[int]],
    partitions: Iterable[HeldPartition],
    report: Callable[[int], None],
) -> int:
    """Write the events of segments, given by partition; return their number. `partitions`: those
    that exist, each under a savepoint of its own. A segment without rows gets an empty file.
    """
    remaining = dict(by_partition)
    events = 0
    for partition in partitions:
        segments = remaining.pop(partition.number, [])
        snapshot.run(render("walk_indexes").as_string())  # until the savepoint
        of = {"partition": partition.table, "partition_id": partition.number}
        query = render("events", segments=segments, **of).as_string()
        events += _split(snapshot.batches(query), folder, segments, report)
    for segments in remaining.values():
        _split((), folder, segments, report)
    return events


def _split(
    batches: Iterable[pa.RecordBatch],
    folder: Path,
    segments: list[int],
    report: Callable[[int], None],
) -> int:
    events = 0
    files = _SegmentFiles(folder, segments)
    try:
        for batch in batches:
            for segment, rows in _runs(batch):
                files.of(segment).write(rows)
            events += batch.num_rows
            report(batch.num_rows)
        files.finish()
    finally:
        files.close()
    return events


class _SegmentFiles:
    """The files of segments, written in order; one is open at a time."""

    def __init__(self, folder: Path, segments: list[int]) -> None:
        self._folder = folder
        self._remaining = iter(segments)
        self._segment: int | None = None
        self._file: ParquetFile | None = None

    def of(self, segment: int) -> ParquetFile:
        """Return the file of this segment or a later one; segments between have no events."""
        while self._file is None or self._segment != segment:
            self._open(next(self._remaining))
        return self._file

    def finish(self) -> None:
        """Write empty files for the segments after the last event."""
        for segment in self._remaining:
            self._open(segment)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self, segment: int) -> None:
        self.close()
        self._segment = segment
        self._file = ParquetFile(self._folder / f"{segment}.parquet", EVENTS)


def _runs(batch: pa.RecordBatch) -> Iterable[tuple[int, pa.RecordBatch]]:
    """Yield consecutive rows of one segment, with its id."""
    segments = batch.column("segment_id").to_numpy()
    bounds = [0, *(np.flatnonzero(np.diff(segments)) + 1).tolist(), batch.num_rows]
    for start, end in pairwise(bounds):
        if end > start:
            yield int(segments[start]), batch.slice(start, end - start)
