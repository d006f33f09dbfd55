"""The only reader of the archive for the log: events after a sequence, one event, or a whole file.
Plain module.
"""

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, NamedTuple

from eventhub.base import limits
from eventhub.base.errors import UnknownEvent
from eventhub.base.logs import get_logger
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.manifest import SegmentManifest
from eventhub.eventlog.archive.open_file import OpenFile, file_of, load_manifest
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from eventhub.eventlog.stored import ArchivedSegment, StoredEvent

log = get_logger(__name__)

PARQUET_TYPE = "application/vnd.apache.parquet"


class RawFile(NamedTuple):
    """A segment's Parquet file: `length` bytes in `chunks`. The last chunk is yielded only if the
    digest of all is right. Close the iterator with `aclose` if it is not read to its end.
    """

    length: int
    chunks: AsyncGenerator[bytes, None]


class Archive:
    """An archive for reading. File descriptors and memory are bounded. Thread-safe.

    Raises ArchiveDamaged for missing, truncated or altered files, and ArchiveUnavailable if the
    filesystem is unavailable. Their messages may be shown to any reader of the stream; paths and
    reasons are logged only.
    """

    def __init__(self, url: str) -> None:
        """Store the URL, as in EVENTHUB_ARCHIVE_URL, without any access to the files."""
        self._folder = ArchiveFolder(url)
        self._lock = threading.Lock()
        self._files: OrderedDict[str, OpenFile] = OrderedDict()  # by path, the least used first

    def read(
        self, segment: ArchivedSegment, after: int, events_max: int, bytes_max: int
    ) -> list[StoredEvent]:
        """Return the segment's events after a sequence, in order: at most `events_max`, ending with
        the event that exceeds `bytes_max` stored bytes. Empty only at the end of the segment.
        """
        found: list[StoredEvent] = []
        sequence = max(after + 1, segment.first)
        while sequence <= segment.last and len(found) < events_max and bytes_max > 0:
            for stored in self._events(segment, sequence, events_max):
                if len(found) == events_max or bytes_max <= 0:
                    break
                found.append(stored)
                bytes_max -= len(stored.payload)
            sequence = found[-1].sequence + 1
        return found

    def find(self, segment: ArchivedSegment, sequence: int) -> StoredEvent:
        """Return one event. Raises UnknownEvent if it is not in this segment."""
        if not segment.first <= sequence <= segment.last:
            raise UnknownEvent(sequence=sequence)
        [found] = self.read(segment, sequence - 1, 1, 1)
        return found

    async def raw(self, segment: ArchivedSegment) -> RawFile:
        """Return the whole file, read in constant memory."""
        manifest = await asyncio.to_thread(self._whole, segment)
        return RawFile(manifest.file_bytes, self._chunks(segment, manifest))

    def close(self) -> None:
        """Close all files. They are opened again when they are read."""
        with self._lock:
            files = list(self._files.values())
            self._files.clear()
        _close(files)

    def _events(self, segment: ArchivedSegment, sequence: int, count: int) -> list[StoredEvent]:
        with self._lock:
            file = self._files.setdefault(segment.path, OpenFile(self._folder, segment))
            self._files.move_to_end(segment.path)
        with file.lock:
            try:
                with _discreet(segment):
                    events = file.events_from(sequence, count)
            except BaseException:
                self._forget(segment.path, file)  # so that a repaired file is opened again
                file.close()
                raise
            if self._files.get(segment.path) is not file:  # another thread has evicted it
                file.close()
        self._trim()
        return events

    def _forget(self, path: str, file: OpenFile) -> None:
        with self._lock:
            if self._files.get(path) is file:
                del self._files[path]

    def _trim(self) -> None:
        """Close the least recently used files beyond the limits, but keep at least one."""
        closing: list[OpenFile] = []
        with self._lock:
            cached = sum(file.cached_bytes for file in self._files.values())
            while len(self._files) > 1 and (
                len(self._files) > limits.ARCHIVE_FILES_OPEN_MAX
                or cached > limits.ARCHIVE_CACHED_BYTES_MAX
            ):
                _, file = self._files.popitem(last=False)
                cached -= file.cached_bytes
                closing.append(file)
        _close(closing)

    def _whole(self, segment: ArchivedSegment) -> SegmentManifest:
        """Return the manifest of a file after checking its size."""
        with _discreet(segment):
            manifest = load_manifest(self._folder, segment)
            path = file_of(segment, manifest)
            try:
                size = self._folder.size(path)
            except FileNotFoundError as error:
                raise ArchiveDamaged(f"{path} is missing.", path=path) from error
            if size != manifest.file_bytes:
                raise ArchiveDamaged(f"{path} has {size} bytes instead of {manifest.file_bytes}.")
            return manifest

    async def _chunks(
        self, segment: ArchivedSegment, manifest: SegmentManifest
    ) -> AsyncGenerator[bytes, None]:
        """Yield the file. The last chunk is held back until the digest of all is verified."""
        path, left, digest = file_of(segment, manifest), manifest.file_bytes, hashlib.sha256()
        file = await asyncio.to_thread(self._open, segment, path)

        def take() -> bytes:
            with _discreet(segment):
                chunk = _chunk(file, path, left)
                digest.update(chunk)
                if len(chunk) == left and digest.hexdigest() != manifest.file_sha256:
                    raise ArchiveDamaged(f"{path} is altered: its digest differs.", path=path)
                return chunk

        try:
            while left > 0:
                chunk = await asyncio.to_thread(take)
                left -= len(chunk)
                yield chunk
        finally:
            file.close()

    def _open(self, segment: ArchivedSegment, path: str) -> IO[bytes]:
        with _discreet(segment):
            try:
                return self._folder.open(path)
            except FileNotFoundError as error:
                raise ArchiveDamaged(f"{path} is missing.", path=path) from error


@cache
def archive_of(url: str) -> Archive | None:
    """Return the reader of this process for a URL; None for an empty URL."""
    return Archive(url) if url else None


@contextmanager
def _discreet(segment: ArchivedSegment) -> Iterator[None]:
    """Log the path and the reason of an error, and raise one that names only the segment."""
    try:
        yield
    except ArchiveDamaged as error:
        log.error("archive_damaged", segment=segment.uuid, path=segment.path, detail=error.message)
        raise ArchiveDamaged(
            f"The archived segment {segment.uuid} is damaged.",
            segment=segment.uuid,
        ) from error
    except ArchiveUnavailable as error:
        log.error("archive_unavailable", segment=segment.uuid, detail=error.message)
        raise ArchiveUnavailable(
            f"The archive with segment {segment.uuid} does not respond; try again shortly.",
            segment=segment.uuid,
        ) from error


def _chunk(file: IO[bytes], path: str, left: int) -> bytes:
    try:
        chunk = file.read(min(limits.ARCHIVE_CHUNK_BYTES, left))
    except OSError as error:
        raise ArchiveDamaged(f"{path} cannot be read: {error}.", path=path) from error
    if not chunk:
        raise ArchiveDamaged(f"{path} ends {left} bytes too early.", path=path)
    return chunk


def _close(files: list[OpenFile]) -> None:
    for file in files:
        with file.lock:
            file.close()
