"""An explanation says what the filter says, shows what was seen, and marks what decides."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import And, Node, Not, Or
from registrations.filters.evaluate import holds
from registrations.filters.evaluated_value import Seen
from registrations.filters.explain import Explained, deciding, explain
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from tests.unit.registrations.filters.trees import event, events, trees


def hierarchy(one: Event) -> tuple[str, ...]:
    return (one.type, "base")


def nodes(node: Node, explained: Explained) -> list[tuple[Node, Explained]]:
    """Each part of a tree with its explanation."""
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


def told_again(explained: Explained, flip: bool) -> bool:
    """What the whole says if all tests that do not decide say the opposite, or nothing at all."""
    parts = [told_again(part, flip) for part in explained.parts]
    if explained.op == "and":
        return all(parts)
    if explained.op == "or":
        return any(parts)
    if explained.op == "not":
        return not parts[0]
    return explained.held != (flip and not explained.decides)


@given(trees, events, st.booleans())
def test_every_part_says_what_the_filter_says_and_the_rest_does_not_matter(
    node: Node, one: Event, flip: bool
) -> None:
    found = explain(node, one, hierarchy)
    for part, told in nodes(node, found):
        assert told.held == holds(part, one, hierarchy)
        assert told.predicate == printed(part)
        assert told.why
    assert told_again(found, flip) == found.held
    assert all(not test.parts for test in deciding(found))


@pytest.mark.parametrize(
    ("text", "attributes", "held", "why"),
    [
        ("(> priority 5)", {"priority": 3}, False, "priority is 3, wanted > 5"),
        ("(> priority 5)", {"priority": 6}, True, "priority is 6, wanted > 5"),
        ("(> priority 5)", {}, False, "priority is missing, wanted > 5"),
        ("(< 5 priority)", {"priority": 3}, False, "priority is 3, wanted (< 5 priority)"),
        ("(= n 1)", {"n": "1"}, False, 'n is "1", wanted = 1; a text does not equal an integer'),
        ("(= n 1)", {"n": 1.0}, True, "n is 1.0, wanted = 1"),
        ("(= n 1)", {"n": 2.5}, False, "n is 2.5, wanted = 1"),
        ("(= n null)", {"n": False}, False, "n is false, wanted = null; a boolean does not equal"
         " null"),
        ("(> n 9)", {"n": "abc"}, False, 'n is "abc", wanted > 9; the text is not written as a'
         " number"),
        ("(> n 9)", {"n": "8"}, False, 'n is "8", wanted > 9'),
        ("(> n 9)", {"n": True}, False, "n is true, wanted > 9; a boolean and an integer have no"
         " order"),
        ("(= tags 'c)", {"tags": ["a", "b"]}, False, 'tags has "a", "b", wanted = "c"'),
        ("(= tags 'c)", {"tags": [["c"]]}, False, 'tags is a list without values, wanted = "c"'),
        ("(= pos 1)", {"pos": {"x": 1}}, False, "pos is an object, wanted = 1"),
        ("(= a b)", {"a": 1, "b": 2}, False, "a is 1, b is 2, wanted (= a b)"),
        ("(= a b)", {"a": 1}, False, "b is missing, wanted (= a b)"),
        ("(> (+ a b) 5)", {"a": 1, "b": 2}, False, "(+ a b) is 3, a is 1, b is 2, wanted > 5"),
        ("(> (/ a b) 5)", {"a": 1, "b": 0}, False, "(/ a b) comes to nothing, a is 1, b is 0,"
         " wanted > 5"),
        ("(in a 1 2 3 4 5 6 7)", {"a": 8}, False, "a is 8, wanted one of 1, 2, 3, 4, 5 or 2 more"),
        ("(prefix f '/a)", {"f": "/b"}, False, 'f is "/b", wanted a text that begins with "/a"'),
        ("(wildcard f 'a*)", {"f": 1}, False, 'f is 1, wanted a text that fits "a*"'),
        ("(exists a)", {"a": None}, True, "a is there"),
        ("(exists a)", {}, False, "a is missing"),
        ("(not (exists a))", {"a": 1}, False, "must not hold, and does: a is there"),
        ("(not (> a 5))", {}, True, "does not hold, as wanted: a is missing, wanted > 5"),
        ('(type "d::b")', {}, False, "the event is of d::t, below base, wanted d::b"),
        ("(and (= a 1) (= b 2) (= c 3))", {"a": 1}, False, "1 of 3 hold"),
        ("(or (= a 1) (= b 2))", {}, False, "none holds"),
        ("true", {}, True, "always"),
    ],
)  # fmt: skip
def test_why_in_words(text: str, attributes: dict[str, object], held: bool, why: str) -> None:
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


def test_a_place_leads_back_into_the_text_as_it_was_written() -> None:
    found = explain(parse_predicate("(and (= a 1)\n  (> b 2))"), event()).json()
    assert [(part["line"], part["column"]) for part in found["parts"]] == [(1, 7), (2, 4)]


def test_what_is_shown_is_cut() -> None:
    long = "x" * 100_000
    found = explain(parse_predicate("(= a 'b)"), event({"a": [long] * 1_000}))
    [seen] = found.seen
    assert isinstance(seen, Seen)
    assert (len(seen.values), seen.more) == (limits.EXPLAIN_VALUES_MAX, 995)
    assert all(len(value) == limits.EXPLAIN_CHARS_MAX + 1 for value in seen.values)
    assert len(found.why) < 1_000


def test_the_programs_of_the_page_run() -> None:
    page = (Path(__file__).parents[4] / "docs" / "explain.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert programs
    for program in programs:
        exec(compile(program, "docs/explain.md", "exec"), {})
