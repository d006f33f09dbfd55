"""The table of segments: what the database knows, and what the manifests say. Plain module."""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa

from eventhub.base import limits
from eventhub.eventlog.archive import manifest
from eventhub.eventlog.archive.errors import ArchiveUnavailable
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.errors import ArchiveDamaged
from sparkjobs.segment_reader import ARCHIVE, EXPORT, NONE
from sparkjobs.tables import SEGMENTS

Row = dict[str, Any]
_OF_MANIFEST = (
    *("file", "file_bytes", "file_sha256", "payload_sha256"),
    *("appended_min_us", "appended_max_us", "fault"),
)


class TimeRange(NamedTuple):
    """Microseconds since 1970; None: no bound."""

    since_us: int | None
    until_us: int | None

    def misses(self, row: Row) -> bool:
        """True if the manifest says that no event of the segment is of the time."""
        first, last = row["appended_min_us"], row["appended_max_us"]
        if first is None:
            return False
        return (self.since_us is not None and last < self.since_us) or (
            self.until_us is not None and first > self.until_us
        )


def locate_events(
    batch: pa.RecordBatch, archive: ArchiveFolder | None, span: TimeRange
) -> pa.RecordBatch:
    """Rows of the statement `segments` with what `tables.SEGMENTS` has besides: where their events
    are, and what the manifests say. Raises ArchiveUnavailable.
    """
    rows = batch.select(["uuid", "first", "last", "tier", "archived", "asked", "manifest"])
    found = list(_found(rows.to_pylist(), archive, span))
    for name in ("source", *_OF_MANIFEST):
        values = pa.array([row[name] for row in found], SEGMENTS.field(name).type)
        batch = batch.append_column(name, values)
    return batch


def segments_to_export(batch: pa.RecordBatch) -> dict[int, list[int]]:
    """Of such rows: the segments whose events are to be exported, by group."""
    groups: dict[int, list[int]] = defaultdict(list)
    rows = batch.select(["id", "partition_id", "source"]).to_pylist()
    for row in rows:
        if row["source"] == EXPORT:
            groups[row["partition_id"]].append(row["id"])
    return groups


def require_live(batch: pa.RecordBatch) -> None:
    """No archive is known. Raises ArchiveUnavailable if events that are asked for are in one."""
    for row in batch.select(["asked", "tier"]).to_pylist():
        if row["asked"] and row["tier"] == "archived":
            raise ArchiveUnavailable(
                "Segments that are to be read are in an archive: set EVENTHUB_ARCHIVE_URL to it."
            )


def _found(rows: list[Row], archive: ArchiveFolder | None, span: TimeRange) -> Iterator[Row]:
    with ThreadPoolExecutor(limits.EXPORT_MANIFESTS_AT_ONCE) as pool:
        for row, known in zip(
            rows, pool.map(lambda row: _manifest(row, archive), rows), strict=True
        ):
            source = _source(row, archive)
            if source == ARCHIVE and known["fault"] is None and span.misses(known):
                source = NONE
            yield {**known, "source": source}


def _source(row: Row, archive: ArchiveFolder | None) -> str:
    if not row["asked"] or row["last"] < row["first"] or row["tier"] == "dropped":
        return NONE
    if row["archived"] and archive is not None:
        return ARCHIVE
    return EXPORT if row["tier"] == "live" else NONE


def _manifest(row: Row, archive: ArchiveFolder | None) -> Row:
    """What the manifest of an archived segment that is asked for says, or its fault."""
    known: Row = dict.fromkeys(_OF_MANIFEST)
    path = row["manifest"]
    if archive is None or path is None or row["tier"] == "dropped" or not row["asked"]:
        return known
    try:
        made = manifest.load(archive.read(path), path)
    except FileNotFoundError as error:
        if not archive.exists():
            raise ArchiveUnavailable(
                f"The archive does not exist: {archive.display_url}"
            ) from error
        return {**known, "fault": "missing_manifest"}
    except (ArchiveDamaged, TypeError):
        return {**known, "fault": "bad_manifest"}
    if (made.segment, *made.range) != (row["uuid"], row["first"], row["last"]):
        known["fault"] = "wrong_range"
    return {
        **known,
        "file": f"{path.rpartition('/')[0]}/{made.file}",
        "file_bytes": made.file_bytes,
        "file_sha256": made.file_sha256,
        "payload_sha256": made.payload_sha256,
        "appended_min_us": made.appended_min_us,
        "appended_max_us": made.appended_max_us,
    }
