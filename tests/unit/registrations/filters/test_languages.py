"""Every language through its one way in, the bounds that hold for all, and the reference page."""

import json
import re
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.base.errors import (
    EventHubError,
    FieldTooLong,
    InvalidField,
    InvalidUtf8,
    NumberOutOfRange,
    UnknownField,
)
from eventhub.event.envelope import Event
from registrations.filters.ast import Arithmetic, Compare, Const, Exists, Node, Not, Path, Truth
from registrations.filters.bounds import bounded
from registrations.filters.errors import FilterSyntax, FilterTooLarge, UnknownLanguage
from registrations.filters.evaluate import holds
from registrations.filters.languages import LANGUAGES, parse
from registrations.filters.pairs import parse_pairs
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from tests.unit.registrations.filters.trees import TYPES, contents, event, names, trees, values

PAGE = (File(__file__).parents[4] / "docs" / "languages.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_example_of_each_language_is_a_filter_and_can_be_shown(name: str) -> None:
    language = LANGUAGES[name]
    found = parse(name, language.example)
    assert (found.language, found.source) == (name, language.example)
    assert parse("predicate", printed(found.node)).node == found.node
    assert language.kind == ("json" if isinstance(language.example, dict) else "text")
    assert (language.fields != ()) == (language.kind == "json")
    if isinstance(language.example, dict):
        assert set(language.example) <= set(language.fields)


def test_an_unknown_language_is_an_error_that_lists_them() -> None:
    with pytest.raises(UnknownLanguage, match="predicate, ready, cel, cesql, eventbridge"):
        parse("sql", "SELECT 1")


@pytest.mark.req("OIF-16")
@pytest.mark.parametrize(
    ("language", "source", "says"),
    [
        ("predicate", "(and A B)", "valid filter in propositional"),
        ("predicate", "Ev1: A | $x > 1", "valid filter in ready"),
        ("propositional", "(= a 1)", "valid filter in predicate"),
        ("propositional", "Ev1: A | $x > 1", "valid filter in ready"),
        ("ready", "(= a 1)", "valid filter in predicate"),
        ("ready", "(and A B)", "valid filter in propositional"),
        ("predicate", "A", "valid filter in propositional or ready"),
        ("propositional", "MyAlarm|$Priority>5", "valid filter in ready"),
        ("propositional", "plant::*", "valid filter in ready"),
    ],
)
def test_the_error_of_a_text_in_another_language_names_that_language(
    language: str, source: str, says: str
) -> None:
    with pytest.raises(FilterSyntax, match=says) as caught:
        parse(language, source)
    assert caught.value.details.keys() == {"line", "column"}


def test_a_text_of_no_language_gets_no_such_hint() -> None:
    with pytest.raises(FilterSyntax, match=r"not closed\.$") as caught:
        parse("predicate", "(and\n (= a 1)")
    assert caught.value.details == {"line": 1, "column": 1}
    with pytest.raises(FilterSyntax) as caught:
        parse("ready", "MyAlarm|$Priority>")
    assert "valid filter" not in caught.value.message


@pytest.mark.req("OIF-16")
@pytest.mark.parametrize("name", LANGUAGES)
def test_a_text_for_a_json_language_is_refused_and_vice_versa(name: str) -> None:
    other: tuple[Any, ...] = ({"domain": "a"}, None, 5, ["a"], b"a")
    if LANGUAGES[name].kind == "json":
        other = ("(= a 1)", json.dumps(LANGUAGES[name].example), None, 5, [{}])
    for source in other:
        with pytest.raises(InvalidField, match=f"{name} is a") as caught:
            parse(name, source)
        example = LANGUAGES[name].example
        rendered = example if isinstance(example, str) else json.dumps(example)
        assert rendered in caught.value.message


def test_only_ready_binds_a_name() -> None:
    assert parse("ready", "Ev1: MyAlarm | $Priority > 5").variable == "Ev1"
    assert parse("ready", "MyAlarm | $Priority > 5").variable is None
    assert parse("predicate", "(= a 1)").variable is None


# --- pairs ---


@pytest.mark.parametrize(
    ("source", "predicate"),
    [
        ({}, "true"),
        ({"domain": None, "attributes": None}, "true"),
        ({"domain": "d"}, "(= @domain 'd)"),
        ({"attributes": {"a.b": 1}}, "(= a.b 1)"),
        ({"attributes": {"@type": None, "disk usage": True}},
         "(and (= `@type` null) (= `disk usage` true))"),
        ({"application": "x", "type": "t", "domain": "d", "attributes": {"a": "b"}},
         "(and (= @domain 'd) (= @type 't) (= @application 'x) (= a 'b))"),
    ],
)  # fmt: skip
def test_pairs_as_a_predicate(source: dict[str, Any], predicate: str) -> None:
    assert parse("pairs", source).node == parse_predicate(predicate)


@given(
    st.fixed_dictionaries(
        {"attributes": st.dictionaries(names, values, max_size=3)},
        optional={name: st.sampled_from(TYPES) for name in ("domain", "type", "application")},
    ),
    st.dictionaries(names, contents, max_size=4),
    st.booleans(),
)
def test_pairs_match_the_same_events_as_their_tree(
    source: dict[str, Any], attributes: dict[str, Any], alike: bool
) -> None:
    if alike:
        attributes = {**attributes, **source["attributes"]}
    found = Event(
        source.get("domain", "a"), "a", attributes, application=(source.get("application", "b"),)
    )
    assert parse_pairs(source).matches(found) == holds(parse("pairs", source).node, found)


def test_errors_of_too_many_pairs_and_too_long_names_have_a_remedy() -> None:
    for attributes, says in (
        ({f"a{n}": 1 for n in range(65)}, "at most 64 pairs; other languages allow more tests"),
        ({"a" * 1_025: 1}, "at most 1,024 characters; use a shorter name"),
    ):
        with pytest.raises(FieldTooLong, match=says):
            parse("pairs", {"attributes": attributes})


def test_errors_of_pairs_have_the_field() -> None:
    with pytest.raises(UnknownField) as caught:
        parse("pairs", {"colour": "red"})
    assert caught.value.field == "colour"


# --- bounds ---

A = Path("a")
FORM = Exists(A)


def deep(depth: int) -> Node:
    node: Node = Truth(True)
    for _ in range(depth):
        node = Not(node)
    return node


def chain(length: int) -> str:
    return f"(= (+{' 1' * length}) 0)"


@pytest.mark.parametrize(
    ("language", "source", "bound"),
    [
        ("predicate", "(not " * 33 + "true" + ")" * 33, "depth_max"),
        ("predicate", chain(limits.FILTER_DEPTH_MAX + 1), "depth_max"),
        ("predicate", chain(950), "depth_max"),  # which Python's own stack would not survive
        ("propositional", "(" + "A " * 600 + ")", "parts_max"),  # `(exists A)` is of two
        ("ready", "(" * 3_000, None),
        ("ready", "*::* | " + "not " * 100 + "TRUE", "depth_max"),
        ("ready", "*::* | " + "not " * 3_000 + "TRUE", "parts_max"),
        ("ready", ", ".join(["t"] * 600), "parts_max"),  # `(type "*::t")` is of two
        ("eventbridge", {"detail": {"a": [{"prefix": "x"}] * 400}}, "parts_max"),  # of three
        ("eventbridge", {"detail": {"a": [*range(1_000)]}}, "parts_max"),
        ("pairs", {"attributes": {"a": '"' * 10_000}}, "chars_max"),  # 20,000 in predicate form
        ("predicate", f"(exists {'a' * (limits.PATH_CHARS_MAX + 1)})", "path_chars_max"),
    ],
)
def test_the_limits_apply_in_every_language(language: str, source: Any, bound: str | None) -> None:
    with pytest.raises(EventHubError) as caught:
        parse(language, source)
    assert isinstance(caught.value, FilterTooLarge if bound else FilterSyntax | FilterTooLarge)
    assert bound is None or bound in caught.value.details


@pytest.mark.parametrize(
    ("language", "source", "says", "where"),
    [
        ("predicate", "(and true\n " + "(not " * 33, "32 deep", {"line": 2, "column": 157}),
        ("predicate", "(= a\n'" + "x" * 20_000 + ")", "16,384 char", {"line": 2, "column": 16_380}),
        ("predicate", f"(and true\n(exists {'a' * 1_025}))", "shorter", {"line": 2, "column": 9}),
        (
            "predicate",
            "(and\n" + " true" * 1_001 + ")",
            "1,000 words",
            {"line": 2, "column": 4_997},
        ),
        ("propositional", "(" + "A " * 600 + ")", "1,000 words", {"line": 1, "column": 1_000}),
        ("ready", "T | " + "not " * 100 + "TRUE", "32 deep", {"line": 1, "column": 129}),
        ("ready", "T | " + "x" * 20_000, "16,384 char", {"line": 1, "column": 16_385}),
        ("ready", "T |\n" + "(" * 34, "32 deep", {"line": 2, "column": 34}),
        ("ready", "T |\nTRUE" + " or TRUE" * 1_600, "1,000 words", {"line": 2, "column": 11_998}),
        ("pairs", {"attributes": {"a": "x" * 20_000}}, "16,384 char", {}),
    ],
)
def test_an_error_of_size_names_the_limit_and_the_position(
    language: str, source: Any, says: str, where: dict[str, int]
) -> None:
    with pytest.raises(FilterTooLarge, match=says) as caught:
        parse(language, source)
    details = caught.value.details
    assert {name: details[name] for name in ("line", "column") if name in details} == where


def test_the_deepest_filter_can_be_printed_and_parsed() -> None:
    node = deep(limits.FILTER_DEPTH_MAX)
    assert parse("predicate", bounded(node)).node == node
    with pytest.raises(FilterTooLarge):
        bounded(deep(limits.FILTER_DEPTH_MAX + 1))
    with pytest.raises(FilterTooLarge):
        bounded(deep(5_000))  # nothing here is recursive
    parse("predicate", chain(limits.FILTER_DEPTH_MAX))


@pytest.mark.parametrize("source", ["(in a" + " 1" * 998 + ")", "(or" + " (exists a)" * 499 + ")"])
def test_the_widest_filter_can_be_printed_and_parsed(source: str) -> None:
    node = parse("predicate", source).node
    assert parse("predicate", printed(node)).node == node


@given(trees)
def test_a_filter_within_the_limits_can_be_printed_and_parsed(node: Node) -> None:
    assert parse("predicate", bounded(node)).node == node


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2**64, NumberOutOfRange),
        (-(2**63) - 1, NumberOutOfRange),
        (float("nan"), NumberOutOfRange),
        (float("inf"), NumberOutOfRange),
        ("\ud800", InvalidUtf8),
    ],
)
def test_values_that_no_event_has_are_refused(value: Any, error: type[EventHubError]) -> None:
    for language, source in (
        ("pairs", {"attributes": {"a": value}}),
        ("eventbridge", {"detail": {"a": [value]}}),
        ("eventbridge", {"detail": {"a": [{"anything-but": [1, value]}]}}),
    ):
        with pytest.raises(error):
            parse(language, source)
    with pytest.raises(error):
        bounded(Compare("=", Arithmetic("+", A, Const(value)), Const(1)))


