"""The estimated cost of a filter agrees with the work of the matcher."""

import pytest

from eventhub.event.envelope import Event
from registrations.filters.normal import normal
from registrations.filters.predicate import parse_predicate
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.cost import FilterCost, cost_of
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.spec import specs_of


def cost(text: str) -> FilterCost:
    return cost_of(normal(parse_predicate(text)))


@pytest.mark.parametrize(
    ("text", "reached_by", "every_event", "pairs", "tests"),
    [
        ("(= a 1)", [("pair", ("a",))], False, 1, 0),
        ("(and (= a 1) (= b 2) (> c 3))", [("pair", ("a", "b"))], False, 2, 1),
        ("(or (= a 1) (> b 2))", [("pair", ("a",)), ("attribute", ("b",))], False, 1, 1),
        ("(and (= @type 't) (not (exists q)))", [("gate", ("type",))], False, 0, 1),
        ("(not (exists q))", [("event", ())], True, 0, 1),
        ("true", [("event", ())], True, 0, 0),
        ("false", [], False, 0, 0),
    ],
)
def test_how_a_spec_is_reached(
    text: str,
    reached_by: list[tuple[str, tuple[str, ...]]],
    every_event: bool,
    pairs: int,
    tests: int,
) -> None:
    found = cost(text)
    assert [tuple(one) for one in found.reached_by] == reached_by
    assert (found.every_event, found.pairs, found.tests) == (every_event, pairs, tests)


@pytest.mark.parametrize("text", ["(= a 1)", "(> b 2)", "(and (= @type 't) (not (exists q)))",
                                  "(not (exists q))", "(and (= a 1) (> b 2))"])  # fmt: skip
def test_an_event_that_does_not_reach_a_spec_touches_nothing(text: str) -> None:
    filters = FilterMatcher(RarestPairMatcher())
    filters.add(1, specs_of(parse_predicate(text)))
    filters.match(Event("d", "other", {"none": 0}))
    assert (filters.counters.touched > 0) == cost(text).every_event
