"""The in-memory part of the strategies `index` and `auto`: equalities in `access`, changed in
place; specs that are found by a range, a prefix or another key in small immutable indexes, matched
by the fastest engine. Plain module.

Every spec is first added to `access`, where its tests are evaluated in Python. An index avoids
that, but cannot be changed. So an index of the pending specs is built once their tests have taken
as long as building it would: under constant changes and few events nothing is built, and specs that
are often evaluated are soon in an index. It merges smaller ones, so there are few, and its size is
bounded, so that an event never waits long for a build. Specs without equalities come first; those
with equalities wait while these lead to few.
"""

from itertools import islice
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import AUTO, chosen
from registrations.matching.conditions import NO_TRIAL, Conditions, EventTestResults
from registrations.matching.matcher import Counters, summed
from registrations.matching.memory_index import KeyedSpec, MemoryIndex, keyed
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.spec import Spec

# The time of an event in an index without a match, in evaluated tests.
_LOOK_TESTS = {"compiled": 0.25, "numpy": 4.0, "python": 4.0}


class MemoryOptions(NamedTuple):
    """The engine, and when an index is built: after `tests_first` tests, and `tests_each` more for
    each registration in it.
    """

    engine: str = AUTO
    tests_first: int = limits.TIER_TESTS_FIRST
    tests_each: int = limits.TIER_TESTS_EACH
    tier_max: int = limits.TIER_REGISTRATIONS_MAX


class MemoryMatcher:
    """A matcher with an `access` matcher and small indexes. `counters.rebuilds` also counts built
    indexes.
    """

    def __init__(
        self,
        hierarchy: TypeHierarchy = no_supertypes,
        options: MemoryOptions = MemoryOptions(),  # noqa: B008
    ) -> None:
        self._hierarchy = hierarchy
        self._options = options
        self._access = RarestPairMatcher(hierarchy)
        self._ranges, self._others = _PendingSpecs(), _PendingSpecs()  # without and with equalities
        self._look = _LOOK_TESTS[chosen(options.engine)]
        self._tiers: list[MemoryIndex] = []  # the largest first
        self._places: dict[int, MemoryIndex] = {}
        self._tests = Conditions(hierarchy)  # of indexed specs, the tests that are not keys
        self._spent = Counters()

    @property
    def counters(self) -> Counters:
        engines = (tier.engine.counters for tier in self._tiers)
        return summed([self._spent, self._access.counters, *engines])

    @property
    def engines(self) -> list[str]:
        """The names of the engines in use."""
        names = {tier.engine.name for tier in self._tiers}
        return ["access", *sorted(names)] if len(self._access) or not names else sorted(names)

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        self._access.add(id, spec)
        if spec.tests:
            (self._others if spec.pairs else self._ranges).add(id, spec)

    def remove(self, id: int) -> None:
        tier = self._places.pop(id, None)
        if tier is None:
            self._access.remove(id)
            self._ranges.remove(id)
            self._others.remove(id)
            return
        tier.remove(id)
        if 2 * len(tier) <= tier.built:
            self._tiers.remove(tier)
            self._make(self._ended(tier))

    def match(self, event: Event) -> list[int]:
        before = self._access.counters.evaluated
        due = self._access.match(event) if len(self._access) else []
        if self._tiers:
            trial = EventTestResults(self._tests, event) if self._tests.known else NO_TRIAL
            for tier in self._tiers:
                due += tier.match(event, trial)
            self._spent.evaluated += trial.evaluated
        tried = self._access.counters.evaluated - before
        for waiting in (self._ranges, self._others):
            mine = min(tried, waiting.tests)
            tried -= mine
            if mine:
                self._count(mine, waiting)
        return due

    def __len__(self) -> int:
        return len(self._access) + len(self._places)

    # --- indexes ---

    def _count(self, tried: int, waiting: "_PendingSpecs") -> None:
        """Count the evaluated tests that an index would have saved; build one if it is due."""
        count = len(waiting.specs)
        looks = self._look * (1 + count // self._options.tier_max)
        waiting.tried += max(tried - looks, 0.0)
        count = min(count, self._options.tier_max)
        worth = self._options.tests_first + self._options.tests_each * count
        if waiting.tried >= worth:
            waiting.tried = 0.0
            self._settle(waiting, count)

    def _settle(self, waiting: "_PendingSpecs", count: int) -> None:
        """Build an index of the specs that have waited longest, and of smaller indexes. Specs
        without keys stop waiting.
        """
        taken: dict[int, KeyedSpec] = {}
        for id, spec in [*islice(waiting.specs.items(), count)]:
            waiting.remove(id)
            found = keyed(spec)
            if found is not None:
                taken[id] = found
        if not taken:
            return
        for id in taken:
            self._access.remove(id)
        while self._tiers and self._takes_in(self._tiers[-1], len(taken)):
            taken |= self._ended(self._tiers.pop())
        self._make(taken)

    def _takes_in(self, tier: MemoryIndex, count: int) -> bool:
        return len(tier) <= 2 * count and len(tier) + count <= self._options.tier_max

    def _make(self, specs: dict[int, KeyedSpec]) -> None:
        """Build an index unless there are no specs."""
        if not specs:
            return
        tier = MemoryIndex(specs, self._tests, self._hierarchy, self._options.engine)
        self._places |= dict.fromkeys(specs, tier)
        self._tiers.append(tier)
        self._tiers.sort(key=len, reverse=True)
        self._spent.rebuilds += 1

    def _ended(self, tier: MemoryIndex) -> dict[int, KeyedSpec]:
        """Close an index and return its live specs."""
        tier.end()
        spent = tier.engine.counters
        self._spent = summed([self._spent, spent])
        return tier.specs


class _PendingSpecs:
    """Specs of which an index may be built, and the number of their tests. `tried`: their tests
    evaluated since the last build.
    """

    def __init__(self) -> None:
        self.specs: dict[int, Spec] = {}
        self.tests = 0
        self.tried = 0.0

    def add(self, id: int, spec: Spec) -> None:
        self.specs[id] = spec
        self.tests += len(spec.tests)

    def remove(self, id: int) -> None:
        spec = self.specs.pop(id, None)
        if spec is not None:
            self.tests -= len(spec.tests)