def test_half_characters_are_refused_in_texts() -> None:
    for language, source in (
        ("propositional", "a\ud800"),
        ("predicate", "(= a '\ud800)"),
        ("ready", "'\ud800' | $a == 'x'"),
    ):
        with pytest.raises((InvalidUtf8, FilterSyntax)):
            parse(language, source)


# --- docs/languages.md ---


@pytest.mark.parametrize(("language", "text"), [one for one in BLOCKS if one[0] in LANGUAGES])
def test_every_filter_of_the_page_is_one(language: str, text: str) -> None:
    if LANGUAGES[language].kind == "json":
        parse(language, json.loads(text))
        return
    for line in text.splitlines():
        parse(language, line)


def test_the_programs_of_the_page_run() -> None:
    programs = [text for kind, text in BLOCKS if kind == "python"]
    assert programs
    for program in programs:
        exec(compile(program, "docs/languages.md", "exec"), {})


def table(heading: str) -> list[list[str]]:
    section = PAGE.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(.*?)` \| `(.*?)` \| (yes|no)\b.*\|$", section, re.M)
    return [list(row) for row in rows]


HEADINGS = {
    "## Values": "predicate",
    "## Objects in lists": "predicate",
    "## READY": "ready",
    "## CEL": "cel",
    "## CESQL": "cesql",
}
ROWS = [(language, *row) for heading, language in HEADINGS.items() for row in table(heading)]


@pytest.mark.parametrize(("language", "source", "attributes", "holding"), ROWS)
def test_the_tables_of_the_page_are_true(
    language: str, source: str, attributes: str, holding: str
) -> None:
    source = source.replace("\\|", "|")
    node = parse(language, source).node
    assert holds(node, event(json.loads(attributes), type="MyAlarm")) is (holding == "yes")


def test_the_page_has_the_tables_and_every_language() -> None:
    assert len(ROWS) >= 25
    for name in LANGUAGES:
        assert any(kind == name for kind, _ in BLOCKS), name


def test_the_bounds_of_the_page_are_those_of_the_hub() -> None:
    section = PAGE.partition("\n## Bounds\n")[2].partition("\n## ")[0]
    for name in ("CHARS", "DEPTH", "PARTS", "ALTERNATIVES", "EXPRESSIONS"):
        assert f"| {getattr(limits, f'FILTER_{name}_MAX'):,} |" in section, name
    for most in (limits.PATH_CHARS_MAX, limits.FILTER_TESTS_MAX, limits.FILTER_STEPS_MAX):
        assert f"| {most:,} |" in section
