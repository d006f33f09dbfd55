"""The export of the table of segments: rows of the database with the contents of the archive's
manifests. Plain module.
"""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa

from eventhub.base import limits
from eventhub.eventlog.archive import manifest
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from sparkjobs.segment_files import ARCHIVE, EXPORT, NONE
from sparkjobs.tables import SEGMENTS

Row = dict[str, Any]
_OF_MANIFEST = (
    *("file", "file_bytes", "file_sha256", "payload_sha256"),
    *("appended_min_us", "appended_max_us", "fault"),
)


class TimeRange(NamedTuple):
    """A time range, in microseconds since 1970; None: unbounded."""

    since_us: int | None
    until_us: int | None

    def misses(self, row: Row) -> bool:
        """Return whether, by its manifest, the segment has no event in the range."""
        first, last = row["appended_min_us"], row["appended_max_us"]
        if first is None:
            return False
        return (self.since_us is not None and last < self.since_us) or (
            self.until_us is not None and first > self.until_us
        )


def locate_events(
    batch: pa.RecordBatch, archive: ArchiveFolder | None, span: TimeRange
) -> pa.RecordBatch:
    """Add to rows of the statement `segments` the source of their events and the manifests' fields.
    Raises ArchiveUnavailable.
    """
    rows = batch.select(["uuid", "first", "last", "tier", "archived", "requested", "manifest"])
    located = list(_locate(rows.to_pylist(), archive, span))
    for name in ("source", *_OF_MANIFEST):
        values = pa.array([row[name] for row in located], SEGMENTS.field(name).type)
        batch = batch.append_column(name, values)
    return batch


def segments_to_export(batch: pa.RecordBatch) -> dict[int, list[int]]:
    """Return the segments whose events are exported, by partition id."""
    by_partition: dict[int, list[int]] = defaultdict(list)
    rows = batch.select(["id", "partition_id", "source"]).to_pylist()
    for row in rows:
        if row["source"] == EXPORT:
            by_partition[row["partition_id"]].append(row["id"])
    return by_partition


def require_live(batch: pa.RecordBatch) -> None:
    """Raise ArchiveUnavailable if requested events are archived, as no archive is configured."""
    for row in batch.select(["requested", "tier"]).to_pylist():
        if row["requested"] and row["tier"] == "archived":
            raise ArchiveUnavailable(
                "Requested segments are archived; set EVENTHUB_ARCHIVE_URL to their archive."
            )


def _locate(rows: list[Row], archive: ArchiveFolder | None, span: TimeRange) -> Iterator[Row]:
    with ThreadPoolExecutor(limits.EXPORT_MANIFESTS_AT_ONCE) as pool:
        for row, known in zip(
            rows, pool.map(lambda row: _manifest(row, archive), rows), strict=True
        ):
            source = _source(row, archive)
            if source == ARCHIVE and known["fault"] is None and span.misses(known):
                source = NONE
            yield {**known, "source": source}


def _source(row: Row, archive: ArchiveFolder | None) -> str:
    if not row["requested"] or row["last"] < row["first"] or row["tier"] == "dropped":
        return NONE
    if row["archived"] and archive is not None:
        return ARCHIVE
    return EXPORT if row["tier"] == "live" else NONE


def _manifest(row: Row, archive: ArchiveFolder | None) -> Row:
    """Return the fields of a requested, archived segment's manifest, or the manifest's fault."""
    known: Row = dict.fromkeys(_OF_MANIFEST)
    path = row["manifest"]
    if archive is None or path is None or row["tier"] == "dropped" or not row["requested"]:
        return known
    try:
        loaded = manifest.load(archive.read(path), path)
    except FileNotFoundError as error:
        if not archive.exists():
            raise ArchiveUnavailable(
                f"The archive does not exist: {archive.display_url}"
            ) from error
        return {**known, "fault": "missing_manifest"}
    except (ArchiveDamaged, TypeError):
        return {**known, "fault": "bad_manifest"}
    if (loaded.segment, *loaded.range) != (row["uuid"], row["first"], row["last"]):
        known["fault"] = "wrong_range"
    return {
        **known,
        "file": f"{path.rpartition('/')[0]}/{loaded.file}",
        "file_bytes": loaded.file_bytes,
        "file_sha256": loaded.file_sha256,
        "payload_sha256": loaded.payload_sha256,
        "appended_min_us": loaded.appended_min_us,
        "appended_max_us": loaded.appended_max_us,
    }
