"""An open match index: the shards of one epoch. Plain module."""

from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from registrations.match_index.format.builder import header_checksum
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.manifest import IndexManifest, read_manifest
from registrations.match_index.format.shard import Shard

_ATTEMPTS = 5  # a builder may delete an epoch while it is opened; then the next one exists


class EntryPosition(NamedTuple):
    """The position of an entry: a shard, and the dense position there."""

    shard: int
    dense: int


class Base:
    """The immutable mapped files of an epoch. Engines have the tombstones."""

    def __init__(self, manifest: IndexManifest, shards: list[Shard]) -> None:
        self.manifest = manifest
        self.shards = shards

    def positions_of(self, id: int) -> list[EntryPosition]:
        """Return all entries of an id; none if it is not indexed. Raises IndexDamaged."""
        return [
            EntryPosition(number, dense)
            for number, shard in enumerate(self.shards)
            for dense in positions_in(shard, id)
        ]

    def verify(self) -> None:
        """Read all files and compare the checksums. Raises IndexDamaged."""
        for shard in self.shards:
            shard.verify()

    def __len__(self) -> int:
        """Return the number of distinct ids."""
        return self.manifest.ids


def positions_in(shard: Shard, id: int) -> list[int]:
    """Return the dense positions of an id in a shard; none if it is not there. Raises
    IndexDamaged.
    """
    ids, by_id = shard.views["ids"], shard.views["by_id"]
    found: list[int] = []
    try:
        at = bisect_left(by_id, id, key=ids.__getitem__)
        while at < len(by_id) and ids[by_id[at]] == id:
            found.append(by_id[at])
            at += 1
    except IndexError as error:
        raise IndexDamaged(f"{shard.path.name} has an offset out of range.") from error
    return found


def open_base(root: Path) -> Base:
    """Open the current epoch; read headers only. Raises IndexAbsent, IndexDamaged."""
    for _ in range(_ATTEMPTS):
        manifest = read_manifest(root)
        try:
            made = Base(manifest, _shards(root / manifest.folder, manifest))
        except FileNotFoundError:
            continue  # newer epochs were published, and this one was deleted
        if read_manifest(root).epoch == manifest.epoch:
            return made
    raise IndexDamaged(f"The files of the match index in {root} are missing.")


def _shards(folder: Path, manifest: IndexManifest) -> list[Shard]:
    found = []
    for part in manifest.parts:
        path = folder / part.file
        if header_checksum(path) != part.checksum or path.stat().st_size != part.bytes:
            raise IndexDamaged(f"{path.name} is not the file that its manifest names.")
        found.append(Shard(path))
    return found
