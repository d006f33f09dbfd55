"""The budget of a filter: tests evaluated for every event count, few of those behind a key do."""

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.normal import normal
from registrations.filters.predicate import parse_predicate
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.cost import every_event_cost
from registrations.matching.spec import specs_of_form
from registrations.matching.strategies import STRATEGIES
from tests.benchmarks import bombs

FREE = limits.FILTER_FOUND_FREE
MANY = " ".join(f'(not (wildcard note "*{n}*q"))' for n in range(FREE))
SUMS = "(> (+ a b c) 3)"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        # found by an event's values, by its gate, or shared with equal filters
        ("true", 0),
        ("false", 0),
        ("(= a 1)", 0),
        ('(and (= @domain "d") (= @type "t"))', 0),
        ('(type "d::order")', 0),
        ("(> load 5)", 0),
        ('(in state "on" "off")', 0),
        ('(and (= a 1) (wildcard note "*b*c*"))', 0),
        ('(and (prefix node "n1-") (> load 5) (not (exists q)))', 0),
        ('(or (= a 1) (and (> load 5) (substring note "b")))', 0),
        # evaluated for every event
        ("(exists a)", 0),
        ("(not (exists a))", 1),
        ("(!= a 1)", 1),
        ('(substring note "b")', 1),
        ('(prefix note "")', 1),
        ('(and (= @domain "d") (= @type "t") (substring note "b"))', 1),
        ('(= @source "s")', 1),
        ("(not (= a 1))", 1),
        ("(or (= a 1) (not (exists b)) (!= c 1))", 2),
        ('(wildcard note "a*b")', 1),
        ('(wildcard note "*a*b*c*")', 3),
        (SUMS, 3),
        (f"(not (in a {' '.join(map(str, range(80)))}))", 11),
        ('(cel "a + 1 > b")', 5),
        ('(cel "a == b")', 3 + 8),  # both may be long lists
        ('(cel "l.all(i, i > 1)")', 2 + 16 * 3),
        # behind a key: more than usual filters have
        (f"(and (= a 1) {MANY})", 0),
        (f"(and (= a 1) {MANY} (> b 5) (> c 5))", 2),
        (f"(and (> a 1) {MANY})", 1),
        ("(within a (and (= b 1) (= c 2)))", 0),
        ("(within a (not (= b 1)))", 4),
        ("(within a (not (> b c)))", 4 * 16),
        ("(within a (not (> (+ b c) 1)))", 4 * 16 * 2),
        (f"(within a (and (= b 1) {MANY}))", 3 * FREE + 4),
        (f"(or (and (= a 1) {MANY}) (and (= b 1) {MANY}))", FREE),
        (f"(or (and (= a 1) {MANY}) {SUMS})", 3),
    ],
)
def test_the_every_event_cost_a_filter(text: str, counts: int) -> None:
    assert every_event_cost(normal(parse_predicate(text))) == counts


@pytest.mark.parametrize(
    ("text", "by_values", "by_nothing"),
    [
        ("(= a 1)", 0, 1),
        ("true", 0, 1),
        ('(and (= @domain "d") (= a 1) (= b 2))', 0, 3),
        ("(> load 5)", 1, 1),
        ("(and (> load 5) (< load 6))", 2, 2),
        ("(exists a)", 1, 1),
        ('(and (= a 1) (substring note "b"))', 0, 2),
        ("(or (= a 1) (> load 5))", 1, 2),
    ],
)
def test_the_budget_depends_on_the_strategy(text: str, by_values: int, by_nothing: int) -> None:
    """A range was free with every strategy, though `access` evaluates it for every event."""
    form = normal(parse_predicate(text))
    assert {every_event_cost(form, name) for name in ("auto", "index")} == {0}
    assert {every_event_cost(form, name) for name in ("access", "counting", "compile")} == {
        by_values
    }
    others = ("sig", "memo", "lattice", "scan")
    assert {every_event_cost(form, name) for name in others} == {by_nothing}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_strategy_evaluates_more_for_an_event_than_the_budget(strategy: str) -> None:
    """Except after a found value, where the first tests are free."""
    matcher, counted = FilterMatcher(STRATEGIES[strategy]()), 0
    for id in range(40):
        text = f"(and (> load {id}) (> load {id}.5))" if id % 2 else f"(and (= a {id}) (> b 1))"
        form = normal(parse_predicate(text))
        counted += every_event_cost(form, strategy)
        matcher.add(id, specs_of_form(form))
    event = Event("d", "t", {"load": 100, "a": 0, "b": 2})
    for _ in range(300):
        assert len(matcher.match(event)) == 21
    before = matcher.counters.evaluated
    matcher.match(event)
    assert matcher.counters.evaluated - before <= counted + 1


def test_about_ten_of_the_costliest_filters_exhaust_the_budget() -> None:
    counts = every_event_cost(normal(parse_predicate(bombs.costliest(1))))
    assert limits.FILTERS_TRIED_MAX / counts < 12
    behind = f'(and (= kind "x") {bombs.costliest(1)})'
    assert every_event_cost(normal(parse_predicate(behind))) == counts - FREE
