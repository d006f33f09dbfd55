"""The builder of a match index: it writes a new epoch and then atomically replaces the current one.
Plain module.

After a crash the current epoch remains, and a folder that the next build removes. Memory is that of
one shard: some hundred bytes for each of its entries.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from typing import Any, NamedTuple

from eventhub.base import limits
from registrations.match_index.format.assemble import assemble
from registrations.match_index.format.columns import EntryCollector, EntryColumns
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.layout import HEADER_BYTES
from registrations.match_index.format.manifest import (
    NAME,
    IndexManifest,
    ShardFile,
    folder_of,
    read_manifest,
    sync_folder,
    write_manifest,
)
from registrations.match_index.format.names import ALL_BITS, hash_of
from registrations.match_index.format.shard import Shard, write_shard
from registrations.matching.spec import Specs

EPOCHS_RETAINED = 3  # the current one, and two older ones for processes that are opening them
_EPOCH = re.compile(r"epoch-(\d{8,})")
_LOCK = "lock"
READ = "read"  # a stage of the caller that reads the columns: it counts versions, not entries


class BuildProgress(NamedTuple):
    """The progress of a build. `stage`: the last step done: gathered or READ, then assembled,
    written, sealed, published, cleaned.
    """

    stage: str
    entries: int  # done so far


class IndexEntry(NamedTuple):
    """A filter to index: specs under the caller's id, of 64 bits."""

    id: int
    specs: Specs
    extra: Mapping[str, int] = {}


class EpochPlan(NamedTuple):
    """The parameters of a new epoch."""

    built_through_sequence: int | None = None
    facts: Mapping[str, Any] = {}
    extra: tuple[str, ...] = ()  # additional columns of the entries, 64 bits by dense position
    shard_entries: int = limits.INDEX_SHARD_ENTRIES_MAX
    durable: bool = True  # flushed to disk, because it outlives this process
    hash_mask: int = ALL_BITS  # fewer bits only in tests, so that names collide
    progress: Callable[[BuildProgress], None] = lambda progress: None


_DEFAULTS = EpochPlan()


def build(root: Path, entries: Iterable[IndexEntry], plan: EpochPlan = _DEFAULTS) -> IndexManifest:
    """Build an epoch of entries in any order, in one shard if they are few enough. An id has one
    `IndexEntry`. Raises NotIndexable, OSError.
    """
    return build_columns(root, _collected(entries, plan), plan)


def build_columns(
    root: Path, shards: Iterable[EntryColumns], plan: EpochPlan = _DEFAULTS
) -> IndexManifest:
    """Build an epoch from columns, a shard for each; an id is in only one of them."""
    return _next_epoch(root, plan, lambda folder: _built(folder, shards, plan))


def publish_files(root: Path, files: Iterable[Path], plan: EpochPlan) -> IndexManifest:
    """Build an epoch from copies of shards that were built elsewhere, after verifying them; an id
    is in only one of them. Raises IndexDamaged, OSError.
    """
    return _next_epoch(root, plan, lambda folder: _copied(folder, files, plan))


def _next_epoch(
    root: Path, plan: EpochPlan, fill: Callable[[Path], "list[_WrittenShard]"]
) -> IndexManifest:
    root.mkdir(parents=True, exist_ok=True)
    with _exclusive(root):
        if (root / NAME).is_dir():  # fail before the work is done
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(root / NAME))
        _clean(root, keep=_kept(root))
        epoch = max(_epochs(root), default=0) + 1
        folder = root / folder_of(epoch)
        folder.mkdir()
        try:
            manifest = _sealed(folder, epoch, fill(folder), plan)
        except Exception:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        plan.progress(BuildProgress("sealed", manifest.entries))
        write_manifest(root, manifest, durable=plan.durable)
        plan.progress(BuildProgress("published", manifest.entries))
        _clean(root, keep=_kept(root))
        plan.progress(BuildProgress("cleaned", manifest.entries))
        return manifest


