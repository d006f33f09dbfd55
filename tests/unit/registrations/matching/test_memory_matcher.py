"""The matcher in memory: equalities in `access`, the rest in small indexes that are built when they
pay off and give the results of the scan.
"""

from random import Random

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.predicate import parse_predicate
from registrations.match_index.engines.available import ENGINES
from registrations.matching import memory_index
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.conditions import EventTestResults
from registrations.matching.matcher import Matcher
from registrations.matching.memory_matcher import MemoryMatcher, MemoryOptions
from registrations.matching.scan import ScanMatcher
from registrations.matching.spec import Spec, specs_of
from registrations.matching.strategies import AUTO, MatcherFactory, StreamStrategy, new_matcher
from tests.unit.registrations.matching import filters
from tests.unit.registrations.matching.programs import FEW, caught, differs, seeded
from tests.unit.registrations.matching.vocabulary import FEW_PATHS, PATHS

AT_ONCE = MemoryOptions(tests_first=1, tests_each=0, tier_max=8)
engines = pytest.mark.parametrize("engine", [*ENGINES])


def eager(engine: str) -> MatcherFactory:
    """Build an index of all pending specs after every evaluated test."""

    def make(hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
        return MemoryMatcher(hierarchy, AT_ONCE._replace(engine=engine))

    return make


def narrow(number: int) -> Spec:
    [spec] = specs_of(parse_predicate(f"(and (>= x {number}) (< x {number + 1}))"))
    return spec


def at(x: float) -> Event:
    return Event("d", "t", {"x": x, "user": "joe"})


@engines
@pytest.mark.parametrize(("seed", "paths", "ids"), [(1, PATHS, 200), (2, FEW_PATHS, 200),
                                                    (1, FEW_PATHS, FEW)])  # fmt: skip
def test_agrees_with_the_scan(engine: str, seed: int, paths: tuple[str, ...], ids: int) -> None:
    assert differs(seeded(seed, 1_500, paths, ids), ScanMatcher, memory=eager(engine)) is None


@engines
def test_agrees_with_the_trees(engine: str) -> None:
    met = filters.differs(filters.seeded(4, 1_500), eager(engine))
    assert isinstance(met, filters.Met), met


@pytest.mark.parametrize("count", [1, 100, 3_000])
def test_ranges_are_soon_in_an_index(count: int) -> None:
    """`auto` was `access` below 50,000: each range was evaluated for every event."""
    matcher = StreamStrategy(AUTO).new()
    for id in range(count):
        matcher.add(id, (narrow(id),))
    random, events = Random(1), 0
    while (tried := matcher.counters.evaluated) < count * limits.TIER_TESTS_EACH * 10 + 2_000:
        found = matcher.match(at(random.randrange(count) + 0.5))
        assert len(found) == 1
        events += 1
        if matcher.counters.evaluated == tried:
            break
    assert events < 3_000 // count + 30
    before = matcher.counters.evaluated
    for x in range(count):
        assert matcher.match(at(x)) == [x]
    assert matcher.counters.evaluated == before


def test_specs_with_a_popular_value_are_indexed_while_ranges_change() -> None:
    """They waited for the ranges; with a new range for each event they were never indexed."""
    matcher = MemoryMatcher()
    for id in range(500):
        matcher.add(id, *specs_of(parse_predicate(f"(and (= user 'joe) (> x {id}))")))
    for id in range(500, 600):
        matcher.add(id, narrow(id))
        matcher.match(at(-1))
    before = matcher.counters.evaluated
    assert sorted(matcher.match(at(100.5))) == [*range(101)]
    assert matcher.counters.evaluated - before < 100


def test_an_index_is_not_built_for_each_change() -> None:
    """Builds never take longer, in tests, than the evaluations that they save."""
    matcher = MemoryMatcher()
    for id in range(1_000):
        matcher.add(id, narrow(id))
    for x in range(40):
        matcher.match(at(x))
    built = matcher.counters.rebuilds
    assert built > 0
    for id in range(1_000, 2_000):
        matcher.remove(id - 1_000)
        matcher.add(id, narrow(id))
        assert matcher.match(at(id)) == [id]
    more = matcher.counters.rebuilds - built
    assert more * limits.TIER_TESTS_FIRST < matcher.counters.evaluated
    assert 0 < more < 60
    assert matcher.counters.evaluated < 400 * 1_000, "most of them are in an index"


def test_equalities_are_never_in_an_index() -> None:
    matcher = MemoryMatcher()
    for id in range(2_000):
        matcher.add(id, Spec(pairs=(("user", f"u{id}"),)))
    for id in range(2_000):
        assert matcher.match(Event("d", "t", {"user": f"u{id}"})) == [id]
    assert (matcher.engines, matcher.counters.evaluated) == (["access"], 0)


def test_specs_with_rare_equalities_stay_in_access() -> None:
    """A test after a rare value costs less than look-ups in many indexes."""
    matcher = MemoryMatcher(options=MemoryOptions(tests_first=100, tests_each=1, tier_max=16))
    for id in range(2_000):
        [spec] = specs_of(parse_predicate(f'(and (= user "u{id}") (> x 5))'))
        matcher.add(id, spec)
    for id in range(2_000):
        assert matcher.match(Event("d", "t", {"user": f"u{id}", "x": 6})) == [id]
    assert matcher.engines == ["access"]


def test_many_ranges_with_one_popular_value_are_in_an_index() -> None:
    matcher = MemoryMatcher()
    for id in range(1_000):
        text = f"(and (= user 'joe) (>= x {id}) (< x {id + 1}))"
        matcher.add(id, specs_of(parse_predicate(text))[0])
    for x in range(50):
        assert matcher.match(at(x)) == [x]
    before = matcher.counters.evaluated
    assert matcher.match(at(500)) == [500]
    assert matcher.counters.evaluated == before


def test_the_size_of_an_index_is_bounded() -> None:
    matcher = MemoryMatcher(options=AT_ONCE)
    for id in range(50):
        matcher.add(id, narrow(id))
        matcher.match(at(id))
    sizes = [len(one) for one in matcher._tiers]
    assert max(sizes) <= AT_ONCE.tier_max
    assert len(sizes) <= 50 // (AT_ONCE.tier_max // 2) + 4, sizes
    for id in range(50):
        matcher.remove(id)
    assert (len(matcher), matcher._tiers, matcher.match(at(3))) == (0, [], [])


def test_tests_that_are_not_keys_are_evaluated_once_per_event() -> None:
    filters = FilterMatcher(new_matcher())
    for id in range(200):
        text = f"(and (> x {id}) (not (= user other)))"
        filters.add(id, specs_of(parse_predicate(text)))
    for _ in range(30):
        assert len(filters.match(at(150))) == 150
    before = filters.counters.evaluated
    assert len(filters.match(at(150))) == 150
    assert filters.counters.evaluated == before + 1


# --- mistakes ---


class ForgetsTombstones(MemoryMatcher):
    def remove(self, id: int) -> None:
        found = self._places.get(id)
        if found is not None:
            found.engine.mark_removed = lambda position: None  # type: ignore[method-assign]
        super().remove(id)


class ForgetsTheRest(MemoryMatcher):
    def _make(self, specs: dict[int, memory_index.KeyedSpec]) -> None:
        super()._make({id: one._replace(rest=()) for id, one in specs.items()})


class LosesOneOfAMergedIndex(MemoryMatcher):
    def _ended(self, one: memory_index.MemoryIndex) -> dict[int, memory_index.KeyedSpec]:
        first, *others = super()._ended(one).items()
        self._places.pop(first[0], None)
        return dict(others)


class KeepsBoth(MemoryMatcher):
    def _make(self, specs: dict[int, memory_index.KeyedSpec]) -> None:
        super()._make(specs)
        for id, one in specs.items():
            self._access.add(id, one.spec)


@pytest.mark.parametrize(
    "wrong", [ForgetsTombstones, ForgetsTheRest, LosesOneOfAMergedIndex, KeepsBoth]
)
def test_a_planted_mistake_is_caught(wrong: type[MemoryMatcher]) -> None:
    def make(hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
        return wrong(hierarchy, AT_ONCE)

    assert caught(make, ScanMatcher, 1_500)


def test_a_constant_verdict_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Passes(EventTestResults):
        def passes(self, tests: object) -> bool:
            return True

    monkeypatch.setattr("registrations.matching.memory_matcher.EventTestResults", Passes)
    assert caught(eager("auto"), ScanMatcher, 1_500)
