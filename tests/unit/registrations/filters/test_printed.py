"""Any filter is shown in predicate form, and what is shown is the filter."""

import pytest
from hypothesis import given

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
    Truth,
)
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from tests.unit.registrations.filters.trees import trees

A = Path("a")


@given(trees)
def test_every_tree_reads_back_as_it_was(node: Node) -> None:
    assert parse_predicate(printed(node)) == node


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (And((Exists(A), Not(Exists(Path("b"))))), "(and (exists a) (not (exists b)))"),
        (Or((Truth(True), Truth(False))), "(or true false)"),
        (Compare("<=", A, Const(1.5)), "(<= a 1.5)"),
        (Compare("=", Path("a.b"), Const(None)), "(= a.b null)"),
        (Compare("=", Path("type", "envelope"), Const('"\n')), '(= @type "\\"\\n")'),
        (Compare("=", Path("trace", "environment"), A), "(= env.trace a)"),
        (Compare(">", Arithmetic("-", A, Const(1)), Const(2)), "(> (- a 1) 2)"),
        (In(A, (Const(1), Const(True), Const("1"))), '(in a 1 true "1")'),
        (Text("wildcard", A, "x*\\*"), '(wildcard a "x*\\\\*")'),
        (OfType(None, "Mail.Msg", below=True), '(type "*::Mail.Msg.*")'),
        (OfType("N", None), '(type "N::*")'),
        # names that are no words stand in back quotes
        (Exists(Path("disk usage")), "(exists `disk usage`)"),
        (Exists(Path("@type")), "(exists `@type`)"),
        (Exists(Path("env.a")), "(exists `env.a`)"),
        (Exists(Path("true")), "(exists `true`)"),
        (Exists(Path("5")), "(exists `5`)"),
        (Exists(Path("")), "(exists ``)"),
        (Exists(Path('a`b\\" \n')), '(exists `a\\`b\\\\" \\n`)'),
    ],
)
def test_is_written_so(node: Node, text: str) -> None:
    assert printed(node) == text
    assert parse_predicate(text) == node


def test_constants_of_different_types_are_different_filters() -> None:
    """In Python 1 equals true."""
    one, true = (Compare("=", A, Const(value)) for value in (1, True))
    assert one != true
    assert printed(one) != printed(true)
