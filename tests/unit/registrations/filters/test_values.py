"""The values of an event as a filter sees them, in tables."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.filters.evaluate import holds
from registrations.filters.event_values import meet
from registrations.filters.predicate import parse_predicate
from registrations.filters.values import number_of, ordered, outermost, same
from registrations.filters.wildcard import fits, wildcard_parts
from tests.unit.registrations.filters.trees import VALUES, event, members


def says(text: str, one: Event) -> bool:
    return holds(parse_predicate(text), one)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5), (-2.5, -2.5), (2**70, 2**70), (10**400, 10**400),
        ("10", 10), ("-0", 0), ("1.5", 1.5), ("1e3", 1000.0), ("9007199254740993", 2**53 + 1),
        ("", None), ("abc", None), ("0x10", None), ("010", None), ("+1", None), (" 1", None),
        ("1 ", None), ("1.", None), (".5", None), ("١", None), ("NaN", None), ("1e999", None),
        ("1" * 65, None), (True, None), (None, None), (float("inf"), None), (float("nan"), None),
    ],
)  # fmt: skip
def test_a_number_or_a_text_that_is_written_as_one(value: Any, number: Any) -> None:
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("text", "tags", "holding"),
    [
        ("(= tags 'a)", ["a", "b"], True),
        ("(= tags 'c)", ["a", "b"], False),
        ("(!= tags 'c)", ["a", "b"], True),
        ("(!= tags 'a)", ["a", "b"], False),  # one is equal
        ("(in tags 'c 'b)", ["a", "b"], True),
        ("(prefix tags 'b)", ["a", "bc"], True),
        ("(> tags 5)", [1, 9], True),
        ("(and (> tags 5) (< tags 3))", [1, 9], True),  # each finds a member of its own
        ("(= tags 1)", [True], False),
        ("(= tags 'a)", [["a"]], False),  # a list in a list equals nothing
        ("(= tags 'a)", [{"a": "a"}], False),
        ("(exists tags)", [], True),
        ("(= tags null)", [], False),
        ("(!= tags 'a)", [], False),  # nothing is there to differ
        ("(!= tags 'a)", {}, False),
        ("(> (+ tags 1) 9)", [1, 9], True),
        ("(= tags other)", ["x", "b"], True),
        ("(!= tags other)", ["x", "b"], False),
    ],
)
def test_of_a_list_each_member_counts(text: str, tags: Any, holding: bool) -> None:
    assert says(text, event({"tags": tags, "other": ["b", "y"]})) is holding


@pytest.mark.parametrize(
    ("path", "attributes", "found"),
    [
        ("a.b", {"a": {"b": 1}}, True),
        ("a.b", {"a.b": 1, "a": {"b": 2}}, True),  # the exact name first
        ("a.b", {"a.b": 2, "a": {"b": 1}}, False),
        ("a.b.c", {"a": {"b.c": 1}}, False),  # inside an object a step has no dot
        ("a.0", {"a": [1]}, False),
        ("a.b", {"a": 1}, False),
    ],
)
def test_paths_lead_into_objects(path: str, attributes: dict[str, Any], found: bool) -> None:
    assert says(f"(= {path} 1)", event(attributes)) is found


FULL = Event(
    "cluster", "state", {}, id="7", source="crm", name="n", version="2", node="phys-1",
    application=("billing", "crm"), environment={"trace": "t", "a.b": "c"}, priority=3,
    expires_at_us=2_000_000, time_us=1_000_000, key="k", bundle="b", correlation="c", cause="w",
    summary="s",
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "(= @domain 'cluster)", "(= @type 'state)", "(= @source 'crm)", "(= @name 'n)",
        '(= @version "2")', "(= @node 'phys-1)", "(= @application 'crm)", '(= @id "7")',
        "(= @priority 3)", "(= @key 'k)", "(= @bundle 'b)", "(= @correlation 'c)",
        "(= @cause 'w)", "(= @summary 's)", "(= env.trace 't)", "(= env.a.b 'c)",
        '(= @time "1970-01-01T00:00:01.000000Z")', "(< @time @expires_at)",
    ],
)  # fmt: skip
def test_fields_of_the_envelope_and_the_environment(text: str) -> None:
    assert says(text, FULL)
    path = next(word for word in text.strip("()").split() if word[0] in "@e").rstrip(")")
    empty = Event("", "", {})
    assert not says(text, empty)
    if path != "@priority":  # which every event has
        assert not says(f"(exists {path})", empty)


def test_a_bare_name_is_an_attribute_and_no_field_of_the_envelope() -> None:
    assert not says("(exists type)", FULL)
    assert says("(= type 'error)", event({"type": "error"}, type="state"))


@given(members, members)
def test_an_order_is_one(one: Any, other: Any) -> None:
    assert ordered("<", one, other) == ordered(">", other, one)
    assert ordered("<=", one, other) == ordered(">=", other, one)
    if ordered("<", one, other):
        assert ordered("<=", one, other)
        assert not ordered(">=", one, other)
        assert not same(one, other)


several = st.lists(members, max_size=5)


@given(several, several)
def test_two_lists_are_compared_as_each_with_each(left: list[Any], right: list[Any]) -> None:
    assert meet(tuple(left), tuple(right)) == any(
        same(one, other) for one in left for other in right
    )
    for op in ("<", "<=", ">", ">="):
        least = op in ("<", "<=")
        least_left, most_right = outermost(left, least=least), outermost(right, least=not least)
        each = any(ordered(op, one, other) for one in left for other in right)
        assert any(ordered(op, one, other) for one in least_left for other in most_right) == each


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("text", "holding"),
    [
        ("(= a b)", False),
        ("(!= a b)", True),
        ("(> a b)", False),
        ("(< a b)", True),
        ("(>= a b)", False),
        ("(< a c)", True),
        ("(> a c)", True),
        ("(> (+ a a a a a a a a) 0)", False),  # of more than 1,000 results none
        ("(> (+ a 1) 0)", False),
    ],
)
def test_long_lists_are_compared_in_linear_time(text: str, holding: bool) -> None:
    """A comparison of each pair would take minutes, arithmetic of all pairs would not end."""
    a, b, c = (list(range(begin, begin + 15_000)) for begin in (0, 15_000, 10_000))
    one = event({"a": a, "b": b, "c": c})
    assert says(text, one) is holding


@pytest.mark.parametrize(
    ("text", "holding"),
    [
        ("(= (/ a 0) 1)", False),
        ("(!= (/ a 0) 1)", False),  # undefined
        ("(= (+ a c) 1)", False),
        ("(= (+ a 'x) 1)", False),
        ("(= (* 1e308 10) 1)", False),
        ("(= (- a) -6)", True),
        ("(= (- a 1 2) 3)", True),
        ("(= (/ a 4) 1.5)", True),
        ("(= (+ 9007199254740992 1) 9007199254740993)", True),  # integers stay exact
    ],
)
def test_arithmetic(text: str, holding: bool) -> None:
    assert says(text, event({"a": 6})) is holding


@pytest.mark.parametrize(
    ("pattern", "text", "fitting"),
    [
        ("*", "", True), ("", "", True), ("", "a", False), ("a", "a", True), ("a", "ab", False),
        ("a*", "ab", True), ("*a", "ba", True), ("*a", "ab", False), ("a*a", "a", False),
        ("a*a", "aa", True), ("ab*ba", "aba", False), ("*b*", "abc", True), ("a**c", "abc", True),
        ("a*b*c", "acbc", True), ("a*b*c", "acb", False), ("\\*", "*", True), ("\\*", "a", False),
        ("\\\\*", "\\a", True), ("*.png", "a.png", True), ("*.png", "a.pngx", False),
    ],
)  # fmt: skip
def test_wildcards(pattern: str, text: str, fitting: bool) -> None:
    assert fits(wildcard_parts(pattern), text) is fitting


@pytest.mark.parametrize("pattern", ["\\", "a\\", "\\a", "*\\"])
def test_a_lone_backslash_is_no_wildcard(pattern: str) -> None:
    with pytest.raises(ValueError, match="backslash"):
        wildcard_parts(pattern)


@pytest.mark.timeout(5)
def test_a_wildcard_of_many_stars_is_quick() -> None:
    parts = wildcard_parts("a*" * 2_000 + "b")
    assert not fits(parts, "a" * 60_000)


def test_values_keep_their_type() -> None:
    groups: list[set[Any]] = [{0, 1, -1, 2.5}, {True, False}, {None}, {"", "1"}]
    assert same(1, 1.0)
    assert not same(1, True)
    assert not same("1", 1)
    assert not same(None, False)
    assert all(same(one, one) for group in groups for one in group)
    assert not any(
        same(one, other)
        for group in groups for one in group
        for rest in groups if rest is not group for other in rest
    )  # fmt: skip
    assert not any(same(value, [value]) for value in VALUES)
