"""A folder of any filesystem that fsspec knows, where a file is there whole or not at all.
Plain module.

What is written gets a temporary name first. In a local folder a published file and its name are on
the disk before `publish` returns.
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
from eventhub.eventlog.archive.errors import ArchiveUnavailable
from eventhub.eventlog.archive.layout import UNFINISHED
from eventhub.eventlog.retention import disk

_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")


class ArchiveFolder:
    """The archive's root. Paths are relative to it, with `/`. May be used by several threads.

    Raises FileNotFoundError for what is not there, ArchiveUnavailable for what else goes wrong.
    """

    def __init__(self, url: str, unfinished: str = UNFINISHED) -> None:
        """`url` as fsspec has it: a path, file:///…, memory://…, s3://… (with s3fs). `unfinished`:
        the folder of what is being written, by one writer at a time.
        """
        try:
            self._files, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise ArchiveUnavailable(
                f"EVENTHUB_ARCHIVE_URL names no usable filesystem: {_said(error)}"
            ) from error
        except OSError as error:  # of filesystems that connect at once
            raise ArchiveUnavailable(f"The archive does not answer: {_said(error)}") from error
        self._local = isinstance(self._files, LocalFileSystem)
        self._unfinished = unfinished
        self.shown = without_credentials(url)

    @contextmanager
    def create(self, name: str) -> Iterator[tuple[str, IO[bytes]]]:
        """A new temporary file to write, and its path. It is removed when the block fails."""
        path = f"{self._unfinished}/{secrets.token_hex(8)}-{name}"
        self._require_room()
        with _explained(path):
            self._files.makedirs(self._at(self._unfinished), exist_ok=True)
            file = self._files.open(self._at(path), "wb")
        try:
            yield path, file
            with _explained(path):
                file.close()  # what is far away is there from now on
        except BaseException:
            with suppress(Exception):
                file.close()
                self.remove(path)
            raise

    def remove_unfinished(self) -> None:
        """What writers left that were killed; one that only slept fails at its rename."""
        for path in self.names(self._unfinished):
            self.remove(path)

    def _require_room(self) -> None:
        """An archive beside the hub's data does not take the room that the hub lives on."""
        root = Path(self._root)
        if self._local and root.is_dir() and disk.look(root).state != "ok":
            raise ArchiveUnavailable(
                f"The disk of {root} is low on space: nothing more is archived until there is room."
            )

    def publish(self, temporary: str, path: str) -> None:
        """Give a finished file its name, in place of what had it."""
        with _explained(path):
            if self._local:
                _rename(Path(self._at(temporary)), Path(self._at(path)), Path(self._root))
            else:
                self._files.makedirs(self._at(path.rpartition("/")[0]), exist_ok=True)
                self._files.mv(self._at(temporary), self._at(path))

    def write(self, path: str, content: bytes) -> None:
        """A small file, whole."""
        with self.create(path.rpartition("/")[2]) as (temporary, file):
            file.write(content)
        self.publish(temporary, path)

    def open(self, path: str) -> IO[bytes]:
        """To read and seek."""
        with _explained(path):
            file: IO[bytes] = self._files.open(self._at(path), "rb")
            return file

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """So many bytes from an offset on, or all."""
        with _explained(path), self.open(path) as file:
            file.seek(offset)
            return file.read(size)

    def size(self, path: str) -> int:
        """In bytes."""
        with _explained(path):
            return int(self._files.size(self._at(path)))

    def names(self, folder: str) -> list[str]:
        """The paths of the files in a folder, sorted; none if there is no such folder."""
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
        """As if it had never been there; no error if it is not."""
        with _explained(path):
            try:
                self._files.rm_file(self._at(path))
            except FileNotFoundError:
                return

    def there(self) -> bool:
        """True if the root can be seen; else what is missing may be there again soon."""
        with _explained(self._root):
            return bool(self._files.exists(self._root))

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"


def _said(error: Exception) -> str:
    return without_credentials(str(error))


def without_credentials(text: str) -> str:
    """Of URLs in it."""
    return _CREDENTIALS.sub(r"\1", text)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Each filesystem has errors of its own."""
    try:
        yield
    except (FileNotFoundError, EventHubError):
        raise
    except Exception as error:
        told = f"The archive failed at {path}: {_said(error)}"
        raise ArchiveUnavailable(told, path=path) from error


def _rename(source: Path, target: Path, root: Path) -> None:
    """With the file, its name and the names of new folders on the disk."""
    _to_disk(source)
    made = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    for folder in {target.parent, *(folder.parent for folder in made)}:
        if folder.is_relative_to(root.parent):
            _to_disk(folder)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
