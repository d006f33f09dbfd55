"""READY's simple expressions: the errors of invalid texts: position, message and time."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from registrations.filters.ready import parse_ready, print_ready


def refused(text: str) -> tuple[int, int, str]:
    with pytest.raises(FilterSyntax) as caught:
        parse_ready(text)
    error = caught.value
    return error.details["line"], error.details["column"], error.message


@pytest.mark.parametrize(
    ("text", "line", "column", "help_"),
    [
        ("", 1, 1, "empty"),
        (" \n ", 1, 1, "empty"),
        ("$Priority > 5", 1, 1, "Expected a type"),
        ("A $Priority > 5", 1, 3, "expected |"),
        ("group state", 1, 7, "quote a type with spaces"),
        ("A::*x", 1, 1, "`*` replaces"),
        ("A,", 1, 3, "ends too early"),
        ("A |", 1, 4, "ends too early"),
        ("A\n| $a >\n ", 3, 2, "ends too early"),
        ("A\n | $a\n   = 1", 3, 4, "Equality is written ==."),
        ("A | $a == 'x", 1, 11, "no closing quote"),
        ("A | $a == 'x\\n'", 1, 11, "backslash"),
        ("A | $a == \"x\"", 1, 11, "single quotes"),
        ("A | $'a == 1", 1, 5, "no closing quote"),
        ("A | $'' == 1", 1, 5, "is empty"),
        ("A | $ a", 1, 5, "After $ comes the name"),
        ("A | $a[1] == 1", 1, 7, "cannot be indexed"),
        ("A | $a._length > 1", 1, 5, "OMG"),
        ("A | $a && $b", 1, 8, "and, or, not"),
        ("A | $a || $b", 1, 8, "and, or, not"),
        ("A | !$a", 1, 5, "and, or, not"),
        ("A | $a AND $b", 1, 8, "Keywords are written and"),
        ("A | $a == true", 1, 11, "TRUE"),
        ("A | Priority > 5", 1, 5, "A component begins with $"),
        ("A | $a < $b < $c", 1, 13, "cannot be chained"),
        ("A | $a > 1 $b", 1, 12, "`and`, `or` or the end"),
        ("A | not $a > 1", 1, 5, "write not ("),
        ("A | ($a > 1) + 1 > 2", 1, 9, "a comparison has none"),
        ("A | $a and 5", 1, 12, "Expected a condition"),
        ("A | 5", 1, 5, "Expected a condition"),
        ("A | $a + 1", 1, 8, "Expected a condition"),
        ("A | 5 ~ $a", 1, 7, "before ~"),
        ("A | 'a' ~ 'b'", 1, 9, "after ~"),
        ("A | 'a' in 'b'", 1, 12, "Expected a component"),
        ("A | exist 5", 1, 11, "Expected a component"),
        ("A | 007 > $a", 1, 5, "as in JSON"),
        ("A | $a > 5x", 1, 10, "as in JSON"),
        ("A | $a > .5", 1, 10, "as in JSON"),
        ("A | 18446744073709551616 > $a", 1, 5, "64 bits"),
        ("A | -9223372036854775809 > $a", 1, 5, "64 bits"),
        ("A | 1e999 > $a", 1, 5, "too large"),
        ("A | $header.body == 1", 1, 5, "no other body"),
        ("A | $header.colour == 1", 1, 5, "no field $header.colour; there are $header."),
        ("A | ($a > 1", 1, 5, "This parenthesis is not closed."),
        ("{A | $a", 1, 1, "This brace is not closed."),
        ("{A | ($a}", 1, 9, "A parenthesis before this brace"),
        ("A | $a)", 1, 7, "no matching"),
        ("{A | $a)}", 1, 8, "no matching"),
        ("A}", 1, 2, "no matching"),
        ("A | ()", 1, 6, "Expected a component or a value"),
        ("A | $a and and $b", 1, 12, "Expected a component or a value"),
    ],
)  # fmt: skip
def test_errors_have_a_position_and_a_hint(text: str, line: int, column: int, help_: str) -> None:
    found = refused(text)
    assert found[:2] == (line, column)
    assert help_ in found[2]


def nested(depth: int) -> str:
    """Return a filter with `depth` nested forms, including the one of the type."""
    return "A | " + "not " * (depth - 2) + "exist $a"


def test_the_deepest_filter_can_be_printed_and_a_deeper_one_is_refused() -> None:
    deepest = parse_ready(nested(limits.FILTER_DEPTH_MAX))
    assert parse_predicate(printed(deepest.node)) == deepest.node
    assert parse_ready(print_ready(deepest)) == deepest
    with pytest.raises(FilterTooLarge):
        parse_ready(nested(limits.FILTER_DEPTH_MAX + 1))


def test_the_largest_filter_prints_back_and_larger_ones_are_refused() -> None:
    items = (limits.FILTER_PARTS_MAX - 4) // 3  # each of three nodes, and four around them
    largest = parse_ready("A | " + " and ".join(["$a"] * items))
    assert parse_ready(print_ready(largest)) == largest
    assert parse_predicate(printed(largest.node)) == largest.node
    with pytest.raises(FilterTooLarge):
        parse_ready("A | " + " and ".join(["$a"] * (items + 1)))


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("A | " + "(" * 33 + "$a" + ")" * 33, None),
        (
            "A | " + "(" * 34 + "$a" + ")" * 34,
            {"depth_max": limits.FILTER_DEPTH_MAX, "line": 1, "column": 38},
        ),
        ("A | TRUE" + " or ((TRUE))" * 450, None),
        (
            "A | TRUE" + " or ((TRUE))" * 650,
            {"parts_max": limits.FILTER_PARTS_MAX, "line": 1, "column": 6_007},
        ),
    ],
    ids=["33", "34", "450", "650"],
)
def test_redundant_parentheses_are_bounded_too(text: str, bound: dict[str, int] | None) -> None:
    if bound is None:
        assert parse_ready(text)
        return
    with pytest.raises(FilterTooLarge) as caught:
        parse_ready(text)
    assert caught.value.details == bound


@pytest.mark.parametrize(
    "text",
    [
        "A | " + "(" * 8_000 + "$a" + ")" * 8_000,
        "A | " + "(" * 8_000,
        "A | " + "not " * 4_000 + "$a",
        "A | " + "not " * 10_000 + "$a",
        "A | " + "$a and " * 2_000 + "$a",
        "A | " + " + ".join(["$a"] * 300) + " > 1",
        "A," * 8_000 + "A",
        "A | $a == '" + "x" * 1_000_000 + "'",
        "A | TRUE" + " or TRUE" * 2_000,
    ],
    ids=lambda text: f"{text[:16]}_{len(text)}",
)
def test_hostile_texts_are_refused_quickly(text: str) -> None:
    began = time.process_time()
    with pytest.raises(FilterTooLarge):
        parse_ready(text)
    assert time.process_time() - began < 0.5  # a few milliseconds, on a machine that is not busy


@pytest.mark.parametrize(
    "text", ["A | '" + "\\\\" * 8_000, "A | " + "9" * 16_000, "A | $" + "a." * 8_000]
)
def test_long_words_are_parsed_in_linear_time(text: str) -> None:
    began = time.process_time()
    assert refused(text)
    assert time.process_time() - began < 0.5


@given(st.lists(st.sampled_from(
    ["A", "v:", "|", "$a", "$", "'x'", "'", "(", ")", "{", "}", "not ", "and ", " or ", "in ", "~",
     "exist ", "-", "5", ".", "==", "=", ">", ",", "\n", "é", "\\", "::", "*"]), max_size=12)
)  # fmt: skip
def test_any_text_is_parsed_or_refused_with_a_position_in_it(words: list[str]) -> None:
    text = "".join(words)
    try:
        assert parse_ready(print_ready(parse_ready(text))) == parse_ready(text)
    except FilterSyntax as error:
        lines = text.split("\n")
        position: dict[str, Any] = error.details
        assert 1 <= position["line"] <= len(lines)
        assert 1 <= position["column"] <= len(lines[position["line"] - 1]) + 1
        assert error.message
