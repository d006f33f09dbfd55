"""What the strategies `index` and `auto` have in memory: equalities in `access`, in place; what is
found by a range, a beginning or another key in small indexes, which the fastest engine asks.
Plain module.

Everything comes into `access`. There a test is evaluated in Python for each registration that has
it, which an index does not do; but an index cannot be changed. So one is made of those that wait
when their tests have taken as long as making it does: with changes all the time and few events
nothing is ever made, and what is asked for often is in an index soon. It takes in smaller ones, so
there are few, and none is larger than a bound, so an event never waits long for one to be made.
What has no equality comes first; what has one waits for as long as its equalities lead to few.
"""

from itertools import islice
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import AUTO, chosen
from registrations.matching.access import AccessMatcher
from registrations.matching.conditions import NO_TRIAL, Conditions, Trial
from registrations.matching.matcher import Counters, summed
from registrations.matching.spec import Spec
from registrations.matching.tier import Keyed, Tier, keyed

# What an event takes in one index that has nothing for it, in tests that are evaluated meanwhile.
_LOOK_TESTS = {"compiled": 0.25, "numpy": 4.0, "python": 4.0}


class Options(NamedTuple):
    """Which engine answers, and when an index is made: after so many tests, and so many more for
    each registration that comes into it.
    """

    engine: str = AUTO
    tests_first: int = limits.TIER_TESTS_FIRST
    tests_each: int = limits.TIER_TESTS_EACH
    tier_max: int = limits.TIER_REGISTRATIONS_MAX


class MemoryMatcher:
    """`counters.rebuilds` counts the indexes that were made, too."""

    def __init__(
        self,
        hierarchy: TypeHierarchy = no_supertypes,
        options: Options = Options(),  # noqa: B008
    ) -> None:
        self._hierarchy = hierarchy
        self._options = options
        self._access = AccessMatcher(hierarchy)
        self._ranges, self._others = _Waiting(), _Waiting()  # in `access`: without equalities, with
        self._look = _LOOK_TESTS[chosen(options.engine)]
        self._tiers: list[Tier] = []  # the largest first
        self._places: dict[int, Tier] = {}
        self._tests = Conditions(hierarchy)  # of what is in an index, those that are no keys
        self._spent = Counters()

    @property
    def counters(self) -> Counters:
        engines = (tier.engine.counters for tier in self._tiers)
        return summed([self._spent, self._access.counters, *engines])

    @property
    def engines(self) -> list[str]:
        """By name what answers at the moment."""
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
            trial = Trial(self._tests, event) if self._tests.known else NO_TRIAL
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

    def _count(self, tried: int, waiting: "_Waiting") -> None:
        """Of the tests that an event took, those that it would not have taken with an index."""
        count = len(waiting.specs)
        looks = self._look * (1 + count // self._options.tier_max)
        waiting.tried += max(tried - looks, 0.0)
        count = min(count, self._options.tier_max)
        worth = self._options.tests_first + self._options.tests_each * count
        if waiting.tried >= worth:
            waiting.tried = 0.0
            self._settle(waiting, count)

    def _settle(self, waiting: "_Waiting", count: int) -> None:
        """Make an index of those that have waited longest, and of small ones. What has no keys
        waits no more.
        """
        taken: dict[int, Keyed] = {}
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

    def _takes_in(self, tier: Tier, count: int) -> bool:
        return len(tier) <= 2 * count and len(tier) + count <= self._options.tier_max

    def _make(self, specs: dict[int, Keyed]) -> None:
        """Nothing for nothing."""
        if not specs:
            return
        tier = Tier(specs, self._tests, self._hierarchy, self._options.engine)
        self._places |= dict.fromkeys(specs, tier)
        self._tiers.append(tier)
        self._tiers.sort(key=len, reverse=True)
        self._spent.rebuilds += 1

    def _ended(self, tier: Tier) -> dict[int, Keyed]:
        """What lives in an index that is no more."""
        tier.end()
        spent = tier.engine.counters
        self._spent = summed([self._spent, spent])
        return tier.specs


class _Waiting:
    """Specs of which an index may be made, and how many tests they have. `tried`: of these, since
    an index was made of some.
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
