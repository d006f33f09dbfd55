"""docs/patterns.md is true: its table, its time lines, its patterns, programs and limits."""

import re
from itertools import pairwise

import pytest

from eventhub.base import limits
from registrations.patterns.grammar import FUNCTIONS
from registrations.patterns.parser import parse_pattern
from registrations.patterns.printed import print_pattern
from tests.unit.registrations.patterns.page import (
    PAGE,
    blocks,
    drawn,
    events_of,
    expected_of,
    fed,
    matches_of,
    rows,
    timeline,
)


@pytest.mark.parametrize(("pattern", "events", "matches"), rows())
def test_the_table_is_true(pattern: str, events: str, matches: str) -> None:
    assert matches_of(fed(pattern, events_of(events))) == expected_of(matches)


@pytest.mark.parametrize("block", blocks("timeline"))
def test_the_time_lines_are_true(block: str) -> None:
    pattern, events, marks = timeline(block)
    assert drawn(matches_of(fed(pattern, events)), len(events)) == marks
    assert any(mark.endswith("*") for below in marks for mark in below)


def test_the_page_has_a_time_line_and_rows_for_every_operator() -> None:
    patterns = [pattern for pattern, _, _ in rows()]
    lines = [block.split("\n")[0] for block in blocks("timeline")]
    for sign in ("&&", "||", ";", "butnot", "[2..4]"):
        assert any(sign in line for line in lines), sign
        assert any(sign in pattern for pattern in patterns), sign
    assert len(patterns) > 40
    assert sum(matches.startswith("none") for _, _, matches in rows()) > 10


def test_the_patterns_of_the_page_can_be_parsed() -> None:
    assert blocks("pattern")
    for text in blocks("pattern"):
        assert parse_pattern(print_pattern(parse_pattern(text))) == parse_pattern(text)


def test_the_programs_of_the_page_run() -> None:
    assert blocks("python")
    for program in blocks("python"):
        exec(compile(program, "docs/patterns.md", "exec"), {})


def test_the_operators_are_listed_by_precedence() -> None:
    """An operator of the table binds more strongly than those below it."""
    table = PAGE.partition("| operator | starts |")[2].partition("\n\n")[0]
    signs = [sign.replace("\\", "") for sign in re.findall(r"^\| `A ?(\S+) B` \|", table, re.M)]
    assert signs == ["butnot", "&&", "||", ";"]
    for stronger, weaker in pairwise(signs):
        text = f"{{A}} {weaker} {{B}} {stronger} {{C}}"
        assert parse_pattern(text) == parse_pattern(f"{{A}} {weaker} ({{B}} {stronger} {{C}})")
        text = f"{{A}} {stronger} {{B}} {weaker} {{C}}"
        assert parse_pattern(text) == parse_pattern(f"({{A}} {stronger} {{B}}) {weaker} {{C}}")


def test_the_page_names_every_function_and_limit() -> None:
    for name in FUNCTIONS:
        assert f"`{name}(" in PAGE, name
    table = PAGE.partition("## Limits")[2].partition("\n## ")[0]
    for number in (
        limits.PATTERN_CHARS_MAX,
        limits.PATTERN_ELEMENTS_MAX,
        limits.PATTERN_DEPTH_MAX,
        limits.PATTERN_ACTIONS_MAX,
        limits.PATTERN_WITHIN_S_MAX // 86_400,
        limits.PATTERN_LAST_DEFAULT,
        limits.PATTERN_LAST_MAX,
        limits.PATTERN_KEYS_MAX,
        limits.PATTERN_BYTES_MAX >> 20,
        limits.PATTERN_GROUP_BYTES_MAX >> 20,
        limits.PATTERN_STEPS_MAX,
    ):
        assert f"{number:,}" in table, number
    assert limits.PATTERN_WITHIN_S_DEFAULT == 86_400  # a day
