"""Strategy `index`: most registrations in a match index on disk, mapped and never changed; what
changed since in a matcher in memory; what is gone, marked. Plain module.

The three are one answer for every event. When enough has changed, an index of what lives is built
and takes the place of all three at once; whoever made the last change waits for it.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import AUTO, new_engine
from registrations.match_index.engines.engine import Engine
from registrations.match_index.format.builder import Plan, build_columns
from registrations.match_index.format.columns import Columns, Gathering
from registrations.match_index.format.decode import columns_of
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.index import Base, Place, open_base
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.matcher import Counters, summed
from registrations.matching.memory import MemoryMatcher
from registrations.matching.memory import Options as MemoryOptions
from registrations.matching.spec import Spec, Specs


class Options(NamedTuple):
    """Which engine answers, and when an index is built."""

    engine: str = AUTO
    first: int = limits.INDEX_DELTA_MIN  # changes before an index is built at all
    least: int = limits.INDEX_DELTA_MIN  # and before it is built anew,
    share: float = limits.INDEX_INLINE_SHARE  # ... if these are as large a part of it


class State(NamedTuple):
    """What is used at the moment, and why (for people)."""

    engine: str
    base: int  # ids in the index
    delta: int  # filters in memory
    buried: int  # ids of the index that are gone or are in memory
    why: str


class IndexMatcher:
    """A base, a delta and what is gone. It takes single specs, as every strategy, and whole filters
    by `put`.

    Concurrency: one task owns it, as any matcher.
    """

    def __init__(
        self,
        hierarchy: TypeHierarchy = no_supertypes,
        options: Options = Options(),  # noqa: B008
    ) -> None:
        self._hierarchy = hierarchy
        self._options = options
        self._postponed = 0  # changes to wait for after a build that failed
        self._spent = Counters()
        self._engines: list[Engine] = []
        self._memory, self._delta = self._new_delta()
        self._base: Base | None = None
        self._specs: dict[int, Specs] = {}  # of the delta
        self._changed: set[int] = set()  # since the base was built, but for what it cannot hold
        self._buried: dict[int, list[Place]] = {}

    @property
    def counters(self) -> Counters:
        """All work so far: of the bases that were, of the present one, and of the delta."""
        parts = [self._spent, self._delta.counters, *(engine.counters for engine in self._engines)]
        return summed(parts)

    def add(self, id: int, spec: Spec) -> None:
        self.put(id, (spec,))

    def put(self, id: int, specs: Specs) -> None:
        """Take a filter in, in the place of what is under its number."""
        self._bury(id)
        self._delta.add(id, specs)
        self._specs[id] = specs
        self._changed_now(id)

    def remove(self, id: int) -> None:
        if id not in self._specs and not self._bury(id):
            return
        self._delta.remove(id)
        self._specs.pop(id, None)
        if id in self._buried:
            self._changed_now(id)
        else:
            self._changed.discard(id)

    def match(self, event: Event) -> list[int]:
        due = self._delta.match(event) if self._specs else []
        for engine in self._engines:
            due += engine.match(event).tolist()
        return due

    def __len__(self) -> int:
        return (0 if self._base is None else len(self._base)) - len(self._buried) + len(self._delta)

    def compact(self) -> None:
        """Build an index of what lives, here and now. Raises OSError, and then all is as before."""
        refused: set[int] = set()
        with tempfile.TemporaryDirectory(prefix="eventhub-index-") as folder:
            root = Path(folder)
            build_columns(root, [self._living(refused)], Plan(durable=False))
            self._take(open_base(root), refused)  # mapped, it needs no name, and ends with us

    def state(self) -> State:
        """For people: which engine answers, from what, and why."""
        names = {engine.name for engine in self._engines}
        base = 0 if self._base is None else len(self._base)
        why = "an index was built" if names else f"fewer than {self._options.first:,} registrations"
        if self._postponed:
            why += ", and the last build failed"
        engine = ", ".join(sorted(names or self._memory.engines))
        return State(engine, base, len(self._delta), len(self._buried), why)

    # --- building anew ---

    def _changed_now(self, id: int) -> None:
        self._changed.add(id)
        if not self._is_due():
            return
        try:
            self.compact()
        except OSError:  # a disk that is full costs speed, not matches
            self._postponed = 2 * len(self._changed)

    def _is_due(self) -> bool:
        """Whether enough changed for a new index to be worth its while."""
        _, first, least, share = self._options
        wanted = first if self._base is None else max(least, share * len(self._base))
        return len(self._changed) >= max(wanted, self._postponed)

    def _living(self, refused: set[int]) -> Columns:
        """All but what no index can hold, which is added to `refused`."""
        living = Gathering()
        for id, specs in self._specs.items():
            try:
                living.add(id, specs, {})
            except NotIndexable:
                refused.add(id)
        gone = [place.dense for places in self._buried.values() for place in places]
        for shard in [] if self._base is None else self._base.shards:  # it was built here: of one
            living.take(columns_of(shard, gone))
        return living.drain()

    def _take(self, base: Base, refused: set[int]) -> None:
        """The one place where what is asked changes: made aside, then taken at once."""
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
        self._specs, self._changed, self._buried = kept, set(), {}
        self._postponed = 0

    def _new_delta(self) -> tuple[MemoryMatcher, FilterMatcher]:
        memory = MemoryMatcher(self._hierarchy, MemoryOptions(self._options.engine))
        return memory, FilterMatcher(memory)

    def _bury(self, id: int) -> bool:
        """True if it was in the base and found until now."""
        if self._base is None or id in self._buried:
            return False
        places = self._base.places_of(id)
        for place in places:
            self._engines[place.shard].bury(place.dense)
        if places:
            self._buried[id] = places
        return bool(places)
