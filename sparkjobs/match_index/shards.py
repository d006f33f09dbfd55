"""Slices put together into shards, each a file of docs/match-index.md. Plain module."""

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

SHARDS = "shards"  # a folder in the run's `work`: the hub copies them into the index


class Pack(NamedTuple):
    """The slices of one shard."""

    number: int
    slices: tuple[int, ...]


class WrittenShard(NamedTuple):
    """A shard."""

    file: str
    entries: int
    ids: int
    bytes: int


def pack_slices(slices: Iterable[Slice], entries_max: int) -> list[Pack]:
    """As few shards as there can be, because every event is matched against each; of whole slices
    in their order.
    """
    found: list[list[int]] = []
    room = 0
    for number, entries, _ in sorted(slices):
        if not entries:
            continue
        if not found or entries > room:
            found.append([])
            room = entries_max
        found[-1].append(number)
        room -= entries
    return [Pack(number, tuple(numbers)) for number, numbers in enumerate(found)]


def write_pack(slices: Path, shards: Path, pack: Pack) -> WrittenShard:
    """Of the folders of slices and of shards. It is on the disk then. Raises OSError."""
    gathering = EntryCollector(COLUMNS)
    for number in pack.slices:
        gathering.take(read_slice(slices, number))
    made = assemble(gathering.drain(), ALL_BITS)
    path = shards / f"shard-{pack.number:04}.idx"
    aside = path.with_suffix(f".{uuid4()}")
    size = write_shard(aside, made, durable=True)
    aside.replace(path)
    return WrittenShard(path.name, made.head.entries, made.head.ids, size)
