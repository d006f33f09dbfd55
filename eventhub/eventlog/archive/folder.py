"""The archive's root folder on any filesystem that fsspec supports. A file appears completely or
not at all. Plain module.

Files are first written under a temporary name. In a local folder, a published file and its name are
on the disk before `publish` returns.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from eventhub.base.errors import EventHubError
from eventhub.eventlog.archive.layout import UNFINISHED
from eventhub.eventlog.errors import ArchiveUnavailable
from eventhub.eventlog.retention import disk

_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")


class ArchiveFolder:
    """The archive's root. Paths are relative to it, with `/`. Thread-safe.

    Raises FileNotFoundError for missing files, ArchiveUnavailable for other failures.
    """

    def __init__(self, url: str, unfinished: str = UNFINISHED) -> None:
        """Open the folder. `url`: as fsspec takes it: a path, file:///…, memory://…, s3://… (with
        s3fs). `unfinished`: the folder of temporary files, used by one writer at a time.
        """
        try:
            self._files, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise ArchiveUnavailable(
                f"EVENTHUB_ARCHIVE_URL names no usable filesystem: {_message(error)}"
            ) from error
        except OSError as error:  # of filesystems that connect at once
            raise ArchiveUnavailable(f"The archive does not respond: {_message(error)}") from error
        self._local = isinstance(self._files, LocalFileSystem)
        self._unfinished = unfinished
        self.display_url = without_credentials(url)

    @contextmanager
    def create(self, name: str) -> Iterator[tuple[str, IO[bytes]]]:
        """Create a temporary file for writing; yield its path and the file. It is removed if the
        block fails.
        """
        path = f"{self._unfinished}/{secrets.token_hex(8)}-{name}"
        self._require_space()
        with _explained(path):
            self._files.makedirs(self._at(self._unfinished), exist_ok=True)
            file = self._files.open(self._at(path), "wb")
        try:
            yield path, file
            with _explained(path):
                file.close()  # completes the upload on a remote filesystem
        except BaseException:
            with suppress(Exception):
                file.close()
                self.remove(path)
            raise

    def remove_unfinished(self) -> None:
        """Remove temporary files of killed writers. A writer that was only suspended fails at its
        rename.
        """
        for path in self.names(self._unfinished):
            self.remove(path)

    def _require_space(self) -> None:
        """Raise ArchiveUnavailable if a local disk is low on space: the archive must not take what
        the hub needs.
        """
        root = Path(self._root)
        if self._local and root.is_dir() and disk.measure(root).state != "ok":
            raise ArchiveUnavailable(
                f"The disk of {root} is low on space; archiving resumes when space is free."
            )

    def publish(self, temporary: str, path: str) -> None:
        """Give a finished file its name, replacing an existing file."""
        with _explained(path):
            if self._local:
                _rename(Path(self._at(temporary)), Path(self._at(path)), Path(self._root))
            else:
                self._files.makedirs(self._at(path.rpartition("/")[0]), exist_ok=True)
                self._files.mv(self._at(temporary), self._at(path))

    def write(self, path: str, content: bytes) -> None:
        """Write a small file completely."""
        with self.create(path.rpartition("/")[2]) as (temporary, file):
            file.write(content)
        self.publish(temporary, path)

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading and seeking."""
        with _explained(path):
            file: IO[bytes] = self._files.open(self._at(path), "rb")
            return file

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """Read `size` bytes from an offset on, or all."""
        with _explained(path), self.open(path) as file:
            file.seek(offset)
            return file.read(size)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        with _explained(path):
            return int(self._files.size(self._at(path)))

    def names(self, folder: str) -> list[str]:
        """Return the paths of the files in a folder, sorted; empty if there is no such folder."""
        with _explained(folder):
            try:
                found: list[dict[str, Any]] = self._files.ls(self._at(folder), detail=True)
            except FileNotFoundError:
                return []
        return sorted(
            f"{folder}/{entry['name'].rpartition('/')[2]}"
            for entry in found
            if entry["type"] == "file"
        )

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        with _explained(path):
            try:
                self._files.rm_file(self._at(path))
            except FileNotFoundError:
                return

    def exists(self) -> bool:
        """Return whether the root exists; if not, missing files may be back soon."""
        with _explained(self._root):
            return bool(self._files.exists(self._root))

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"


def _message(error: Exception) -> str:
    return without_credentials(str(error))


def without_credentials(text: str) -> str:
    """Return the text with the credentials removed from URLs."""
    return _CREDENTIALS.sub(r"\1", text)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Convert the errors of any filesystem to ArchiveUnavailable."""
    try:
        yield
    except (FileNotFoundError, EventHubError):
        raise
    except Exception as error:
        message = f"The archive failed at {path}: {_message(error)}"
        raise ArchiveUnavailable(message, path=path) from error


def _rename(source: Path, target: Path, root: Path) -> None:
    """Rename a file; write the file, its name and the names of new folders to the disk."""
    _to_disk(source)
    created = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    for folder in {target.parent, *(folder.parent for folder in created)}:
        if folder.is_relative_to(root.parent):
            _to_disk(folder)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
