"""The semantics of matching, equal for every strategy."""

from collections.abc import Callable
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.pairs import Pairs, parse_pairs
from registrations.matching.index import IndexMatcher
from registrations.matching.matcher import Matcher
from registrations.matching.spec import Spec, spec_of
from registrations.matching.strategies import STRATEGIES, new_matcher

engines = pytest.mark.parametrize("make", [*STRATEGIES.values()], ids=[*STRATEGIES])
Make = Callable[[], Matcher]


def matches(make: Make, pairs: dict[str, Any], attributes: dict[str, Any]) -> bool:
    matcher = make()
    matcher.add(7, Spec(pairs=tuple(pairs.items())))
    return matcher.match(Event("d", "t", attributes)) == [7]


EQUALITY: list[tuple[Any, Any, bool]] = [
    (1, 1, True),
    (1, 1.0, True),
    (1.0, 1, True),
    (1, "1", False),
    (1, True, False),
    (True, 1, False),
    (0, False, False),
    (True, True, True),
    (False, None, False),
    (None, None, True),
    (None, "", False),
    (0.0, -0.0, True),
    (2**53 + 1, float(2**53), False),
    (2**53, float(2**53), True),
    (2**53 + 1, 2**53 + 1, True),
    (10**30, 1e30, False),
    ("é", "e\u0301", False),
    ("x", "x\0", False),
    ("x", "X", False),
    ("Bergen", "bergen", False),
    ("straße", "STRASSE", False),
    ("ı", "i", False),
    ("x", ["x"], True),
    (None, [], False),
    (1, [1], True),
    (1, [2, 1, 1], True),
    (1, [[1]], False),
    (None, [None], True),
    (1, [True, "1"], False),
    (1, {"a": 1}, False),
    (float("nan"), float("nan"), False),
]


@engines
@pytest.mark.parametrize(("value", "given", "same"), EQUALITY)
def test_values_are_equal_as_json(make: Make, value: Any, given: Any, same: bool) -> None:
    assert matches(make, {"a": value}, {"a": given}) == same
    assert matches(make, {"a": value, "b": 1}, {"a": given, "b": 1}) == same


PATHS: list[tuple[str, dict[str, Any], bool]] = [
    ("a.b", {"a.b": 1}, True),
    ("a.b", {"a": {"b": 1}}, True),
    ("a.b", {"a.b": 2, "a": {"b": 1}}, False),  # the exact name first
    ("a.b", {"a.b": 1, "a": {"b": 2}}, True),
    ("a.b", {"a.b": {}, "a": {"b": 1}}, False),
    ("a.b.c", {"a": {"b.c": 1}}, False),  # names with a dot are found at the top level only
    ("a.b.c", {"a.b": {"c": 1}}, False),
    ("a.b.c", {"a.b": 2, "a": {"b": {"c": 1}}}, True),
    ("a.b.c.d", {"a": {"b": {"c": {"d": 1}}}}, True),
    ("a.0", {"a": [1]}, False),
    ("a.b", {"a": [{"b": 2}, {"b": 1}]}, True),  # in the objects of a list
    ("a.b", {"a": [{"c": 1}, 1, "b"]}, False),
    ("a.b", {"a": [{"b": [2, 1]}]}, True),  # members of lists in them, too
    ("a.b", {"a": [{"b": [[1]]}]}, False),
    ("a.b", {"a": [[{"b": 1}]]}, False),  # a list in a list is not opened
    ("a.b", {"a": [{"b": {"c": 1}}]}, False),
    ("a.b", {"a.b": 2, "a": [{"b": 1}]}, False),
    ("a.b.c", {"a": [{"b": 1}, {"b": [{"c": 3}, {"c": 1}]}]}, True),
    ("a.b.c", {"a": [{"b.c": 1}]}, False),
    ("a.b.c", {"a.b": [{"c": 1}]}, False),
    ("a.", {"a": [{"": 1}]}, True),
    ("a", {"a": {"": 1}}, False),
    ("a.", {"a": {"": 1}}, True),
    (".", {"": {"": 1}}, True),
    ("", {"": 1}, True),
    ("", {}, False),
    ("x=1", {"x": 1}, False),
    ("x\0y", {"x": {"y": 1}}, False),
]


@engines
@pytest.mark.parametrize(("path", "attributes", "found"), PATHS)
def test_a_path_is_an_exact_name_or_leads_inside(
    make: Make, path: str, attributes: dict[str, Any], found: bool
) -> None:
    assert matches(make, {path: 1}, attributes) == found
    assert matches(make, {path: 1, "z": 2}, {**attributes, "z": 2}) == found


@engines
def test_the_same_path_with_two_values_never_matches(make: Make) -> None:
    matcher = make()
    matcher.add(1, Spec(pairs=(("a.b", 1), ("a.b", 2))))
    assert matcher.match(Event("d", "t", {"a.b": 1, "a": {"b": 2}})) == []


GATES: list[tuple[str | None, str | None, bool]] = [
    ("a", "b:c", True),
    ("a", None, True),
    (None, "b:c", True),
    (None, None, True),
    ("a:b", "c", False),
    ("a", "b", False),
    ("", "b:c", False),
    ("a", "", False),
    ("b:c", "a", False),
]


@engines
@pytest.mark.parametrize(("domain", "type", "open"), GATES)
def test_a_gate_is_equal_as_a_whole_or_any(
    make: Make, domain: str | None, type: str | None, open: bool
) -> None:
    for pairs in ((), (("x", 1),), (("x", 1), ("y", 2))):
        matcher = make()
        matcher.add(1, Spec(domain, type, pairs))
        assert (matcher.match(Event("a", "b:c", {"x": 1, "y": 2})) == [1]) == open


@engines
def test_a_number_is_replaced_and_removed_idempotently(make: Make) -> None:
    matcher = make()
    one, two = Event("d", "t", {"a": 1}), Event("d", "t", {"a": 2})
    matcher.add(5, Spec(pairs=(("a", 1),)))
    matcher.add(5, Spec(pairs=(("a", 2),)))
    assert (matcher.match(one), matcher.match(two), len(matcher)) == ([], [5], 1)
    matcher.remove(5)
    matcher.remove(5)
    assert (matcher.match(two), len(matcher)) == ([], 0)


@engines
def test_equal_specs_under_several_numbers_all_match(make: Make) -> None:
    matcher = make()
    for id in (3, 1, 2):
        matcher.add(id, Spec("d", "t", (("a", 1), ("b", 1.0))))
        matcher.add(id + 10, Spec("d", "t", (("b", 1), ("a", 1.0))))
    matcher.remove(12)
    assert sorted(matcher.match(Event("d", "t", {"a": 1, "b": 1}))) == [1, 2, 3, 11, 13]


def test_the_pairs_language_gives_a_spec() -> None:
    parsed = parse_pairs({"domain": "d", "attributes": {"a": 1, "b": None}})
    assert parsed == Pairs("d", None, (("a", 1), ("b", None)))
    assert spec_of(parsed) == Spec("d", None, (("a", 1), ("b", None)))


def test_the_error_of_an_unknown_strategy_lists_the_known_ones() -> None:
    assert isinstance(new_matcher(), IndexMatcher)
    with pytest.raises(ValueError, match="access, counting, sig, memo, lattice, compile, scan"):
        new_matcher("quick")