class _WrittenShard(NamedTuple):
    """A shard's file in an epoch's folder."""

    path: Path
    bytes: int
    entries: int
    ids: int


def _built(folder: Path, shards: Iterable[EntryColumns], plan: EpochPlan) -> list[_WrittenShard]:
    found: list[_WrittenShard] = []
    for columns in shards:
        if not len(columns.ids):
            continue
        made = assemble(columns, plan.hash_mask)
        del columns
        entries = sum(shard.entries for shard in found) + made.head.entries
        plan.progress(BuildProgress("assembled", entries))
        path = folder / _file_of(len(found))
        size = write_shard(path, made, durable=plan.durable)
        found.append(_WrittenShard(path, size, made.head.entries, made.head.ids))
        plan.progress(BuildProgress("written", entries))
    return found


def _copied(folder: Path, files: Iterable[Path], plan: EpochPlan) -> list[_WrittenShard]:
    found: list[_WrittenShard] = []
    for number, file in enumerate(files):
        path = folder / _file_of(number)
        shutil.copyfile(file, path)
        with path.open("rb") as copy:
            os.fsync(copy.fileno())
        shard = Shard(path)
        shard.verify()
        found.append(_WrittenShard(path, len(shard.data), shard.head.entries, shard.head.ids))
        plan.progress(BuildProgress("written", sum(shard.entries for shard in found)))
    return found


def _file_of(number: int) -> str:
    return f"shard-{number:04}.idx"


def _sealed(
    folder: Path, epoch: int, shards: list[_WrittenShard], plan: EpochPlan
) -> IndexManifest:
    manifest = IndexManifest(
        epoch,
        tuple(ShardFile(path.name, size, header_checksum(path)) for path, size, *_ in shards),
        sum(shard.entries for shard in shards),
        sum(shard.ids for shard in shards),
        plan.built_through_sequence,
        dict(plan.facts),
    )
    write_manifest(folder, manifest, durable=plan.durable)
    if plan.durable:
        sync_folder(folder.parent)
    return manifest


def header_checksum(path: Path) -> int:
    """Return the checksum by which the manifest identifies a file."""
    with path.open("rb") as file:
        return hash_of(file.read(HEADER_BYTES))


def _collected(entries: Iterable[IndexEntry], plan: EpochPlan) -> Iterator[EntryColumns]:
    gathering, done = EntryCollector(plan.extra), 0
    for entry in entries:
        gathering.add(entry.id, entry.specs, entry.extra)
        if len(gathering) >= plan.shard_entries:
            done += len(gathering)
            plan.progress(BuildProgress("gathered", done))
            yield gathering.drain()
    plan.progress(BuildProgress("gathered", done + len(gathering)))
    yield gathering.drain()


@contextmanager
def _exclusive(root: Path) -> Iterator[None]:
    """Lock the folder: one builder at a time, others wait. A crash releases the lock."""
    with (root / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _kept(root: Path) -> list[int]:
    """Return the current epoch and earlier complete ones, EPOCHS_RETAINED in all."""
    try:
        current = read_manifest(root).epoch
    except (IndexAbsent, IndexDamaged):
        return sorted(_epochs(root))[-EPOCHS_RETAINED:]  # keep all that may be repaired
    whole = [epoch for epoch in _epochs(root) if epoch <= current and _is_whole(root, epoch)]
    return sorted(whole)[-EPOCHS_RETAINED:]


def _is_whole(root: Path, epoch: int) -> bool:
    try:
        return read_manifest(root / folder_of(epoch)).epoch == epoch
    except (IndexAbsent, IndexDamaged, OSError):
        return False


def _clean(root: Path, keep: list[int]) -> None:
    for epoch in _epochs(root):
        if epoch not in keep:
            shutil.rmtree(root / folder_of(epoch), ignore_errors=True)


def _epochs(root: Path) -> list[int]:
    return [int(found[1]) for path in root.iterdir() if (found := _EPOCH.fullmatch(path.name))]
