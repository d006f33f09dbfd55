"""Conditions: which are equal, how often they are evaluated, and their removal."""

import sys
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Exists, Not, Path, TextPosition
from registrations.filters.predicate import parse_predicate
from registrations.matching.alternatives import FIRST, FilterMatcher
from registrations.matching.compile_matcher import CompileMatcher
from registrations.matching.conditions import anchor_of
from registrations.matching.counting import CountingMatcher
from registrations.matching.matcher import Matcher
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.spec import Spec, specs_of
from registrations.matching.strategies import STRATEGIES, MatcherFactory
from tests.unit.registrations.matching.conditions import hierarchy
from tests.unit.registrations.matching.filters import Take, seeded

engines = pytest.mark.parametrize("make", [*STRATEGIES.values()], ids=[*STRATEGIES])
sharing = pytest.mark.parametrize("make", [RarestPairMatcher, CountingMatcher, CompileMatcher])
indexed = pytest.mark.parametrize("make", [RarestPairMatcher, CompileMatcher])


def filtering(matcher: Matcher, *texts: str) -> FilterMatcher:
    filters = FilterMatcher(matcher)
    for id, text in enumerate(texts):
        filters.add(id, specs_of(parse_predicate(text)))
    return filters


def event(**attributes: object) -> Event:
    return Event("d", "t", attributes)


def evaluated(matcher: Matcher | FilterMatcher, given: Event) -> int:
    before = matcher.counters.evaluated
    matcher.match(given)
    return matcher.counters.evaluated - before


# --- the same test ---


@engines
def test_constants_that_are_equal_in_python_are_different_tests(make: MatcherFactory) -> None:
    """1, 1.0 and true are one key of a Python dictionary."""
    values = (1, True, 1.0, 0, False, 0.0, None, "1")
    matcher = make()
    for id, value in enumerate(values):
        matcher.add(id, Spec(tests=(Compare("<=", Path("x"), Const(value)),)))
        matcher.add(10 + id, Spec(tests=(Not(Compare("=", Path("x"), Const(value))),)))
    assert sorted(matcher.match(event(x=1))) == [0, 2, 7, 11, 13, 14, 15, 16, 17]
    assert sorted(matcher.match(event(x=True))) == [10, 12, 13, 14, 15, 16, 17]


@engines
def test_arithmetic_with_an_integer_and_with_a_float_differs(
    make: MatcherFactory,
) -> None:
    """2**53 + 1 is exact, 2.0**53 + 1 is not, and the two constants are equal in Python."""
    filters = filtering(
        make(),
        f"(= (+ x {2**53}) {2**53 + 1})",
        f"(= (+ x {float(2**53)!r}) {2**53 + 1})",
        f"(or (= (+ x {float(2**53)!r}) {2**53 + 1}) (= (+ x {2**53}) {2**53 + 1}))",
    )
    assert sorted(filters.match(event(x=1))) == [0, 2]


@sharing
def test_tests_that_differ_in_position_only_are_equal(make: type[Matcher]) -> None:
    here, there = (Compare(">", Path("x"), Const(3), TextPosition(1, at)) for at in (1, 9))
    matcher = make()
    matcher.add(1, Spec("d", tests=(here,)))
    matcher.add(2, Spec(None, tests=(there,)))
    matcher.add(3, Spec(tests=(there, Exists(Path("x")))))
    assert sorted(matcher.match(event(x=4))) == [1, 2, 3]
    assert evaluated(matcher, event(x=4)) == 2
    assert evaluated(matcher, event(x=3)) == 1


@sharing
def test_a_shared_test_is_evaluated_once_per_event(make: type[Matcher]) -> None:
    matcher = make()
    for id in range(100):
        test = Compare("!=", Path("x"), Const("q"))
        matcher.add(id, Spec(pairs=(("a", 1), ("b", id % 2)), tests=(test,)))
        matcher.add(100 + id, Spec(pairs=(("a", 1), ("c", id)), tests=(test,)))
    assert evaluated(matcher, event(a=1, b=1, c=7, x="p")) == 1
    older_first = make is CompileMatcher  # the test is older than most values of c
    assert evaluated(matcher, event(a=1, c=1_000, x="p")) == older_first


# --- which conjunctions are visited ---

ANCHORS: list[tuple[str, str | None]] = [
    ("(> x 3)", "x"),
    ("(< 3 x)", "x"),
    ("(exists a.b)", "a.b"),
    ("(prefix x 'a)", "x"),
    ("(in x 1 2)", "x"),
    ("(!= @source x)", "x"),
    ("(> (+ x 1) y)", "x"),
    ("(and (not (exists x)) (exists y))", "y"),
    ("(not (> x 3))", None),
    ("(= @source 'a)", None),
    ("(> env.trace 3)", None),
    ("(type 'd::t)", None),
]


