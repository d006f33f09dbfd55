"""Verifies archived segments against their manifests and the database, and reports each problem. It
reads every byte, in constant memory. Plain module.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from eventhub.base import limits
from eventhub.eventlog.archive.catalog import ArchivedRow
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.manifest import SegmentManifest, load
from eventhub.eventlog.archive.write import PayloadSum
from eventhub.eventlog.errors import ArchiveDamaged


class Problem(NamedTuple):
    """One problem. `kind`: missing_manifest, bad_manifest, missing_file, truncated, altered,
    unreadable, wrong_segment, wrong_range, wrong_count, wrong_bytes, wrong_payloads,
    not_continuous.
    """

    kind: str
    path: str
    detail: str


class Examined(NamedTuple):
    """The result for a segment's files alone. `manifest` is None if none can be read."""

    manifest: SegmentManifest | None
    problems: list[Problem]


class SegmentVerdict(NamedTuple):
    row: ArchivedRow
    bytes: int  # read
    problems: list[Problem]


def verify(folder: ArchiveFolder, rows: Sequence[ArchivedRow]) -> Iterator[SegmentVerdict]:
    """Yield one verdict for each segment. Raises ArchiveUnavailable."""
    for row in rows:
        found = examine(folder, row.path)
        problems = [*found.problems, *_against_row(row, found.manifest)]
        yield SegmentVerdict(row, found.manifest.file_bytes if found.manifest else 0, problems)


def examine(folder: ArchiveFolder, path: str, tick: Callable[[], None] = lambda: None) -> Examined:
    """Examine the manifest at a path and the file that it names; `tick` is called now and then.

    Raises ArchiveUnavailable.
    """
    try:
        manifest = load(folder.read(path), path)
    except FileNotFoundError:
        return Examined(None, [Problem("missing_manifest", path, "the file does not exist")])
    except ArchiveDamaged as error:
        return Examined(None, [Problem("bad_manifest", path, error.message)])
    file = f"{path.rpartition('/')[0]}/{manifest.file}"
    try:
        size = folder.size(file)
        if size < manifest.file_bytes:
            detail = f"{size} bytes of {manifest.file_bytes}"
            return Examined(manifest, [Problem("truncated", file, detail)])
        with folder.open(file) as opened:
            return Examined(manifest, list(_file_problems(opened, file, manifest, tick)))
    except FileNotFoundError:
        return Examined(manifest, [Problem("missing_file", file, "the file does not exist")])


def _file_problems(
    opened: IO[bytes], path: str, manifest: SegmentManifest, tick: Callable[[], None]
) -> Iterator[Problem]:
    digest = hashlib.sha256()
    while chunk := opened.read(limits.ARCHIVE_CHUNK_BYTES):
        digest.update(chunk)
        tick()
    if digest.hexdigest() != manifest.file_sha256:
        yield Problem("altered", path, "its digest differs from the manifest's")
        return
    try:
        yield from _content_problems(opened, path, manifest, tick)
    except (pa.ArrowException, OSError, KeyError) as error:
        yield Problem("unreadable", path, str(error))


def _content_problems(
    opened: IO[bytes], path: str, manifest: SegmentManifest, tick: Callable[[], None]
) -> Iterator[Problem]:
    payloads = PayloadSum()
    expected = manifest.first
    columns = ["sequence", "payload"]
    opened.seek(0)
    with pq.ParquetFile(opened, page_checksum_verification=True) as file:
        for number in range(file.num_row_groups):
            tick()
            group = file.read_row_group(number, columns=columns, use_threads=False)
            sequences = group.column("sequence").to_pylist()
            if sequences != list(range(expected, expected + len(sequences))):
                yield Problem("wrong_range", path, f"sequence {expected} is missing or misplaced")
                return
            expected += len(sequences)
            payloads.add(group.column("payload").to_pylist())
    if payloads.count != manifest.events:
        yield Problem("wrong_count", path, f"{payloads.count} events of {manifest.events}")
    elif (payloads.bytes, payloads.hex) != (manifest.payload_bytes, manifest.payload_sha256):
        yield Problem("wrong_payloads", path, "the stored bytes differ from the manifest's")
    if expected - 1 != manifest.last:
        yield Problem("wrong_range", path, f"ends at {expected - 1}, not at {manifest.last}")


def _against_row(row: ArchivedRow, manifest: SegmentManifest | None) -> Iterator[Problem]:
    """Yield the differences between the manifest and the database."""
    if row.before is not None and row.first != row.before + 1:
        detail = f"begins at {row.first}, the segment before ends at {row.before}"
        yield Problem("not_continuous", row.path, detail)
    if manifest is None:
        return
    if (manifest.segment, manifest.zone, manifest.stream) != (row.uuid, row.zone_id, row.stream):
        yield Problem("wrong_segment", row.path, f"is of segment {manifest.segment}")
    if manifest.range != (row.first, row.last):
        detail = f"{manifest.first} to {manifest.last} instead of {row.first} to {row.last}"
        yield Problem("wrong_range", row.path, detail)
    if manifest.events != row.last - row.first + 1:
        yield Problem("wrong_count", row.path, f"{manifest.events} events")
    if manifest.payload_bytes != row.bytes:
        yield Problem("wrong_bytes", row.path, f"{manifest.payload_bytes} instead of {row.bytes}")
