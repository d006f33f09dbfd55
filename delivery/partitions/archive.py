"""The partition archive: rows of retired partitions, one Parquet file and one manifest for each.
SQL module.

_deliveries/deliveries_p7-<16 hex>.parquet  all columns; the digits are of the content
_deliveries/deliveries_p7-<16 hex>.json     the manifest, written last
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from eventhub.base import limits
from eventhub.base.compatibility import from_known_fields
from eventhub.eventlog.archive import manifest
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.hashing_file import HashingFile
from eventhub.eventlog.archive.layout import UNFINISHED
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from eventhub.postgresql.arrow import ArrowSnapshot

if TYPE_CHECKING:  # loaded by the first use: a fifth of a start, and most processes have none
    import pyarrow as pa

_UNFINISHED = f"{UNFINISHED}/partitions"  # others may archive segments meanwhile
# what columns were called before 0.1: what was archived then is read as what is archived now
_OLD_NAMES = {
    "group_id": "partition_id",
    "shape": "version_ids",
    "spared": "uncounted_attempts",
    "asked_s": "retry_after_s",
    "gap_why": "gap_reason",
}
_OLD_NAMES_OF = {
    "attempts": {"at": "attempted_at"},
    "listens": {  # called so before 0.1
        "at": "started_at",
        "seen_at": "updated_at",
        "why": "end_reason",
        "door": "transport",
        "wish": "request_digest",
        "told_segment": "delivered_segment",
        "told_sequence": "delivered_sequence",
        "told": "delivered_events",
    },
}


class PartitionManifest(NamedTuple):
    """The manifest of an archived partition."""

    table: str  # deliveries, attempts, listeners
    partition: str
    rows: int
    file: str  # name, in the manifest's folder
    file_bytes: int
    file_sha256: str
    schema_version: int = manifest.SCHEMA_VERSION


class ArchivedPartition(NamedTuple):
    """The path of the manifest, and the number of rows archived."""

    manifest: str
    rows: int


class PartitionArchive:
    """The archive of partitions. May be used by several threads."""

    def __init__(self, archive_url: str, database_url: str) -> None:
        """Open nothing yet. Raises ArchiveUnavailable for a URL that names no file system."""
        self.folder = ArchiveFolder(archive_url, _UNFINISHED)
        self._database_url = database_url

    def is_writable(self) -> bool:
        """Return True if a file can be written now."""
        with suppress(ArchiveUnavailable):
            with self.folder.create("probe") as (path, _):
                pass
            self.folder.remove(path)
            return True
        return False

    def write(self, table: str, partition: str, query: str) -> ArchivedPartition:
        """Write the rows of a partition that is no longer written to, as the query returns them.
        Repeating it writes the same file.

        Raises ArchiveUnavailable, DatabaseUnavailable.
        """
        self.folder.remove_unfinished()
        with ArrowSnapshot(
            self._database_url,
            name=f"archive {partition}",
            statement_s_max=limits.PARTITION_ARCHIVE_S_MAX,
        ) as rows:
            batches = rows.batches(query)
            with self.folder.create(f"{partition}.parquet") as (temporary, file):
                sink = HashingFile(file)
                count = _write(sink, batches)
        stem = f"_{table}/{partition}-{sink.sha256[:16]}"
        self.folder.publish(temporary, f"{stem}.parquet")
        name = f"{stem}.parquet".rpartition("/")[2]
        stored_as = PartitionManifest(table, partition, count, name, sink.size, sink.sha256)
        self.folder.write(f"{stem}.json", manifest.sealed(stored_as._asdict()))
        return ArchivedPartition(f"{stem}.json", count)


def archived_rows(folder: ArchiveFolder, path: str) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of a partition by the path of its manifest, after all its bytes were checked,
    with the present names of columns.

    Raises ArchiveDamaged, ArchiveUnavailable.
    """
    import pyarrow.parquet as pq

    try:
        stored_as = from_known_fields(PartitionManifest, manifest.unsealed(folder.read(path), path))
        with folder.open(f"{path.rpartition('/')[0]}/{stored_as.file}") as file:
            if _digest(file) != stored_as.file_sha256:
                raise ArchiveDamaged(f"{stored_as.file} is altered: its digest differs.", path=path)
            file.seek(0)
            names = _OLD_NAMES | _OLD_NAMES_OF.get(stored_as.table, {})
            for batch in pq.ParquetFile(file).iter_batches():
                yield _renamed_state(
                    batch.rename_columns([names.get(name, name) for name in batch.schema.names])
                )
    except (FileNotFoundError, TypeError) as error:
        if not folder.exists():
            raise ArchiveUnavailable(f"The archive does not exist: {folder.display_url}") from error
        raise ArchiveDamaged(f"What {path} stands for is missing: {error}", path=path) from error


def _renamed_state(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Replace the state that was called `dead` before 0.1."""
    import pyarrow.compute as pc

    if "state" not in batch.schema.names:
        return batch
    states = batch["state"]
    new = pc.if_else(pc.equal(states, "dead"), "dead_lettered", states)
    return batch.set_column(batch.schema.get_field_index("state"), "state", new)


def _write(sink: HashingFile, batches: "Iterator[pa.RecordBatch]") -> int:
    """Write the batches and return the number of rows. There is at least one batch."""
    import pyarrow.parquet as pq

    first = next(batches)
    with pq.ParquetWriter(
        sink, first.schema, compression="zstd", compression_level=1, write_page_checksum=True
    ) as writer:
        writer.write_batch(first)
        count = int(first.num_rows)
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(limits.ARCHIVE_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
