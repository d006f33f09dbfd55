"""A match index as it is opened: the shards of one epoch, an engine for each. Plain module."""

from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from registrations.match_index.format.builder import header_checksum
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.manifest import Manifest, read_manifest
from registrations.match_index.format.shard import Shard

_TRIES = 5  # a builder may take an epoch away while it is opened; the next one is there then


class Place(NamedTuple):
    """Where an entry is: a shard, and its dense place there."""

    shard: int
    dense: int


class Base:
    """Mapped files; nothing of them changes. What is gone, an engine knows."""

    def __init__(self, manifest: Manifest, shards: list[Shard]) -> None:
        self.manifest = manifest
        self.shards = shards

    def places_of(self, id: int) -> list[Place]:
        """All entries of an id; none if it is not there. Raises IndexDamaged."""
        return [
            Place(number, dense)
            for number, shard in enumerate(self.shards)
            for dense in places_in(shard, id)
        ]

    def verify(self) -> None:
        """Read everything. Raises IndexDamaged."""
        for shard in self.shards:
            shard.verify()

    def __len__(self) -> int:
        """How many different ids are in."""
        return self.manifest.ids


def places_in(shard: Shard, id: int) -> list[int]:
    """The dense places of an id in a shard; none if it is not there. Raises IndexDamaged."""
    ids, by_id = shard.views["ids"], shard.views["by_id"]
    found: list[int] = []
    try:
        at = bisect_left(by_id, id, key=ids.__getitem__)
        while at < len(by_id) and ids[by_id[at]] == id:
            found.append(by_id[at])
            at += 1
    except IndexError as error:
        raise IndexDamaged(f"{shard.path.name} leads outside of itself.") from error
    return found


def open_base(root: Path) -> Base:
    """The current epoch. Looks at headers only. Raises IndexAbsent, IndexDamaged."""
    for _ in range(_TRIES):
        manifest = read_manifest(root)
        try:
            made = Base(manifest, _shards(root / manifest.folder, manifest))
        except FileNotFoundError:
            continue  # newer epochs came, and this one was cleared away
        if read_manifest(root).epoch == manifest.epoch:
            return made
    raise IndexDamaged(f"The files of the match index in {root} are not there.")


def _shards(folder: Path, manifest: Manifest) -> list[Shard]:
    found = []
    for part in manifest.parts:
        path = folder / part.file
        if header_checksum(path) != part.checksum or path.stat().st_size != part.bytes:
            raise IndexDamaged(f"{path.name} is not the file that its manifest means.")
        found.append(Shard(path))
    return found
