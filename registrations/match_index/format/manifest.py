"""The manifest of a match index: the current epoch, its files, and what it was built from.
Plain module.

The manifest in the root is replaced by a rename, so a reader sees the old epoch or the new one.
Each epoch's folder has its own, which never changes.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.layout import VERSION
from registrations.match_index.format.names import hash_of

NAME = "manifest.json"


class ShardFile(NamedTuple):
    """A file of an epoch. `checksum`: XXH64 of its header, which has those of the sections."""

    file: str
    bytes: int
    checksum: int


class IndexManifest(NamedTuple):
    """The manifest of one epoch."""

    epoch: int
    parts: tuple[ShardFile, ...]
    entries: int
    ids: int
    built_through_sequence: int | None  # of `system`: later changes are not in it
    facts: dict[str, Any]  # the builder's

    @property
    def folder(self) -> str:
        return folder_of(self.epoch)

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


def folder_of(epoch: int) -> str:
    return f"epoch-{epoch:08}"


def write_manifest(folder: Path, manifest: IndexManifest, *, durable: bool) -> None:
    """Replace the manifest atomically."""
    fields = {"version": VERSION, **manifest._asdict()}
    fields["parts"] = [part._asdict() for part in manifest.parts]
    text = json.dumps(fields, indent=1, sort_keys=True)
    sealed = {"checksum": hash_of(text.encode()), "index": json.loads(text)}
    aside = folder / f"{NAME}.part"
    with aside.open("w") as file:
        file.write(json.dumps(sealed, indent=1, sort_keys=True) + "\n")
        file.flush()
        if durable:
            os.fsync(file.fileno())
    aside.replace(folder / NAME)
    if durable:
        sync_folder(folder)


def read_manifest(folder: Path) -> IndexManifest:
    """Read the manifest. Raises IndexAbsent, IndexDamaged."""
    try:
        sealed = json.loads((folder / NAME).read_bytes())
        fields, checksum = sealed["index"], sealed["checksum"]
        text = json.dumps(fields, indent=1, sort_keys=True)
        if hash_of(text.encode()) != checksum:
            raise IndexDamaged(f"The manifest in {folder} is altered.")
        if fields.pop("version") != VERSION:
            raise IndexDamaged(f"The manifest in {folder} does not have version {VERSION}.")
        parts = tuple(ShardFile(**part) for part in fields.pop("parts"))
        manifest = IndexManifest(parts=parts, **fields)
    except FileNotFoundError as error:
        raise IndexAbsent(f"There is no match index in {folder}; build one first.") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IndexDamaged(f"The manifest in {folder} cannot be read.") from error
    if not _is_typed(manifest):
        raise IndexDamaged(f"The manifest in {folder} has a field of the wrong type.")
    return manifest


def _is_typed(manifest: IndexManifest) -> bool:
    numbers = [manifest.epoch, manifest.entries, manifest.ids, manifest.built_through_sequence or 0]
    numbers += [number for part in manifest.parts for number in (part.bytes, part.checksum)]
    names = all(isinstance(part.file, str) for part in manifest.parts)
    return names and are_counts(numbers) and isinstance(manifest.facts, dict)


def are_counts(values: Iterable[object]) -> bool:
    """Return whether all values are non-negative integers."""
    return all(type(value) is int and value >= 0 for value in values)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
