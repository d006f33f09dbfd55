"""READY's simple expressions: what they say, and that they print back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Or,
    Path,
    Text,
    TextPosition,
    Truth,
)
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from registrations.filters.ready import SimpleExpression, parse_ready, print_ready
from tests.unit.registrations.filters.formulas import SIMPLE_FORMS

A, B = Path("a"), Path("b")


def expression(text: str) -> Node:
    """Return the expression after the bar, for any type."""
    node = parse_ready(f"*::* | {text}").node
    assert isinstance(node, And)
    return node.items[1]


@pytest.mark.parametrize("text", SIMPLE_FORMS)
def test_the_form_is_read_and_printed_back(text: str) -> None:
    found = parse_ready(text)
    assert found == SimpleExpression(
        "Ev1", And((OfType(None, "MyAlarm"), Compare(">", Path("Priority"), Const(5))))
    )
    assert print_ready(found) == "{Ev1: MyAlarm | $Priority > 5}"


def test_variable_expression_and_braces_may_be_left_out() -> None:
    assert parse_ready("N::A") == SimpleExpression("", OfType("N", "A"))
    assert parse_ready("{x: N::A, *::B}") == SimpleExpression(
        "x", Or((OfType("N", "A"), OfType(None, "B")))
    )
    assert print_ready(parse_ready("*::*")) == "{*::*}"
    assert parse_ready("'sun cluster::group state'").node == OfType("sun cluster", "group state")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("T | -$a > 1", "{T | -$a > 1}"),
        ("T | 0 - $a > 1", "{T | -$a > 1}"),  # the same
        ("T | 0.0 - $a > 1", "{T | 0.0 - $a > 1}"),
    ],
)
def test_a_negative_is_shown_as_one(text: str, shown: str) -> None:
    assert print_ready(parse_ready(text)) == shown


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("$a == 1 and $b == 1 and TRUE",
         And((Compare("=", A, Const(1)), Compare("=", B, Const(1)), Truth(True)))),
        ("TRUE or (FALSE or TRUE)", Or((Truth(True), Or((Truth(False), Truth(True)))))),
        ("not not $a", Not(Not(Compare("=", A, Const(True))))),
        ("$a - -5 > $b", Compare(">", Arithmetic("-", A, Const(-5)), B)),
        ("-$a < -(5)",
         Compare("<", Arithmetic("-", Const(0), A), Arithmetic("-", Const(0), Const(5)))),
        ("'it\\'s \\\\' in $a", Compare("=", A, Const("it's \\"))),
        ("$a == TRUE", Compare("=", A, Const(True))),
        ("exist $header.key", Exists(Path("key", "envelope"))),
        ("18446744073709551615 > $a", Compare(">", Const(2**64 - 1), A)),
        ("-9223372036854775808 < $a", Compare("<", Const(-(2**63)), A)),
        ("$a == 1.5e+3", Compare("=", A, Const(1500.0))),
        ("$or == $in", Compare("=", Path("or"), Path("in"))),
    ],
)  # fmt: skip
def test_the_tree_is_the_one_of_all_languages(text: str, node: Node) -> None:
    assert expression(text) == node


def test_nodes_know_their_place() -> None:
    node = parse_ready("A\n | $x\n   == 'é' and $y").node
    assert isinstance(node, And) and isinstance(node.items[1], And)
    compare, alone = node.items[1].items
    assert isinstance(compare, Compare) and isinstance(alone, Compare)
    positions = [
        one.position for one in (node, node.items[1], compare, compare.left, compare.right)
    ]
    assert positions == [
        TextPosition(1, 1),
        TextPosition(3, 11),
        TextPosition(3, 4),
        TextPosition(2, 4),
        TextPosition(3, 7),
    ]
    assert alone.left.position == TextPosition(3, 15)


@pytest.mark.parametrize(
    "node",
    [
        Compare("=", A, Const(1)),  # no type
        And((OfType(None, "A"),)),
        And((OfType(None, "A"), And((Truth(True),)))),
        And((OfType(None, "A"), In(A, (Const(1),)))),
        And((OfType(None, "A"), Text("prefix", A, "x"))),
        And((OfType(None, "A"), Compare("=", A, Const(None)))),
        And((OfType(None, "A"), OfType(None, "B"))),
        And((OfType(None, "A"), Exists(Path("no word", "environment")))),
    ],
    ids=repr,
)
def test_a_tree_that_the_grammar_cannot_express_is_not_printed(node: Node) -> None:
    with pytest.raises(ValueError, match="READY"):
        print_ready(SimpleExpression("v", node))


def test_a_name_that_is_no_variable_is_not_printed() -> None:
    with pytest.raises(ValueError, match="READY"):
        print_ready(SimpleExpression("no name", OfType(None, "A")))


names = st.text(min_size=1, max_size=4) | st.sampled_from(
    ["a", "a.b", "env.x", "header.x", "_length", "and", "TRUE", "it's", "a\\", "5", "@type"]
)
paths = (
    names.filter(lambda name: all(char >= " " for char in name)).map(Path)
    | st.sampled_from(["type", "priority"]).map(lambda name: Path(name, "envelope"))
    | st.sampled_from(["x", "a.b"]).map(lambda name: Path(name, "environment"))
)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
constants = st.builds(Const, numbers | st.text(max_size=4) | st.booleans())
operands = st.recursive(
    paths | constants,
    lambda inner: st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
    max_leaves=5,
)
tests = (
    st.builds(Compare, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), operands, operands)
    | st.builds(Text, st.just("substring"), paths, st.text(max_size=4))
    | st.builds(Exists, paths)
    | st.builds(Truth, st.booleans())
)
conditions = st.recursive(
    tests,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda items: And(tuple(items)))
        | st.lists(inner, min_size=2, max_size=3).map(lambda items: Or(tuple(items)))
        | st.builds(Not, inner)
    ),
    max_leaves=8,
)
words = st.text(min_size=1, max_size=4).filter(lambda text: "*" not in text and "::" not in text)
domains = words.filter(lambda text: not text.endswith(":"))
types = st.builds(OfType, st.none() | domains, st.none() | words.filter(lambda w: w[0] != ":"))
below = st.builds(lambda name: OfType(None, name, below=True), st.sampled_from(["a", "a.b"]))
heads = types | below | st.lists(types, min_size=2, max_size=3).map(lambda each: Or(tuple(each)))
variables = st.sampled_from(["", "v", "Ev1", "and", "_é2"])


@given(variables, heads, st.none() | conditions)
def test_a_printed_filter_parses_to_the_same_tree(
    variable: str, head: Node, condition: Node | None
) -> None:
    simple = SimpleExpression(variable, head if condition is None else And((head, condition)))
    text = print_ready(simple)
    assert parse_ready(text) == simple
    assert parse_predicate(printed(simple.node)) == simple.node
