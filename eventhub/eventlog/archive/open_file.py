"""One archived file that is open for reading. Plain module.

Reads are verified: the size and the footer against the manifest, each page by its checksum, each
row group by its sequences.
"""

import hashlib
import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.manifest import SegmentManifest, load
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from eventhub.eventlog.stored import ArchivedSegment, StoredEvent

if TYPE_CHECKING:  # the first read loads it: a fifth of a start, and most processes never read
    import pyarrow as pa

_READ = ["sequence", "appended_at", "mask", "payload"]


class OpenFile:
    """A segment's file, opened by the first read, and again after `close`.

    One user at a time, holding `lock`. Raises ArchiveDamaged, ArchiveUnavailable.
    """

    def __init__(self, folder: ArchiveFolder, segment: ArchivedSegment) -> None:
        self.lock = threading.Lock()
        self.cached_bytes = 0
        self._folder = folder
        self._segment = segment
        self._path = segment.path
        self._file: IO[bytes] | None = None
        self._parquet: Any = None
        self._ends: list[int] = []  # the last sequence of each row group
        self._cached: tuple[int, pa.Table] | None = None  # the row group read last

    def rows_from(self, sequence: int) -> "pa.Table":
        """Return the rows of one row group from a sequence on, with four columns."""
        if self._file is None:
            self._open()
        at = bisect_left(self._ends, sequence)
        if self._cached is None or self._cached[0] != at:
            self._cached = (at, self._group(at))
            self.cached_bytes = self._cached[1].nbytes
        table = self._cached[1]
        return table.slice(sequence - (self._ends[at] - table.num_rows + 1))

    def events_from(self, sequence: int, count: int) -> list[StoredEvent]:
        """Return events of one row group from a sequence on, at most `count`."""
        import pyarrow as pa

        rows = self.rows_from(sequence).slice(0, count)
        columns = (
            rows.column("sequence").to_pylist(),
            rows.column("mask").to_pylist(),
            rows.column("appended_at").cast(pa.int64()).to_pylist(),
            rows.column("payload").to_pylist(),
        )
        return [StoredEvent(self._segment.uuid, *row) for row in zip(*columns, strict=True)]

    def check(self) -> None:
        """Check the manifest, the size and the footer; pages are checked when they are read."""
        try:
            self._open()
        finally:
            self.close()

    def close(self) -> None:
        self._cached, self.cached_bytes, self._parquet = None, 0, None
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _group(self, at: int) -> "pa.Table":
        with self._explained(f"row group {at}"):
            table = self._parquet.read_row_group(at, columns=_READ, use_threads=False)
        begins = self._ends[at - 1] + 1 if at else self._segment.first
        if table.column("sequence").to_pylist() != list(range(begins, self._ends[at] + 1)):
            raise self._damaged(f"row group {at} has other sequences")
        return table

    def _open(self) -> None:
        import pyarrow.parquet as pq

        manifest = load_manifest(self._folder, self._segment)
        self._path = file_of(self._segment, manifest)
        with self._explained("open"):
            self._file = self._folder.open(self._path)
        with self._explained("footer"):
            self._parquet = pq.ParquetFile(self._footed(manifest), page_checksum_verification=True)
            meta = self._parquet.metadata
            found = [meta.row_group(at).column(0).statistics for at in range(meta.num_row_groups)]
        self._ends = [group.max for group in found]
        begins = [group.min for group in found]
        if [*begins, self._segment.last + 1] != [self._segment.first, *(e + 1 for e in self._ends)]:
            raise self._damaged("its row groups do not follow each other")

    def _footed(self, manifest: SegmentManifest) -> IO[bytes]:
        """Return the open file after checking its size and footer against the manifest."""
        assert self._file is not None  # noqa: S101  (for the type)
        size = self._file.seek(0, 2)
        if size != manifest.file_bytes:
            raise self._damaged(f"{size} bytes instead of {manifest.file_bytes}")
        self._file.seek(size - manifest.footer_bytes)
        if (
            hashlib.sha256(self._file.read(manifest.footer_bytes)).hexdigest()
            != manifest.footer_sha256
        ):
            raise self._damaged("its footer is altered")
        self._file.seek(0)
        return self._file

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Convert errors of the file to ArchiveDamaged, unless the filesystem is unavailable."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, EOFError) as error:
            _raise_if_away(self._folder, self._path)
            raise self._damaged(f"{what}: {error}") from error

    def _damaged(self, what: str) -> ArchiveDamaged:
        segment = self._segment.uuid
        message = f"The archived file {self._path} of segment {segment} is damaged: {what}."
        return ArchiveDamaged(message, path=self._path, segment=segment)


def load_manifest(folder: ArchiveFolder, segment: ArchivedSegment) -> SegmentManifest:
    """Return the manifest of a segment. Raises ArchiveDamaged, ArchiveUnavailable."""
    try:
        manifest = load(folder.read(segment.path), segment.path)
    except FileNotFoundError as error:
        _raise_if_away(folder, segment.path)
        raise ArchiveDamaged(f"{segment.path} is missing.", path=segment.path) from error
    if (manifest.segment, *manifest.range) != (segment.uuid, segment.first, segment.last):
        raise ArchiveDamaged(f"{segment.path} is of another segment.", path=segment.path)
    return manifest


def file_of(segment: ArchivedSegment, manifest: SegmentManifest) -> str:
    """Return the path of the Parquet file, next to the manifest."""
    return f"{segment.path.rpartition('/')[0]}/{manifest.file}"


def _raise_if_away(folder: ArchiveFolder, path: str) -> None:
    if not folder.exists():
        raise ArchiveUnavailable(f"The archive does not exist: {folder.display_url}", path=path)
