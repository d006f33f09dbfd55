"""One epoch of a stream's match index, opened: its columns stand for versions of registrations, by
dense place. Plain module.

Nothing of an epoch changes. A version that ended since is known to whoever matches.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from registrations.match_index.epochs.facts import Facts, facts_of
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.index import Base, open_base
from registrations.match_index.format.layout import EXTRA
from registrations.match_index.format.manifest import Manifest
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS

_DAMAGED = "damaged"  # a mark in an epoch's folder


class Columns(NamedTuple):
    """Of one shard, by dense place; 64-bit integers, mapped."""

    client: memoryview
    endpoint: memoryview
    group: memoryview  # 0: none
    registration: memoryview
    report: memoryview  # 1: it has one
    since: memoryview  # exclusive
    until: memoryview  # inclusive; NEVER_ENDS
    ids: memoryview  # of the versions


class Epoch:
    """Opened; reading it needs no database. Any number of threads may."""

    def __init__(self, base: Base, facts: Facts) -> None:
        """Raises IndexDamaged if it lacks a column."""
        self.base = base
        self.facts = facts
        self.columns = [columns_of(shard) for shard in base.shards]

    @cached_property
    def clients(self) -> list[int]:
        """Ascending; reads a column, as the next does."""
        return self._different("client")

    @cached_property
    def groups(self) -> list[int]:
        return self._different("group")

    @property
    def manifest(self) -> Manifest:
        return self.base.manifest

    def __contains__(self, id: int) -> bool:
        """Whether a version is in; some microseconds. Raises IndexDamaged."""
        return bool(self.base.places_of(id))

    def _different(self, column: str) -> list[int]:
        parts = [np.unique(np.asarray(getattr(columns, column))) for columns in self.columns]
        different = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
        return [number for number in different.tolist() if number]


def open_epoch(root: Path) -> Epoch:
    """The current one; looks at headers only. Raises IndexAbsent, IndexDamaged,
    OSError.
    """
    base = open_base(root)
    facts = facts_of(base.manifest)
    if facts is None:
        raise IndexDamaged(f"The index in {root} was not built for registrations by this hub.")
    if (root / base.manifest.folder / _DAMAGED).exists():
        raise IndexDamaged(f"Epoch {base.manifest.epoch} in {root} was found to be damaged.")
    return Epoch(base, facts)


def mark_damaged(root: Path, manifest: Manifest) -> None:
    """An epoch that led outside of its files while it was used: nobody opens it again, and the next
    build does not begin with it. Raises OSError.
    """
    (root / manifest.folder / _DAMAGED).touch()


def columns_of(shard: Shard) -> Columns:
    """Raises IndexDamaged."""
    views: dict[str, Any] = shard.views
    missing = [name for name in COLUMNS if EXTRA + name not in views]
    if missing:
        raise IndexDamaged(f"{shard.path.name} has no column {', '.join(missing)}.")
    return Columns(**{name: views[EXTRA + name] for name in COLUMNS}, ids=views["ids"])