@pytest.mark.parametrize(("text", "path"), ANCHORS)
def test_an_anchor_is_a_required_attribute(text: str, path: str | None) -> None:
    (spec,) = specs_of(parse_predicate(text))
    assert anchor_of(spec.tests) == path


def test_a_spec_without_pairs_costs_nothing_without_its_attribute() -> None:
    filters = filtering(RarestPairMatcher(), *(f"(> n{n}.inside {n})" for n in range(100)))
    given = event(n5={"inside": 6}, n6={"inside": 6}, n7=1)
    assert filters.match(given) == [5]
    assert evaluated(filters, given) == 2


def test_a_spec_without_pairs_costs_nothing_for_other_types() -> None:
    texts = [f"(and (type '*::t{n}) (> x 1))" for n in range(100)]
    filters = filtering(RarestPairMatcher(lambda event: (event.type, "t5")), *texts)
    given = Event("", "t7", {"x": 2})
    assert sorted(filters.match(given)) == [5, 7]
    assert evaluated(filters, given) == 3  # two types, and one test that both have
    assert filters.match(Event("", "t7", {})) == []


def test_tests_are_evaluated_only_if_the_pairs_hold() -> None:
    filters = filtering(
        RarestPairMatcher(), *(f"(and (= a {n}) (= b 1) (> x {n}))" for n in range(100))
    )
    assert filters.match(event(a=7, b=1, x=50)) == [7]
    assert evaluated(filters, event(a=7, b=1, x=50)) == 1
    assert evaluated(filters, event(a=7, x=50)) == 0


# --- removal ---


@sharing
def test_a_test_stays_while_one_conjunction_has_it(make: type[Matcher]) -> None:
    matcher = make()
    test = Compare(">", Path("x"), Const(3))
    for id, pairs in enumerate([(), (("a", 1),), (("a", 1), ("b", 1))]):
        matcher.add(id, Spec(pairs=pairs, tests=(test,)))
    for id, left in enumerate([[1, 2], [2], []]):
        matcher.remove(id)
        assert sorted(matcher.match(event(a=1, b=1, x=4))) == left
        assert matcher.match(event(a=1, b=1, x=3)) == []


def _lengths(lists: dict[str, list[Any]]) -> dict[str, int]:
    return {name: len(found) for name, found in lists.items()}


def contents(matcher: Matcher) -> list[object]:
    """Return all that a matcher with an index stores of its registrations."""
    if isinstance(matcher, CompileMatcher):
        return [*matcher.size()]
    assert isinstance(matcher, RarestPairMatcher)
    gates = [
        (gate.key, len(gate.loose), [*map(_lengths, (gate.anchored, gate.typed))])
        for gate in matcher._gates.values()
    ]
    prefixes = [dict(sorted(gate.prefixes.items())) for gate in matcher._gates.values()]
    return [matcher.size(), sorted(gates, key=repr), prefixes, len(matcher._tests)]


@indexed
def test_removed_filters_leave_no_test_no_anchor_and_no_path(make: type[Matcher]) -> None:
    texts = ("(> a.b 1)", "(and (= c 1) (not (exists d.e)))", "(or (= x 1) (> y 2))")
    matcher = make()
    filters = filtering(matcher, *texts)
    before = contents(matcher)
    for id in range(10, 60):
        typed = f"(and (type 'd::t{id % 5}) (> a.b {id}))"
        more = f"(or {texts[id % 3]} (> m.n{id % 7} {id}) (and (= c 1) (< a.b {id})) {typed})"
        filters.add(id, specs_of(parse_predicate(more)))
    assert contents(matcher) != before
    for id in range(10, 60):
        filters.remove(id)
    assert contents(matcher) == before
    assert len(filters) == 3


@indexed
def test_nothing_is_left_after_all_filters_are_removed(make: type[Matcher]) -> None:
    matcher = make(hierarchy)  # type: ignore[call-arg]
    filters = FilterMatcher(matcher)
    taken = set()
    for step in seeded(1, 1_500):
        if isinstance(step, Take):
            filters.add(step.id, specs_of(step.node))
            taken.add(step.id)
        elif isinstance(step, Event):
            filters.match(step)
        else:
            filters.remove(step.id)
    for id in taken:
        filters.remove(id)
    assert contents(matcher) == contents(make())
    assert (len(filters), filters._numbers, filters._filters) == (0, {}, {})


def test_numbers_of_alternatives_ascend_and_never_reach_those_of_filters() -> None:
    """A sorted list then grows at its end; 4 * 10**18 numbers suffice."""
    filters = filtering(RarestPairMatcher(), *(["(or (= a 1) (= b 1))"] * 3))
    numbers = [number for each in filters._numbers.values() for number in each]
    assert numbers == sorted(numbers) == list(range(FIRST, FIRST + 6))
    assert -sys.maxsize < FIRST < -(10**18)
