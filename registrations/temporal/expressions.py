"""The tests of temporal patterns: relations of variables, constants and calculations. Plain module.

A relation of several arguments is split into relations of two while it is parsed: `(< a b c)` is
`a < b` and `b < c`; `(= a b c)` compares each with the first; `(!= a b c)` each with each.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from registrations.filters.ast import Const, TextPosition
from registrations.filters.printed import printed_operand

RelationOp = Literal["=", "!=", "<", "<=", ">", ">="]
CalculationOp = Literal["+", "-", "*", "/"]


@dataclass(frozen=True, slots=True)
class BoundVariable:
    """A variable, without the question mark of the text."""

    name: str
    position: TextPosition = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Calculation:
    """An operation on two quantities; it has no result for others."""

    op: CalculationOp
    left: "Expression"
    right: "Expression"


Expression = BoundVariable | Const | Calculation


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of two expressions; false if one of them has no value."""

    op: RelationOp
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class EveryTest:
    """A test that holds if all of its tests hold."""

    items: tuple["JoinTest", ...]


@dataclass(frozen=True, slots=True)
class AnyTest:
    """A test that holds if one of its tests holds."""

    items: tuple["JoinTest", ...]


@dataclass(frozen=True, slots=True)
class NegatedTest:
    """A test that holds if the other does not."""

    item: "JoinTest"


JoinTest = Relation | EveryTest | AnyTest | NegatedTest


def variables_of(part: JoinTest | Expression) -> Iterator[BoundVariable]:
    """Yield the variables of a test or an expression, in the order of the text."""
    match part:
        case BoundVariable():
            yield part
        case Calculation(_, left, right) | Relation(_, left, right):
            yield from variables_of(left)
            yield from variables_of(right)
        case EveryTest(items) | AnyTest(items):
            for item in items:
                yield from variables_of(item)
        case NegatedTest(item):
            yield from variables_of(item)


def conjuncts_of(tests: tuple[JoinTest, ...]) -> Iterator[JoinTest]:
    """Yield the tests that must hold, each by itself: those of an `and` one by one."""
    for test in tests:
        if isinstance(test, EveryTest):
            yield from conjuncts_of(test.items)
        else:
            yield test


def relations_in(test: JoinTest) -> int:
    """Return the number of relations of a test."""
    match test:
        case EveryTest(items) | AnyTest(items):
            return sum(map(relations_in, items))
        case NegatedTest(item):
            return relations_in(item)
    return 1


def printed_test(test: JoinTest) -> str:
    """Print a test in prefix form."""
    match test:
        case EveryTest(items):
            return f"(and {' '.join(map(printed_test, items))})"
        case AnyTest(items):
            return f"(or {' '.join(map(printed_test, items))})"
        case NegatedTest(item):
            return f"(not {printed_test(item)})"
    return f"({test.op} {_printed(test.left)} {_printed(test.right)})"


def _printed(expression: Expression) -> str:
    match expression:
        case BoundVariable(name):
            return f"?{name}"
        case Const():
            return printed_operand(expression)
    return f"({expression.op} {_printed(expression.left)} {_printed(expression.right)})"
