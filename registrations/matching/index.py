"""Strategy `index`: most registrations are in a base, an immutable match index mapped from disk;
later changes are in a delta, a matcher in memory; tombstones mark removed ones. Plain module.

For every event the three give one result. After enough changes, an index of the live registrations
is built and replaces all three at once; the caller of the last change waits for it.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import AUTO, new_engine
from registrations.match_index.engines.engine import Engine
from registrations.match_index.format.builder import EpochPlan, build_columns
from registrations.match_index.format.columns import EntryCollector, EntryColumns
from registrations.match_index.format.decode import columns_of
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.index import Base, EntryPosition, open_base
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.matcher import Counters, summed
from registrations.matching.memory_matcher import MemoryMatcher, MemoryOptions
from registrations.matching.spec import Spec, Specs


class IndexOptions(NamedTuple):
    """The engine, and when an index is built."""

    engine: str = AUTO
    first: int = limits.INDEX_DELTA_MIN  # changes before the first index is built
    least: int = limits.INDEX_DELTA_MIN  # changes before it is rebuilt ...
    share: float = limits.INDEX_INLINE_SHARE  # ... if they are also this share of it


class MatcherState(NamedTuple):
    """The state of a matcher, for people: the engine in use, and why."""

    engine: str
    base: int  # ids in the index
    delta: int  # filters in memory
    tombstones: int  # ids of the index that were removed or are in memory
    why: str


class IndexMatcher:
    """A base, a delta and tombstones. It takes single specs, as every strategy, and whole filters
    by `put`.

    Concurrency: one task owns it, as any matcher.
    """

    def __init__(
        self,
        hierarchy: TypeHierarchy = no_supertypes,
        options: IndexOptions = IndexOptions(),  # noqa: B008
    ) -> None:
        self._hierarchy = hierarchy
        self._options = options
        self._postponed = 0  # changes to wait for after a build that failed
        self._spent = Counters()
        self._engines: list[Engine] = []
        self._memory, self._delta = self._new_delta()
        self._base: Base | None = None
        self._specs: dict[int, Specs] = {}  # of the delta
        self._changed: set[int] = set()  # since the base was built, without those it cannot hold
        self._removed: dict[int, list[EntryPosition]] = {}

    @property
    def counters(self) -> Counters:
        """All work so far, of earlier bases, of the present one and of the delta."""
        parts = [self._spent, self._delta.counters, *(engine.counters for engine in self._engines)]
        return summed(parts)

    def add(self, id: int, spec: Spec) -> None:
        self.put(id, (spec,))

    def put(self, id: int, specs: Specs) -> None:
        """Add a filter; it replaces another one under its number."""
        self._mark_removed(id)
        self._delta.add(id, specs)
        self._specs[id] = specs
        self._changed_now(id)

    def remove(self, id: int) -> None:
        if id not in self._specs and not self._mark_removed(id):
            return
        self._delta.remove(id)
        self._specs.pop(id, None)
        if id in self._removed:
            self._changed_now(id)
        else:
            self._changed.discard(id)

    def match(self, event: Event) -> list[int]:
        due = self._delta.match(event) if self._specs else []
        for engine in self._engines:
            due += engine.match(event).tolist()
        return due

    def __len__(self) -> int:
        return (
            (0 if self._base is None else len(self._base)) - len(self._removed) + len(self._delta)
        )

    def compact(self) -> None:
        """Build an index of the live registrations now. Raises OSError and then changes nothing."""
        refused: set[int] = set()
        with tempfile.TemporaryDirectory(prefix="eventhub-index-") as folder:
            root = Path(folder)
            build_columns(root, [self._living(refused)], EpochPlan(durable=False))
            self._take(open_base(root), refused)  # mapped files survive their deletion

    def state(self) -> MatcherState:
        """Return the state, for people: the engine, the sizes, and why."""
        names = {engine.name for engine in self._engines}
        base = 0 if self._base is None else len(self._base)
        why = "an index was built" if names else f"fewer than {self._options.first:,} registrations"
        if self._postponed:
            why += ", and the last build failed"
        engine = ", ".join(sorted(names or self._memory.engines))
        return MatcherState(engine, base, len(self._delta), len(self._removed), why)

    # --- rebuilds ---

    def _changed_now(self, id: int) -> None:
        self._changed.add(id)
        if not self._is_due():
            return
        try:
            self.compact()
        except OSError:  # a full disk costs speed, not matches
            self._postponed = 2 * len(self._changed)

    def _is_due(self) -> bool:
        """Return whether enough has changed to be worth a new index."""
        _, first, least, share = self._options
        needed = first if self._base is None else max(least, share * len(self._base))
        return len(self._changed) >= max(needed, self._postponed)

    def _living(self, refused: set[int]) -> EntryColumns:
        """Return the live filters; add to `refused` those that no index can hold."""
        living = EntryCollector()
        for id, specs in self._specs.items():
            try:
                living.add(id, specs, {})
            except NotIndexable:
                refused.add(id)
        gone = [position.dense for positions in self._removed.values() for position in positions]
        for shard in [] if self._base is None else self._base.shards:  # built here, so there is one
            living.take(columns_of(shard, gone))
        return living.drain()

    def _take(self, base: Base, refused: set[int]) -> None:
        """Replace base and delta: prepare everything first, then swap."""
        memory, delta = self._new_delta()
        kept = {id: self._specs[id] for id in refused}
        for id, specs in kept.items():
            delta.add(id, specs)
        engines = [
            new_engine(self._options.engine, shard, self._hierarchy) for shard in base.shards
        ]
        self._spent = self.counters
        self._spent.rebuilds += 1
        self._base, self._engines = base, engines
        self._memory, self._delta = memory, delta
        self._specs, self._changed, self._removed = kept, set(), {}
        self._postponed = 0

    def _new_delta(self) -> tuple[MemoryMatcher, FilterMatcher]:
        memory = MemoryMatcher(self._hierarchy, MemoryOptions(self._options.engine))
        return memory, FilterMatcher(memory)

    def _mark_removed(self, id: int) -> bool:
        """Mark an id of the base as removed; return whether it was live there."""
        if self._base is None or id in self._removed:
            return False
        positions = self._base.positions_of(id)
        for position in positions:
            self._engines[position.shard].mark_removed(position.dense)
        if positions:
            self._removed[id] = positions
        return bool(positions)
