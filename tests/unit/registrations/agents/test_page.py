"""The examples of docs/agents.md."""

import json
import re
from pathlib import Path as File

import pytest

from eventhub.base import limits
from registrations.agents import errors
from registrations.agents.compiler import compile_program
from registrations.agents.forms import SPECIAL_FORMS
from registrations.agents.functions import FUNCTIONS
from tests.unit.registrations.agents.programs import value_of

PAGE = (File(__file__).parents[4] / "docs" / "agents.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
ROWS = re.findall(r"^\| `(\(.*?)` \| `([^`]*)` \|$", PAGE, re.M)


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "agent"])
def test_each_program_compiles(text: str) -> None:
    compile_program(text)


def test_the_python_example_runs() -> None:
    (code,) = (text for language, text in BLOCKS if language == "python")
    exec(compile(code, "docs/agents.md", "exec"), {})


@pytest.mark.parametrize(("expression", "value"), ROWS)
def test_each_expression_has_its_value(expression: str, value: str) -> None:
    assert value_of(expression) == json.loads(value)


def test_the_page_has_all_rows_forms_functions_and_codes() -> None:
    assert len(ROWS) == 18
    words = set(re.findall(r"[^\s()`,]+", PAGE))
    assert SPECIAL_FORMS.keys() | FUNCTIONS.keys() <= words
    assert set(re.findall(r"^\| `(\w+)` \| .* \| suspended \|$", PAGE, re.M)) == errors.LIMITS


def test_the_page_states_the_limits() -> None:
    text = " ".join(PAGE.split())
    for stated in (
        f"more than {limits.AGENT_STEPS_MAX:,} steps",
        f"more than {limits.AGENT_MEMORY_BYTES_MAX >> 20} MiB in all",
        f"in each other more than {limits.AGENT_CALL_DEPTH_MAX:,} deep",
        f"announces more than {limits.AGENT_OUTPUTS_MAX} times",
        f"{limits.AGENT_STATE_KEYS_MAX} names or {limits.AGENT_STATE_BYTES_MAX >> 10} KiB",
        f"at most {limits.AGENT_TEXT_CHARS_MAX:,} characters",
        f"at most {limits.AGENT_LIST_ITEMS_MAX:,} items, nested {limits.AGENT_VALUE_DEPTH_MAX}",
        f"without a filter all. At most {limits.AGENT_RECENT_MAX:,}.",
        f"at most {limits.AGENT_NOTIFIED_EVENTS_MAX} |",
        f"at most {limits.AGENT_RECENT_BYTES_MAX >> 20} MiB",
        f"at most {limits.PROGRAM_CHARS_MAX:,} characters, {limits.PROGRAM_PARTS_MAX:,} words",
        f"forms nested {limits.PROGRAM_DEPTH_MAX} deep",
    ):
        assert stated in text, stated
    assert limits.AGENT_FAILURES_MAX == 10
