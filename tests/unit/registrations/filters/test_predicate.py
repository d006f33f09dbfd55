"""The predicate language: truth tables, the tree, and where errors are."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    Node,
    OfType,
    Or,
    Path,
    TextPosition,
    Truth,
)
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.filters.evaluate import holds
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from tests.unit.registrations.filters.trees import event


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("(= a 'b)", Compare("=", Path("a"), Const("b"))),
        ("(= a\n b)", Compare("=", Path("a"), Path("b"))),
        ('(= @type "a\\u00e9\\n\\ud83d\\ude00")',
         Compare("=", Path("type", "envelope"), Const("aé\n😀"))),
        ('(= a "\\ufffd\\ud83d\\ude00")', Compare("=", Path("a"), Const("\ufffd😀"))),
        ("(= `true` true)", Compare("=", Path("true"), Const(True))),
        ("(= `env.` 1)", Compare("=", Path("env."), Const(1))),
        ("(= env.a/b 1)", Compare("=", Path("a/b", "environment"), Const(1))),
        ("(= é_1-b.c 18446744073709551615)", Compare("=", Path("é_1-b.c"), Const(2**64 - 1))),
        ("(= a -9223372036854775808)", Compare("=", Path("a"), Const(-(2**63)))),
        ("(= a 1e3)", Compare("=", Path("a"), Const(1000.0))),
        ("(= (+ a 1 2) 0)",
         Compare("=", Arithmetic("+", Arithmetic("+", Path("a"), Const(1)), Const(2)), Const(0))),
        ("(= (- a) 0)", Compare("=", Arithmetic("-", Const(0), Path("a")), Const(0))),
        ('(type "ready::Mail.Msg.*")', OfType("ready", "Mail.Msg", below=True)),
        ('(type "Mail")', OfType(None, "Mail")),
        ('(type "*::*")', OfType(None, None)),
        ("(type 'a::b::c)", OfType("a", "b::c")),
    ],
)  # fmt: skip
def test_a_text_is_parsed_into_a_tree(text: str, node: Node) -> None:
    assert parse_predicate(text) == node


def test_nodes_have_their_positions() -> None:
    node = parse_predicate("(and (= a 1)\n  (or (= b 2)\n    true))")
    assert isinstance(node, And)
    inner = node.items[1]
    assert isinstance(inner, Or)
    first = inner.items[0]
    assert isinstance(first, Compare)
    assert inner.position == TextPosition(2, 4)
    assert first.left.position == TextPosition(2, 10)
    assert inner.items[1].position == TextPosition(3, 5)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, 1, "empty"),
        ("  \n ", 1, 1, "empty"),
        ("a", 1, 1, "begins with a parenthesis"),
        ("5", 1, 1, "begins with a parenthesis"),
        ("()", 1, 1, "parentheses are empty"),
        ("(and (= a 1)\n     ())", 2, 6, "parentheses are empty"),
        ("(like a 'b)", 1, 2, "one of: and or not"),
        ("(`and` (= a 1))", 1, 2, "one of: and or not"),
        ("(== a 1)", 1, 2, "one of"),
        ("(= a)", 1, 2, "two arguments, not 1"),
        ("(= a 1 2)", 1, 2, "two arguments, not 3"),
        ("(not)", 1, 2, "one argument"),
        ("(or)", 1, 2, "at least one form"),
        ("(and (= a 1) b)", 1, 14, "begins with a parenthesis"),
        ("(in a)", 1, 2, "its allowed values"),
        ("(in 5 5)", 1, 5, "Expected a path"),
        ("(in a b)", 1, 7, "Expected a constant"),
        ("(prefix a 5)", 1, 11, "Expected a text"),
        ("(prefix a b)", 1, 11, "Expected a text"),
        ('(wildcard a "\\\\")', 1, 13, "backslash"),
        ("(exists (= a 1))", 1, 9, "Expected a path"),
        ("(= (= a 1) 2)", 1, 5, "has none"),
        ("(= (+ a) 2)", 1, 5, "at least two values"),
        ("(= () 2)", 1, 4, "Expected a value"),
        ("(= a 1", 1, 1, "not closed"),
        ("(and\n (= a 1)\n (or (= b 2)", 3, 2, "not closed"),
        ("(= a 1))", 1, 8, "no matching"),
        ("(= a 1) (= b 2)", 1, 9, "ended before"),
        ('(= a "x', 1, 6, "no closing"),
        ('(= a "x\n")', 1, 6, "no closing"),
        ("(= `a 5)", 1, 4, "no closing"),
        ("(= a ')", 1, 6, "A quote precedes"),
        ("(= a 'x y')", 1, 10, "A quote"),
        ('(= a "\\x")', 1, 6, "Unknown escape"),
        ('(= a "\\ud83d")', 1, 6, "surrogate"),
        ("(= a 18446744073709551616)", 1, 6, "64 bits"),
        ("(= a -9223372036854775809)", 1, 6, "64 bits"),
        ("(= a 1e999)", 1, 6, "too large"),
        ("(= @colour 1)", 1, 4, "no field @colour; there are @application"),
        ("(= @body 1)", 1, 4, "no other body"),
        ("(type a)", 1, 7, "Expected a text"),
        ('(type "a::")', 1, 7, "domain::type"),
        ('(type "::a")', 1, 7, "domain::type"),
        ('(type "a::b*")', 1, 7, "replaces a whole"),
        ('(type "*.*")', 1, 7, "domain::type"),
    ],
)
def test_errors_have_the_position(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(FilterSyntax, match=says) as caught:
        parse_predicate(text)
    assert caught.value.details == {"line": line, "column": column}
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "word",
    ["01", "1_000", "5,", "5;", "0x10", "+1", ".5", "5.", "1e5x", "1,5", "“x”", "b=c", "$b",
     "b:c", "b/c", "b,", "b*", "[b]", "and=", "env.", "Infinity", "-Infinity", "NaN", "True",
     "NULL"],
)  # fmt: skip
def test_a_word_like_a_constant_is_not_a_path(word: str) -> None:
    """A path is printed in back quotes unless it is a plain word."""
    for text in (f"(= a {word})", f"(> {word} 5)", f"(exists {word})", f"(in {word} 1)"):
        with pytest.raises(FilterSyntax, match="in back quotes") as caught:
            parse_predicate(text)
        assert caught.value.details == {"line": 1, "column": text.index(word) + 1}
    node = Exists(Path(word))
    assert printed(node) == f"(exists `{word}`)"
    assert parse_predicate(printed(node)) == node


@given(st.text(max_size=4) | st.text("aé1_.-@$:\u00b2\u0301", min_size=1, max_size=4))
def test_exactly_the_paths_printed_without_quotes_are_parsed_without(name: str) -> None:
    bare = printed(Exists(Path(name))) == f"(exists {name})"
    try:
        assert (parse_predicate(f"(exists {name})") == Exists(Path(name))) is bare
    except FilterSyntax:
        assert not bare


DEEP = limits.FILTER_DEPTH_MAX


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("(" * 5_000, "depth_max"),
        ("(not " * (DEEP + 1) + "true" + ")" * (DEEP + 1), "depth_max"),
        ("(and" + " true" * limits.FILTER_PARTS_MAX + ")", "parts_max"),
        ("(" * (1 << 20), "chars_max"),
        ('(= a "' + "x" * (1 << 20) + '")', "chars_max"),
    ],
    ids=["open", "not", "wide", "1 MB of parentheses", "1 MB of text"],
)
def test_hostile_texts_are_refused_at_once(text: str, bound: str) -> None:
    began = time.thread_time()
    with pytest.raises(FilterTooLarge) as caught:
        parse_predicate(text)
    assert time.thread_time() - began < 0.2  # about 5 ms
    assert bound in caught.value.details


def test_blanks_at_the_end_cost_nothing() -> None:
    began = time.thread_time()
    assert parse_predicate("true" + " " * (limits.FILTER_CHARS_MAX - 4)) == Truth(True)
    assert time.thread_time() - began < 0.2


def test_a_filter_at_the_depth_limit_is_accepted() -> None:
    node = parse_predicate("(not " * DEEP + "true" + ")" * DEEP)
    assert holds(node, event()) is (DEEP % 2 == 0)
