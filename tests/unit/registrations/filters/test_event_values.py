"""Tests of long lists are evaluated once, with the result of a test of each member."""

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from registrations.filters.ast import Compare, Const, In, Node, Not, Path, Text
from registrations.filters.evaluate import holds
from registrations.filters.event_values import FEW, EventValues
from registrations.filters.predicate import parse_predicate
from registrations.filters.value_sets import ValueSet
from tests.unit.registrations.filters.trees import event

TAGS = Path("tags")
TEXTS = ("", "a", "b", "ab", "ba", "a\0", "\0", "b\0a", "a*b", "10", "9", "é", "aab", "bba")
members = st.sampled_from((*TEXTS, 1, 1.0, 10, 2**53 + 1, -0.0, True, False, None, [1], {"a": 1}))
consts = st.sampled_from((*TEXTS, 1, 1.0, 10, 2**53 + 1, 0, True, False, None)).map(Const)
words = st.sampled_from((*TEXTS, "\0b", "b\n", "*", "a*", "*b", "*a*", "a*b", "*a*b*", "\\*"))
tests = st.one_of(
    st.builds(Compare, st.sampled_from(("=", "<", "<=", ">", ">=")), st.just(TAGS), consts),
    st.builds(In, st.just(TAGS), st.lists(consts, min_size=1, max_size=3).map(tuple)),
    st.builds(Text, st.sampled_from(("prefix", "suffix", "substring")), st.just(TAGS), words),
    st.builds(Text, st.just("wildcard"), st.just(TAGS), words),
)


@given(st.lists(members, max_size=3 * FEW), st.lists(tests, min_size=1, max_size=5))
def test_a_test_of_a_list_holds_if_it_does_for_a_member(given: list[Any], asked: list[Any]) -> None:
    values = EventValues(event({"tags": given}))
    alone = [event({"tags": one}) for one in given if not isinstance(one, list | dict)]
    for test in asked * 2:  # the second time it is known
        assert holds(test, values) == any(holds(test, one) for one in alone)
        assert holds(Not(test), values) != holds(test, values)
        if isinstance(test, Compare) and test.op == "=":
            unlike = Compare("!=", test.left, test.right)
            assert holds(unlike, values) == (bool(alone) and not holds(test, values))


def test_a_long_list_is_looked_at_as_a_whole_and_a_short_one_is_not() -> None:
    values = EventValues(event({"long": list(range(FEW + 1)), "short": list(range(FEW))}))
    assert isinstance(values.of(Path("long")), ValueSet)
    assert values.of(Path("long")) is values.of(Path("long"))
    assert not isinstance(values.of(Path("short")), ValueSet)


@pytest.mark.parametrize(
    "test",
    [
        *("(> tags {})", "(= tags {})", "(!= tags {})", "(in tags {} 'y)", "(= tags other)"),
        *('(prefix tags "x{}")', '(suffix tags "x{}")', '(substring tags "x{}")'),
        *('(wildcard tags "x{}*1")', "(> (* some more) {})", '(wildcard tags "*x*{}*")'),
    ],
)
def test_hundreds_of_tests_of_long_lists_cost_little_more_than_one(test: str) -> None:
    """One such event against one such filter took 12 s, and stopped a stream's callbacks."""
    tags = [*map(str, range(8_000)), *(["1"] * 8_000)]
    some = {"tags": tags, "other": [*range(16_000)], "some": [1] * 9, "more": [1] * 11}
    one = seconds([parse_predicate(test.format(100_000))], some)
    many = seconds([parse_predicate(test.format(100_000 + n)) for n in range(300)], some)
    assert many < 30 * one + 0.1, "each with each would be 300 times as much"


def seconds(nodes: list[Node], attributes: dict[str, Any]) -> float:
    values = EventValues(event(attributes))
    before = process_time()
    for node in nodes:
        holds(node, values)
    return process_time() - before


def test_of_too_many_results_of_a_calculation_nothing_comes() -> None:
    most = limits.ARITHMETIC_RESULTS_MAX
    assert holds(parse_predicate("(= (+ a 1) 2)"), event({"a": [1] * most}))
    assert not holds(parse_predicate("(= (+ a 1) 2)"), event({"a": [1] * (most + 1)}))
    assert not holds(parse_predicate("(!= (+ a 1) 5)"), event({"a": [1] * (most + 1)}))
    assert holds(parse_predicate("(= (+ a b) 2)"), event({"a": [1] * 10, "b": [1] * (most // 10)}))


def test_a_calculation_is_made_once() -> None:
    values = EventValues(event({"a": [1] * 20}))
    node = parse_predicate("(> (+ a 1) 5)")
    assert isinstance(node, Compare)
    assert values.of(node.left) is values.of(node.left)
