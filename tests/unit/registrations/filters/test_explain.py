"""An explanation has the result of the filter, the evaluated values and the deciding tests."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import And, Node, Not, Or
from registrations.filters.evaluate import holds
from registrations.filters.evaluated_value import EvaluatedValue
from registrations.filters.explain import Explained, deciding, explain
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from tests.unit.registrations.filters.trees import event, events, trees


def hierarchy(one: Event) -> tuple[str, ...]:
    return (one.type, "base")


def nodes(node: Node, explained: Explained) -> list[tuple[Node, Explained]]:
    """Return each part of a tree with its explanation."""
    match node:
        case And(items) | Or(items):
            inner = items
        case Not(item):
            inner = (item,)
        case _:
            inner = ()
    assert len(inner) == len(explained.parts)
    below = [nodes(*pair) for pair in zip(inner, explained.parts, strict=True)]
    return [(node, explained), *(pair for pairs in below for pair in pairs)]


def recomputed(explained: Explained, flip: bool) -> bool:
    """Return the result if all tests that do not decide have the opposite result, or the same."""
    parts = [recomputed(part, flip) for part in explained.parts]
    if explained.op == "and":
        return all(parts)
    if explained.op == "or":
        return any(parts)
    if explained.op == "not":
        return not parts[0]
    return explained.held != (flip and not explained.decides)


@given(trees, events, st.booleans())
def test_every_part_has_its_result_and_only_deciding_tests_matter(
    node: Node, one: Event, flip: bool
) -> None:
    found = explain(node, one, hierarchy)
    for part, explained in nodes(node, found):
        assert explained.held == holds(part, one, hierarchy)
        assert explained.predicate == printed(part)
        assert explained.why
    assert recomputed(found, flip) == found.held
    assert all(not test.parts for test in deciding(found))


@pytest.mark.parametrize(
    ("text", "attributes", "held", "why"),
    [
        ("(> priority 5)", {"priority": 3}, False, "priority is 3, expected > 5"),
        ("(> priority 5)", {"priority": 6}, True, "priority is 6, expected > 5"),
        ("(> priority 5)", {}, False, "priority is missing, expected > 5"),
        ("(< 5 priority)", {"priority": 3}, False, "priority is 3, expected (< 5 priority)"),
        ("(= n 1)", {"n": "1"}, False, 'n is "1", expected = 1; a text does not equal an integer'),
        ("(= n 1)", {"n": 1.0}, True, "n is 1.0, expected = 1"),
        ("(= n 1)", {"n": 2.5}, False, "n is 2.5, expected = 1"),
        ("(= n null)", {"n": False}, False, "n is false, expected = null; a boolean does not equal"
         " null"),
        ("(> n 9)", {"n": "abc"}, False, 'n is "abc", expected > 9; the text is not written as a'
         " number"),
        ("(> n 9)", {"n": "8"}, False, 'n is "8", expected > 9'),
        ("(> n 9)", {"n": True}, False, "n is true, expected > 9; a boolean and an integer have no"
         " order"),
        ("(= tags 'c)", {"tags": ["a", "b"]}, False, 'tags has "a", "b", expected = "c"'),
        ("(= tags 'c)", {"tags": [["c"]]}, False, 'tags is a list without values, expected = "c"'),
        ("(= pos 1)", {"pos": {"x": 1}}, False, "pos is an object, expected = 1"),
        ("(= a b)", {"a": 1, "b": 2}, False, "a is 1, b is 2, expected (= a b)"),
        ("(= a b)", {"a": 1}, False, "b is missing, expected (= a b)"),
        ("(> (+ a b) 5)", {"a": 1, "b": 2}, False, "(+ a b) is 3, a is 1, b is 2, expected > 5"),
        ("(> (/ a b) 5)", {"a": 1, "b": 0}, False, "(/ a b) has no result, a is 1, b is 0,"
         " expected > 5"),
        ("(in a 1 2 3 4 5 6 7)", {"a": 8}, False, "a is 8, expected one of"
         " 1, 2, 3, 4, 5 or 2 more"),
        ("(prefix f '/a)", {"f": "/b"}, False, 'f is "/b", expected a text that begins with "/a"'),
        ("(wildcard f 'a*)", {"f": 1}, False, 'f is 1, expected a text that matches "a*"'),
        ("(exists a)", {"a": None}, True, "a exists"),
        ("(exists a)", {}, False, "a is missing"),
        ("(not (exists a))", {"a": 1}, False, "must not hold, but does: a exists"),
        ("(not (> a 5))", {}, True, "does not hold, as expected: a is missing, expected > 5"),
        ('(type "d::b")', {}, False, "the event is of d::t, a subtype of base, expected d::b"),
        ("(and (= a 1) (= b 2) (= c 3))", {"a": 1}, False, "1 of 3 hold"),
        ("(or (= a 1) (= b 2))", {}, False, "none holds"),
        ("true", {}, True, "always"),
    ],
)  # fmt: skip
def test_the_reason_in_words(
    text: str, attributes: dict[str, object], held: bool, why: str
) -> None:
    found = explain(parse_predicate(text), event(attributes), hierarchy)
    assert (found.held, found.why) == (held, why)


def test_which_tests_decide() -> None:
    text = "(and (or (= type 'error) (= type 'warning)) (= user 'Joe) (not (exists quiet)))"

    def decide(**attributes: object) -> list[str]:
        found = explain(parse_predicate(text), event(attributes))
        return [test.predicate for test in deciding(found)]

    joe, error = '(= user "Joe")', '(= type "error")'
    quiet = "(exists quiet)"
    assert decide(type="error", user="Joe") == [error, joe, quiet]
    assert decide(type="error", user="Ann") == [joe]
    assert decide(type="info", user="Joe") == [error, '(= type "warning")']
    assert decide(type="error", user="Joe", quiet=1) == [quiet]


def test_parts_have_their_position_in_the_source_text() -> None:
    found = explain(parse_predicate("(and (= a 1)\n  (> b 2))"), event()).json()
    assert [(part["line"], part["column"]) for part in found["parts"]] == [(1, 7), (2, 4)]


def test_long_values_are_cut() -> None:
    long = "x" * 100_000
    found = explain(parse_predicate("(= a 'b)"), event({"a": [long] * 1_000}))
    [evaluated] = found.evaluated
    assert isinstance(evaluated, EvaluatedValue)
    assert (len(evaluated.values), evaluated.more) == (limits.EXPLAIN_VALUES_MAX, 995)
    assert all(len(value) == limits.EXPLAIN_CHARS_MAX + 1 for value in evaluated.values)
    assert len(found.why) < 1_000


def test_the_programs_of_the_document_run() -> None:
    page = (Path(__file__).parents[4] / "docs" / "explain.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert programs
    for program in programs:
        exec(compile(program, "docs/explain.md", "exec"), {})
