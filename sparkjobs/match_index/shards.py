"""The assembly of slices into shards, the files of docs/match-index.md. Plain module."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from registrations.match_index.format.assemble import assemble
from registrations.match_index.format.columns import EntryCollector
from registrations.match_index.format.names import ALL_BITS
from registrations.match_index.format.shard import write_shard
from registrations.match_index.format.versions import COLUMNS
from sparkjobs.match_index.slices import Slice, read_slice

SHARDS = "shards"  # a folder in the run's `work`, from which the hub copies them


class Pack(NamedTuple):
    """The slices of one shard."""

    number: int
    slices: tuple[int, ...]


class WrittenShard(NamedTuple):
    """A shard's file and sizes."""

    file: str
    entries: int
    ids: int
    bytes: int


def pack_slices(slices: Iterable[Slice], entries_max: int) -> list[Pack]:
    """Distribute whole slices, in order, over as few shards as possible, because every event is
    matched against every shard.
    """
    packs: list[list[int]] = []
    left = 0
    for number, entries, *_ in sorted(slices):
        if not entries:
            continue
        if not packs or entries > left:
            packs.append([])
            left = entries_max
        packs[-1].append(number)
        left -= entries
    return [Pack(number, tuple(numbers)) for number, numbers in enumerate(packs)]


def write_pack(slices: Path, shards: Path, pack: Pack) -> WrittenShard:
    """Write and fsync a shard; `slices` and `shards` are folders. Raises OSError."""
    gathering = EntryCollector(COLUMNS)
    for number in pack.slices:
        gathering.take(read_slice(slices, number))
    shard = assemble(gathering.drain(), ALL_BITS)
    path = shards / f"shard-{pack.number:04}.idx"
    aside = path.with_suffix(f".{uuid4()}")
    size = write_shard(aside, shard, durable=True)
    aside.replace(path)
    return WrittenShard(path.name, shard.head.entries, shard.head.ids, size)
