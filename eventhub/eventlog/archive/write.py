"""Writes one segment: the Parquet file under a temporary name, then its rename, then the manifest.
Plain module.

If the process is killed at any moment, visible files are complete, and a segment without a manifest
is not archived.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from eventhub.base import limits
from eventhub.eventlog.archive import columns, layout
from eventhub.eventlog.archive.catalog import DueSegment
from eventhub.eventlog.archive.columns import NameCount, Names
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.hashing_file import HashingFile
from eventhub.eventlog.archive.manifest import (
    SCHEMA_VERSION,
    ProducerHighest,
    SegmentManifest,
    dump,
)
from eventhub.eventlog.errors import SegmentUnreadable

Pages = Callable[[], Iterable[pa.Table]]  # a segment's rows, from the first on; read twice
_TAIL_BYTES = 8  # the footer's length and Parquet's mark
_UNLIKE = ("payload", "attributes", "sequence", "correlation", "cause", "producer_number")


class SegmentContent(NamedTuple):
    """The totals of a segment's events."""

    events: int
    appended_min_us: int | None
    appended_max_us: int | None
    payload_bytes: int
    payload_sha256: str
    producers: list[ProducerHighest]
    producers_complete: bool


def stem_of(segment: DueSegment) -> str:
    return layout.stem(segment.zone_id, segment.stream, segment.uuid, segment.first)


def write_segment(folder: ArchiveFolder, segment: DueSegment, pages: Pages) -> SegmentManifest:
    """Write the file, then the manifest, and return the manifest.

    Raises the errors of reading the pages, SegmentUnreadable, ArchiveUnavailable.
    """
    stem = stem_of(segment)
    counted = NameCount()
    for page in pages():
        counted.add(page.column("payload").to_pylist())
    names = counted.chosen()
    with folder.create(f"{segment.uuid}.parquet") as (temporary, file):
        sink = HashingFile(file)
        content = _write_file(sink, pages(), names, segment)
        _check(content, segment)
    footer = _footer(folder, temporary, sink.size)
    path = layout.file_path(stem, sink.sha256)
    folder.publish(temporary, path)
    manifest = SegmentManifest(
        segment=segment.uuid,
        zone=segment.zone_id,
        stream=segment.stream,
        stream_id=segment.stream_id,
        first=segment.first,
        last=segment.last,
        **content._asdict(),
        file=path.rpartition("/")[2],
        file_bytes=sink.size,
        file_sha256=sink.sha256,
        footer_sha256=hashlib.sha256(footer).hexdigest(),
        footer_bytes=len(footer),
        attributes=names,
    )
    folder.write(layout.manifest_path(stem), dump(manifest))
    return manifest


def remove_leftovers(folder: ArchiveFolder, segment: DueSegment, manifest: SegmentManifest) -> None:
    """Remove other files of the segment, from attempts that ended before their manifest was
    written.
    """
    stem = stem_of(segment)
    for path in folder.names(stem.rpartition("/")[0]):
        ours = path.startswith(f"{stem}-") and path.endswith(".parquet")
        if ours and not path.endswith(f"/{manifest.file}"):
            folder.remove(path)


class PayloadSum:
    """The checksum over stored bytes in order: SHA-256 of each after its length in 4 bytes."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.bytes = 0
        self.count = 0

    def add(self, payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            self._sha256.update(len(payload).to_bytes(4, "big") + payload)
            self.bytes += len(payload)
            self.count += 1

    @property
    def hex(self) -> str:
        return self._sha256.hexdigest()


class _Summary:
    """Computes the totals of a segment's pages."""

    def __init__(self) -> None:
        self._payloads = PayloadSum()
        self._times: list[int] = []  # the earliest and the latest
        self._highest: dict[tuple[str, int], int] = {}
        self._complete = True

    def add(self, page: pa.Table, producers: Iterable[columns.EventProducer]) -> None:
        self._payloads.add(page.column("payload").to_pylist())
        times = [*self._times, *page.column("appended_at").cast(pa.int64()).to_pylist()]
        self._times = [min(times), max(times)]
        highest = self._highest
        for client, incarnation, number in producers:
            key = (client, incarnation)
            if key not in highest and len(highest) >= limits.ARCHIVE_PRODUCERS_MAX:
                self._complete = False
            else:
                highest[key] = max(number, highest.get(key, number))

    def content(self) -> SegmentContent:
        payloads = self._payloads
        earliest, latest = self._times or (None, None)
        marks = [ProducerHighest(*key, number) for key, number in sorted(self._highest.items())]
        sums = (payloads.bytes, payloads.hex)
        return SegmentContent(payloads.count, earliest, latest, *sums, marks, self._complete)


def _write_file(
    sink: HashingFile, pages: Iterable[pa.Table], names: Names, segment: DueSegment
) -> SegmentContent:
    schema = columns.schema(names)
    summary = _Summary()
    with pq.ParquetWriter(sink, schema, **_options(schema)) as writer:
        for page in pages:
            decoded = columns.decoded(page, names)
            writer.write_batch(decoded.batch)  # a row group
            summary.add(page, decoded.producers)
        writer.add_key_value_metadata(_described(segment))
    return summary.content()


def _options(schema: pa.Schema) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": list(_repetitive(schema)),
        "write_page_checksum": True,
        "store_schema": False,
    }


def _repetitive(schema: pa.Schema) -> Iterator[str]:
    """Yield the columns, by path, whose values recur."""
    for field in schema:
        if pa.types.is_struct(field.type):
            yield from (f"{field.name}.{inner.name}" for inner in field.type)
        elif field.name not in _UNLIKE:
            yield field.name


def _described(segment: DueSegment) -> dict[str, str]:
    return {
        "eventhub.schema_version": str(SCHEMA_VERSION),
        "eventhub.segment": segment.uuid,
        "eventhub.zone": "" if segment.zone_id is None else str(segment.zone_id),
        "eventhub.stream": segment.stream,
    }


def _check(content: SegmentContent, segment: DueSegment) -> None:
    """Check that the rows are those that were sealed; no page has a hole."""
    found = (content.events, content.payload_bytes)
    sealed = (segment.last - segment.first + 1, segment.bytes)
    if found != sealed:
        raise SegmentUnreadable(
            f"Segment {segment.uuid} has {found[0]} events with {found[1]} bytes, but was sealed"
            f" with {sealed[0]} events and {sealed[1]} bytes.",
            segment=segment.uuid,
        )


def _footer(folder: ArchiveFolder, path: str, size: int) -> bytes:
    """Return the footer of a Parquet file, at its end."""
    length = int.from_bytes(folder.read(path, size - _TAIL_BYTES, 4), "little")
    return folder.read(path, size - _TAIL_BYTES - length)
