"""Filters of any shape under every strategy give what their trees say, evaluated one by one: the
normal form, the parts of specs, alternatives and strategies together (G5).
"""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from eventhub.event.envelope import Event
from registrations.filters.predicate import parse_predicate
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import Spec, Specs, specs_of
from registrations.matching.strategies import STRATEGIES, MatcherFactory, new_matcher
from tests.unit.registrations.matching.filters import Met, Step, differs, programs, seeded

SEEDS = range(1, 5)
LENGTH = 1_000
MATCHED_SHARE_MIN = 0.3  # of pairs of an event and a filter
RANDOM_SHARE_MIN = 0.1  # of unseeded cases, whose share varies from run to run

engines = pytest.mark.parametrize("make", [*STRATEGIES.values()], ids=[*STRATEGIES])


def filtering(make: Callable[[], object] = new_matcher, **filters: str) -> FilterMatcher:
    """Return a matcher of filters in predicate form, numbered by their names: `f1`."""
    matcher = FilterMatcher(make())  # type: ignore[arg-type]
    for name, text in filters.items():
        matcher.add(int(name[1:]), specs(text))
    return matcher


def specs(text: str) -> Specs:
    return specs_of(parse_predicate(text))


def event(**attributes: object) -> Event:
    return Event("d", "t", attributes)


@engines
@pytest.mark.parametrize("seed", SEEDS)
def test_strategies_agree_with_the_trees(make: MatcherFactory, seed: int) -> None:
    met = differs(seeded(seed, LENGTH), make)
    assert isinstance(met, Met), met
    assert met.matched / met.pairs >= MATCHED_SHARE_MIN


@pytest.mark.slow
def test_strategies_agree_with_random_trees() -> None:
    found: list[Met] = []

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=programs())
    def agree(steps: list[Step]) -> None:
        for make in STRATEGIES.values():
            met = differs(steps, make)
            assert isinstance(met, Met), met
            found.append(met)

    agree()
    pairs, matched = (sum(column) for column in zip(*found, strict=True))
    assert matched / pairs >= RANDOM_SHARE_MIN, (matched, pairs)


@engines
def test_an_event_that_matches_several_alternatives_is_returned_once(make: MatcherFactory) -> None:
    matcher = filtering(make, f1="(or (= a 1) (= b 2) (> c 3))", f2="(= a 1)")
    assert sorted(matcher.match(event(a=1, b=2, c=4))) == [1, 2]
    assert matcher.match(event(c=4)) == [1]
    assert len(matcher) == 2


@engines
def test_a_filter_is_removed_with_all_its_alternatives(make: MatcherFactory) -> None:
    matcher = filtering(make, f1="(or (= a 1) (> b 2))", f2="(or (= a 1) (= b 5))")
    matcher.remove(1)
    matcher.remove(1)
    assert matcher.match(event(a=1, b=3)) == [2]
    matcher.add(2, specs("(= c 1)"))
    assert matcher.match(event(a=1, b=5)) == []
    assert matcher.match(event(c=1)) == [2]
    matcher.add(2, specs("(or (= c 2) (= c 3))"))
    assert [matcher.match(event(c=c)) for c in (1, 2, 3)] == [[], [2], [2]]
    assert len(matcher) == 1


@engines
def test_a_filter_that_never_matches_counts_and_can_be_removed(make: MatcherFactory) -> None:
    matcher = filtering(make, f1="(and (= a 1) (not (= a 1)))", f2="(or true (= a 1))")
    assert (matcher.match(event(a=1)), len(matcher)) == ([2], 2)
    matcher.remove(1)
    matcher.remove(2)
    assert (matcher.match(event(a=1)), len(matcher)) == ([], 0)


def test_specs_of_a_filter_have_gates_pairs_and_tests() -> None:
    assert specs("(and (= @domain 'd) (= @type 't) (= a 1) (> b 2))") == (
        Spec("d", "t", (("a", 1),), None, specs("(> b 2)")[0].tests),
    )
    assert specs("(or (= a 1) (= b 2))") == (Spec(pairs=(("a", 1),)), Spec(pairs=(("b", 2),)))
    assert specs("true") == (Spec(),)
    assert specs("false") == ()
    assert specs("(type 'd::*)") == (Spec("d"),)
    (one,) = specs("(type 'd::t)")
    assert (one.domain, one.type, len(one.tests)) == ("d", None, 1)  # or a declared subtype of t
    (both,) = specs("(and (= @application 'a) (= @application 'b))")
    assert (both.application, len(both.tests)) == ("a", 1)


@engines
def test_an_empty_text_of_the_envelope_is_missing_for_a_filter(make: MatcherFactory) -> None:
    matcher = filtering(make, f1='(= @domain "")', f2='(not (= @type ""))')
    assert matcher.match(Event("", "", {})) == [2]


@engines
def test_supertypes_come_from_the_hierarchy_of_the_matcher(make: MatcherFactory) -> None:
    matcher = FilterMatcher(make(lambda event: (event.type, "disk", "device")))
    matcher.add(1, specs("(type 'd::device)"))
    matcher.add(2, specs("(type 'd::disk.full)"))
    matcher.add(3, specs("(not (type '*::disk))"))
    assert matcher.match(Event("d", "disk.full", {})) in ([1, 2], [2, 1])
    assert sorted(matcher.match(Event("d", "x", {}))) == [1]
