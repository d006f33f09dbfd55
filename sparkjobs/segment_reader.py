"""What executors read by themselves, on whatever machine the task runs: the rows of a segment, from
the run's inputs or the archive, so that one bad file is a finding and not the end of the job; and
some rows of a table. Plain module.
"""

import hashlib
import io
from collections.abc import Iterator
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from sparkjobs.tables import EVENTS, EVENTS_FOLDER

EXPORT, ARCHIVE, NONE = "export", "archive", "none"
ALTERED = "altered"
_TIME = pa.timestamp("us", tz="UTC")


class SegmentUnreadable(Exception):
    """`fault`: missing_file, truncated, altered, unreadable."""

    def __init__(self, fault: str, detail: str) -> None:
        super().__init__(fault, detail)
        self.fault = fault
        self.detail = detail


class SegmentFile:
    """One segment's rows. `altered`: the bytes are not those that the manifest names, though they
    can be read.
    """

    def __init__(self, segment: dict[str, Any], inputs: str, archive_url: str) -> None:
        """`segment`: id, source, file, file_bytes, file_sha256 of `tables.SEGMENTS`. Reads the
        whole file. Raises Unreadable.
        """
        if segment["source"] == ARCHIVE:
            data = _archived(segment, archive_url)
            self.altered = hashlib.sha256(data).hexdigest() != segment["file_sha256"]
        else:
            data = _fetched(f"{inputs}/{EVENTS_FOLDER}/{segment['id']}.parquet")
            self.altered = False
        try:
            self._file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise SegmentUnreadable(
                ALTERED if self.altered else "unreadable", str(error)
            ) from error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Of `tables.EVENTS`, in the order of the file. Raises Unreadable."""
        try:
            for number in range(self._file.num_row_groups):
                yield from _as_events(self._file, number)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise SegmentUnreadable(
                ALTERED if self.altered else "unreadable", str(error)
            ) from error


def _archived(segment: dict[str, Any], archive_url: str) -> bytes:
    if segment["file"] is None:
        raise SegmentUnreadable("missing_file", "The archive does not say which file it is.")
    data = _fetched(f"{archive_url.rstrip('/')}/{segment['file']}")
    if len(data) < segment["file_bytes"]:
        raise SegmentUnreadable(
            "truncated", f"{len(data):,} of {segment['file_bytes']:,} bytes are left."
        )
    return data


def _fetched(url: str) -> bytes:
    """Raises Unreadable; what a filesystem raises that is away is not of the file, and goes on."""
    filesystem, path = fsspec.core.url_to_fs(url)
    try:
        found: bytes = filesystem.cat_file(path)
    except FileNotFoundError as error:
        raise SegmentUnreadable(
            "missing_file", f"{path.rpartition('/')[2]} is not there."
        ) from error
    return found


def _as_events(file: pq.ParquetFile, number: int) -> Iterator[pa.RecordBatch]:
    """A row group; the archive has times and unsigned masks, an export has integers."""
    there = set(file.schema_arrow.names)
    time = "appended_at_us" if "appended_at_us" in there else "appended_at"
    table = file.read_row_group(number, columns=["sequence", time, "mask", "payload"])
    for batch in table.to_batches():
        times, mask = batch.column(time), batch.column("mask")
        if pa.types.is_timestamp(times.type):
            times = pc.cast(times, _TIME).view(pa.int64())
        if mask.type != pa.int64():
            mask = mask.view(pa.int64())
        columns = [batch.column("sequence"), times, mask, batch.column("payload")]
        yield pa.RecordBatch.from_arrays(columns, schema=EVENTS)


def read_rows(
    folder: str, name: str, schema: pa.Schema, chosen: ds.Expression
) -> list[dict[str, Any]]:
    """The chosen rows of a table below a folder. Raises OSError."""
    table = ds.dataset(f"{folder}/{name}", schema=schema, format="parquet").to_table(filter=chosen)
    found: list[dict[str, Any]] = table.to_pylist()
    return found
