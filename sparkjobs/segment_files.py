"""Files that executors read directly: a segment's rows, from the run's inputs or the archive, and
selected rows of an input table. A bad file becomes a finding instead of a failed job. Plain module.
"""

import hashlib
import io
from collections.abc import Iterator
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sparkjobs.arrow_dataset import ds
from sparkjobs.tables import EVENTS, EVENTS_FOLDER

EXPORT, ARCHIVE, NONE = "export", "archive", "none"
ALTERED = "altered"
_TIME = pa.timestamp("us", tz="UTC")


class UnreadableSegmentFile(Exception):
    """A segment's file that cannot be read. `fault`: missing_file, truncated, altered,
    unreadable.
    """

    def __init__(self, fault: str, detail: str) -> None:
        super().__init__(fault, detail)
        self.fault = fault
        self.detail = detail


class SegmentFile:
    """The rows of one segment. `altered`: the file is readable, but its digest differs from the
    manifest's.
    """

    def __init__(self, segment: dict[str, Any], inputs: str, archive_url: str) -> None:
        """Read the whole file. `segment`: id, source, file, file_bytes, file_sha256 of
        `tables.SEGMENTS`. Raises UnreadableSegmentFile.
        """
        if segment["source"] == ARCHIVE:
            data = _archive_file(segment, archive_url)
            self.altered = hashlib.sha256(data).hexdigest() != segment["file_sha256"]
        else:
            data = _fetch(f"{inputs}/{EVENTS_FOLDER}/{segment['id']}.parquet")
            self.altered = False
        try:
            self._file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableSegmentFile(
                ALTERED if self.altered else "unreadable", str(error)
            ) from error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield rows of `tables.EVENTS` in file order. Raises UnreadableSegmentFile."""
        try:
            for number in range(self._file.num_row_groups):
                yield from _as_events(self._file, number)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise UnreadableSegmentFile(
                ALTERED if self.altered else "unreadable", str(error)
            ) from error


def _archive_file(segment: dict[str, Any], archive_url: str) -> bytes:
    if segment["file"] is None:
        raise UnreadableSegmentFile("missing_file", "No manifest names the segment's file.")
    data = _fetch(f"{archive_url.rstrip('/')}/{segment['file']}")
    if len(data) < segment["file_bytes"]:
        raise UnreadableSegmentFile(
            "truncated", f"The file has {len(data):,} of {segment['file_bytes']:,} bytes."
        )
    return data


def _fetch(url: str) -> bytes:
    """Fetch a file. Raises UnreadableSegmentFile if it is missing; errors of an unavailable
    filesystem propagate, because they say nothing about the file.
    """
    filesystem, path = fsspec.core.url_to_fs(url)
    try:
        found: bytes = filesystem.cat_file(path)
    except FileNotFoundError as error:
        raise UnreadableSegmentFile(
            "missing_file", f"{path.rpartition('/')[2]} does not exist."
        ) from error
    return found


def _as_events(file: pq.ParquetFile, number: int) -> Iterator[pa.RecordBatch]:
    """Yield a row group as `tables.EVENTS`: archives store timestamps and unsigned masks."""
    time = "appended_at_us" if "appended_at_us" in file.schema_arrow.names else "appended_at"
    table = file.read_row_group(number, columns=["sequence", time, "mask", "payload"])
    for batch in table.to_batches():
        times, mask = batch.column(time), batch.column("mask")
        if pa.types.is_timestamp(times.type):
            times = pc.cast(times, _TIME).view(pa.int64())
        if mask.type != pa.int64():
            mask = mask.view(pa.int64())
        columns = [batch.column("sequence"), times, mask, batch.column("payload")]
        yield pa.RecordBatch.from_arrays(columns, schema=EVENTS)


def open_table(folder: str, name: str, schema: pa.Schema) -> ds.Dataset:
    """Return the table `name` in a folder, to be read in this process. Raises OSError."""
    return ds.dataset(f"{folder}/{name}", schema=schema, format="parquet")


def read_rows(
    folder: str, name: str, schema: pa.Schema, where: ds.Expression
) -> list[dict[str, Any]]:
    """Return the rows of the table `name` in a folder that satisfy `where`. Raises OSError."""
    rows: list[dict[str, Any]] = open_table(folder, name, schema).to_table(filter=where).to_pylist()
    return rows
