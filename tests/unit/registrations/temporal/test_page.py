"""The examples of docs/temporal.md."""

import json
import re
from pathlib import Path as File

import pytest

from eventhub.base import limits
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.language import parse_temporal
from registrations.temporal.plan import planned
from tests.unit.registrations.temporal.rules import event, position

PAGE = (File(__file__).parents[4] / "docs" / "temporal.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
ROWS = re.findall(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \| (yes|no)", PAGE, re.M)


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "temporal"])
def test_each_pattern_can_be_planned(text: str) -> None:
    planned(parse_temporal(text))


def test_the_python_example_runs() -> None:
    (code,) = (text for language, text in BLOCKS if language == "python")
    exec(compile(code, "docs/temporal.md", "exec"), {})


@pytest.mark.parametrize(("test", "a", "b", "holds"), ROWS)
def test_each_row_holds(test: str, a: str, b: str, holds: str) -> None:
    engine = TemporalEngine()
    engine.add(1, parse_temporal(f"(event (a ?a) (b ?b)) (test {test})"))
    found = engine.feed(position(1), event({"a": json.loads(a), "b": json.loads(b)}))
    assert bool(found) == (holds == "yes")


def test_the_page_has_all_rows_and_states_the_limits() -> None:
    assert len(ROWS) == 18
    text = " ".join(PAGE.split())
    for stated in (
        f"{limits.TEMPORAL_MEMORY_DEFAULT:,} unless stated, at most {limits.TEMPORAL_MEMORY_MAX:,}",
        f"at most {limits.TEMPORAL_EVENTS_MAX}, including",
        f"more than {limits.TEMPORAL_PARTIAL_MATCHES_MAX:,} combinations wait",
        f"more than {limits.TEMPORAL_JOINS_PER_EVENT_MAX:,} combinations were examined",
        f"remember more than {limits.TEMPORAL_ENTRIES_MAX:,} events",
        f"more than {limits.TEMPORAL_MATCHES_PER_EVENT_MAX:,} matches",
        f"more than {limits.TEMPORAL_VALUE_CHARS_MAX:,} characters",
        f"{limits.TEMPORAL_VARIABLES_MAX} variables, {limits.TEMPORAL_TESTS_MAX} comparisons",
        f"at most {limits.FILTER_CHARS_MAX:,} characters, {limits.FILTER_PARTS_MAX:,} words",
    ):
        assert stated in text, stated
