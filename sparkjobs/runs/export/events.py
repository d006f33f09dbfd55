"""Events that no archive has: one pass over each group, a file for each segment. SQL module."""

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
    groups: dict[int, list[int]],
    partitions: Iterable[HeldPartition],
    told: Callable[[int], None],
) -> int:
    """`groups`: segments by the group that their events are in; `partitions`: those of them that
    are there, each with a savepoint of its own. How many events there were; a segment of which
    nothing is left has a file too.
    """
    left = dict(groups)
    events = 0
    for partition in partitions:
        segments = left.pop(partition.number, [])
        snapshot.run(render("walk_indexes").as_string())  # until the savepoint
        of = {"partition": partition.table, "group": partition.number}
        query = render("events", segments=segments, **of).as_string()
        events += _split(snapshot.batches(query), folder, segments, told)
    for segments in left.values():
        _split((), folder, segments, told)
    return events


def _split(
    batches: Iterable[pa.RecordBatch],
    folder: Path,
    segments: list[int],
    told: Callable[[int], None],
) -> int:
    events = 0
    files = _Files(folder, segments)
    try:
        for batch in batches:
            for segment, rows in _runs(batch):
                files.of(segment).write(rows)
            events += batch.num_rows
            told(batch.num_rows)
        files.finish()
    finally:
        files.close()
    return events


class _Files:
    """A file for each segment, in their order; one is open at a time."""

    def __init__(self, folder: Path, segments: list[int]) -> None:
        self._folder = folder
        self._left = iter(segments)
        self._segment: int | None = None
        self._file: ParquetFile | None = None

    def of(self, segment: int) -> ParquetFile:
        """The file of this segment or a later one; those between have no event."""
        while self._file is None or self._segment != segment:
            self._begin(next(self._left))
        return self._file

    def finish(self) -> None:
        """What comes after the last event."""
        for segment in self._left:
            self._begin(segment)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _begin(self, segment: int) -> None:
        self.close()
        self._segment = segment
        self._file = ParquetFile(self._folder / f"{segment}.parquet", EVENTS)


def _runs(batch: pa.RecordBatch) -> Iterable[tuple[int, pa.RecordBatch]]:
    """Rows that follow each other and are of one segment."""
    segments = batch.column("segment_id").to_numpy()
    starts = [0, *(np.flatnonzero(np.diff(segments)) + 1).tolist(), batch.num_rows]
    for begin, end in pairwise(starts):
        if end > begin:
            yield int(segments[begin]), batch.slice(begin, end - begin)
