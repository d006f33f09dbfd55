"""An open epoch of a stream's match index, with the columns of versions of registrations, by dense
position. Plain module.

An epoch is immutable. The matching process knows the versions that ended since.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from registrations.match_index.epochs.facts import EpochFacts, facts_of
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.index import Base, open_base
from registrations.match_index.format.layout import EXTRA
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.manifest import IndexManifest
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS

_DAMAGED = "damaged"  # a mark in an epoch's folder


class MappedVersionColumns(NamedTuple):
    """The columns of one shard, by dense position; 64-bit integers, mapped."""

    client: memoryview
    endpoint: memoryview
    group: memoryview  # 0: none
    registration: memoryview
    report: memoryview  # 1: it has one; 2: it binds a variable; 3: both
    since: memoryview  # exclusive
    until: memoryview  # inclusive; NEVER_ENDS
    ids: memoryview  # of the versions


class Epoch:
    """An open epoch. Any number of threads may read it; it needs no database."""

    def __init__(self, base: Base, facts: EpochFacts) -> None:
        """Raise IndexDamaged if it lacks a column."""
        self.base = base
        self.facts = facts
        self.columns = [columns_of(shard) for shard in base.shards]

    @cached_property
    def clients(self) -> list[int]:
        """The clients, ascending. Reads a column, as `groups` does."""
        return self._different("client")

    @cached_property
    def groups(self) -> list[int]:
        return self._different("group")

    @property
    def manifest(self) -> IndexManifest:
        return self.base.manifest

    def __contains__(self, id: int) -> bool:
        """Return whether it has a version; takes some microseconds. Raises IndexDamaged."""
        return bool(self.base.positions_of(id))

    def _different(self, column: str) -> list[int]:
        parts = [np.unique(np.asarray(getattr(columns, column))) for columns in self.columns]
        different = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
        return [number for number in different.tolist() if number]


def open_epoch(root: Path) -> Epoch:
    """Open the current epoch; read headers only. Raises IndexAbsent, IndexDamaged, OSError."""
    base = open_base(root)
    facts = facts_of(base.manifest)
    if facts is None:
        raise IndexDamaged(f"The index in {root} was not built for registrations by this hub.")
    if (root / base.manifest.folder / _DAMAGED).exists():
        raise IndexDamaged(f"Epoch {base.manifest.epoch} in {root} was found to be damaged.")
    return Epoch(base, facts)


def mark_damaged(root: Path, manifest: IndexManifest) -> None:
    """Mark an epoch that proved damaged in use: it is not opened again, and the next build does not
    use it. Raises OSError.
    """
    (root / manifest.folder / _DAMAGED).touch()


def columns_of(shard: Shard) -> MappedVersionColumns:
    """Return the columns of a shard. Raises IndexDamaged if one is missing."""
    views: dict[str, Any] = shard.views
    missing = [name for name in COLUMNS if EXTRA + name not in views]
    if missing:
        raise IndexDamaged(f"{shard.path.name} has no column {', '.join(missing)}.")
    return MappedVersionColumns(**{name: views[EXTRA + name] for name in COLUMNS}, ids=views["ids"])
