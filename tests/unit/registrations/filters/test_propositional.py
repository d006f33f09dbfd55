"""The propositional language: which properties there are."""

import pytest

from eventhub.base import limits
from registrations.filters.ast import And, Exists, Or, Path
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.filters.propositional import parse_propositional

A, B, C = (Exists(Path(name)) for name in "ABC")


def test_a_text_is_parsed_into_a_tree() -> None:
    assert parse_propositional("(and A (or B C))") == And((A, Or((B, C))))
    assert parse_propositional("(A B C)") == And((A, B, C))
    assert parse_propositional("((A))") == And((And((A,)),))


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, 1, "empty"),
        ("(and)", 1, 2, "at least one name"),
        ("()", 1, 1, "parentheses are empty"),
        ("A B", 1, 1, "begins with a parenthesis"),
        ("(and A\n  (or B 5))", 2, 9, "names only"),
        ("(and A 'x)", 1, 8, "names only"),
        ("(= A 5)", 1, 2, "to compare values"),
        ("(not A)", 1, 2, "predicate language"),
        ("(and A B.c)", 1, 8, "not a top-level"),
        ("@type", 1, 1, "not a top-level"),
        ("$a", 1, 1, "not a top-level"),
        # texts of other languages, without blanks
        ("T|$a>5", 1, 1, "in back quotes"),
        ("MyAlarm|$Priority>5", 1, 1, "in back quotes"),
        ("{Ev1:MyAlarm|$Priority>5}", 1, 1, "in back quotes"),
        ("state=online", 1, 1, "in back quotes"),
        ("(and A size>9)", 1, 8, "in back quotes"),
        ("plant::*", 1, 1, "in back quotes"),
        ("a&&b", 1, 1, "in back quotes"),
        ("(and A []B)", 1, 8, "in back quotes"),
        ("(and A", 1, 1, "not closed"),
        ("(and A))", 1, 8, "no matching"),
        ("(A) (B)", 1, 5, "ended before"),
        ('"A', 1, 1, "no closing"),
    ],
)
def test_errors_have_the_position(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(FilterSyntax, match=says) as caught:
        parse_propositional(text)
    assert caught.value.details == {"line": line, "column": column}


@pytest.mark.parametrize(
    "text",
    [
        "(" * (limits.FILTER_DEPTH_MAX + 1) + "A" + ")" * (limits.FILTER_DEPTH_MAX + 1),
        "(" + "A " * (limits.FILTER_PARTS_MAX + 1) + ")",
        "A" * (limits.FILTER_CHARS_MAX + 1),
    ],
    ids=["depth", "parts", "chars"],
)
def test_a_text_beyond_a_limit_is_refused(text: str) -> None:
    with pytest.raises(FilterTooLarge):
        parse_propositional(text)
