"""Builds a match index: an epoch beside the current one, which then takes its place at once.
Plain module.

A crash leaves what was there before, and a folder that the next build clears away. Memory is that
of one shard: some hundred bytes for each entry of it.
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
from registrations.match_index.format.columns import Columns, Gathering
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.layout import HEADER_BYTES
from registrations.match_index.format.manifest import (
    NAME,
    Manifest,
    Part,
    folder_of,
    read_manifest,
    sync_folder,
    write_manifest,
)
from registrations.match_index.format.names import ALL_BITS, hash_of
from registrations.match_index.format.shard import Shard, write_shard
from registrations.matching.spec import Specs

EPOCHS_KEPT = 3  # the current one, and two older for whoever opens them just now
_EPOCH = re.compile(r"epoch-(\d{8,})")
_LOCK = "lock"
READ = "read"  # a stage of whoever makes the columns: it counts what is read, and no entries


class Progress(NamedTuple):
    """How far a build is. `stage`, what was done last: gathered or READ, then assembled, written,
    sealed, published, cleaned.
    """

    stage: str
    entries: int  # done so far


class Entry(NamedTuple):
    """A filter as it is indexed: specs under an id of the caller's, any of 64 bits."""

    id: int
    specs: Specs
    extra: Mapping[str, int] = {}


class Plan(NamedTuple):
    """What an epoch is to be."""

    built_through_sequence: int | None = None
    facts: Mapping[str, Any] = {}
    extra: tuple[str, ...] = ()  # columns that each entry brings, 64 bits by dense place
    shard_entries: int = limits.INDEX_SHARD_ENTRIES_MAX
    durable: bool = True  # forced to the disk: it is to outlive this process
    hash_mask: int = ALL_BITS  # fewer bits only in tests: then names meet in one slot
    progress: Callable[[Progress], None] = lambda progress: None


def build(root: Path, entries: Iterable[Entry], plan: Plan = Plan()) -> Manifest:  # noqa: B008
    """An epoch of entries, in whatever order they come; of one shard if they are few enough. All
    entries of an id are in one `Entry`. Raises NotIndexable, OSError.
    """
    return build_columns(root, _gathered(entries, plan), plan)


def build_columns(root: Path, shards: Iterable[Columns], plan: Plan = Plan()) -> Manifest:  # noqa: B008
    """The same from columns, a shard for each; an id is in one of them only."""
    return _next_epoch(root, plan, lambda folder: _built(folder, shards, plan))


def publish_files(root: Path, files: Iterable[Path], plan: Plan) -> Manifest:
    """The same of shards that were built elsewhere, and are read whole before they count; an id is
    in one of them only. They stay where they are. Raises IndexDamaged, OSError.
    """
    return _next_epoch(root, plan, lambda folder: _copied(folder, files, plan))


def _next_epoch(root: Path, plan: Plan, fill: Callable[[Path], "list[_Shard]"]) -> Manifest:
    root.mkdir(parents=True, exist_ok=True)
    with _alone(root):
        if (root / NAME).is_dir():  # known before the work is done
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
        plan.progress(Progress("sealed", manifest.entries))
        write_manifest(root, manifest, durable=plan.durable)
        plan.progress(Progress("published", manifest.entries))
        _clean(root, keep=_kept(root))
        plan.progress(Progress("cleaned", manifest.entries))
        return manifest


class _Shard(NamedTuple):
    """A file in an epoch's folder."""

    path: Path
    bytes: int
    entries: int
    ids: int


def _built(folder: Path, shards: Iterable[Columns], plan: Plan) -> list[_Shard]:
    found: list[_Shard] = []
    for columns in shards:
        if not len(columns.ids):
            continue
        made = assemble(columns, plan.hash_mask)
        del columns
        entries = sum(shard.entries for shard in found) + made.head.entries
        plan.progress(Progress("assembled", entries))
        path = folder / _file_of(len(found))
        size = write_shard(path, made, durable=plan.durable)
        found.append(_Shard(path, size, made.head.entries, made.head.ids))
        plan.progress(Progress("written", entries))
    return found


def _copied(folder: Path, files: Iterable[Path], plan: Plan) -> list[_Shard]:
    found: list[_Shard] = []
    for number, file in enumerate(files):
        path = folder / _file_of(number)
        shutil.copyfile(file, path)
        with path.open("rb") as copy:
            os.fsync(copy.fileno())
        shard = Shard(path)
        shard.verify()
        found.append(_Shard(path, len(shard.data), shard.head.entries, shard.head.ids))
        plan.progress(Progress("written", sum(shard.entries for shard in found)))
    return found


def _file_of(number: int) -> str:
    return f"shard-{number:04}.idx"


def _sealed(folder: Path, epoch: int, shards: list[_Shard], plan: Plan) -> Manifest:
    manifest = Manifest(
        epoch,
        tuple(Part(path.name, size, header_checksum(path)) for path, size, *_ in shards),
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
    """That the file is the one which the manifest means."""
    with path.open("rb") as file:
        return hash_of(file.read(HEADER_BYTES))


def _gathered(entries: Iterable[Entry], plan: Plan) -> Iterator[Columns]:
    gathering, done = Gathering(plan.extra), 0
    for entry in entries:
        gathering.add(entry.id, entry.specs, entry.extra)
        if len(gathering) >= plan.shard_entries:
            done += len(gathering)
            plan.progress(Progress("gathered", done))
            yield gathering.drain()
    plan.progress(Progress("gathered", done + len(gathering)))
    yield gathering.drain()


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One builder at a time; another one waits. A crash frees the lock."""
    with (root / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _kept(root: Path) -> list[int]:
    """The current epoch and those before it that are whole, EPOCHS_KEPT in all."""
    try:
        current = read_manifest(root).epoch
    except (IndexAbsent, IndexDamaged):
        return sorted(_epochs(root))[-EPOCHS_KEPT:]  # nothing is thrown away that may be mended
    whole = [epoch for epoch in _epochs(root) if epoch <= current and _is_whole(root, epoch)]
    return sorted(whole)[-EPOCHS_KEPT:]


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
