"""The parser of `(test …)` in temporal patterns. Plain module."""

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import cast

from eventhub.base import limits
from registrations.filters.ast import Const
from registrations.filters.sexpr import Item, Literal, ParenthesizedForm, Word
from registrations.temporal.errors import temporal_syntax, too_large
from registrations.temporal.expressions import (
    AnyTest,
    BoundVariable,
    Calculation,
    CalculationOp,
    EveryTest,
    Expression,
    JoinTest,
    NegatedTest,
    Relation,
    RelationOp,
)

_RELATIONS: dict[str, RelationOp] = {
    **{"=": "=", "eq": "=", "!=": "!=", "neq": "!="},
    **{"<": "<", "<=": "<=", ">": ">", ">=": ">="},
}
_CONNECTIVES = ("and", "or", "not")
_CALCULATIONS = ("+", "-", "*", "/")
Args = tuple[Item, ...]


def variable_in(item: Item) -> BoundVariable:
    """Return the variable that a word is. Raises TemporalSyntax."""
    if not isinstance(item, Word) or not item.plain or len(item.text) < 2 or item.text[0] != "?":
        raise temporal_syntax("Expected a variable, as in ?t1.", item.position)
    return BoundVariable(item.text[1:], item.position)


def parsed_test(item: Item) -> JoinTest:
    """Parse a test. Raises TemporalSyntax, TemporalTooLarge."""
    if not isinstance(item, ParenthesizedForm) or not item.items:
        raise temporal_syntax("Expected a test, as in (< ?t1 ?t2).", item.position)
    head, *rest = item.items
    args = tuple(rest)
    if not isinstance(head, Word) or not head.plain:
        raise temporal_syntax("Expected a test, as in (< ?t1 ?t2).", head.position)
    if head.text in _CONNECTIVES:
        return _connective(head, args)
    if head.text not in _RELATIONS:
        known = " ".join((*_RELATIONS, *_CONNECTIVES))
        raise temporal_syntax(f"Expected one of: {known}.", head.position)
    return _relation(head, args)


def _connective(head: Word, args: Args) -> JoinTest:
    if not args or (head.text == "not" and len(args) != 1):
        count = "one test" if head.text == "not" else "at least one test"
        raise temporal_syntax(f"`{head.text}` takes {count}.", head.position)
    tests = tuple(map(parsed_test, args))
    if head.text == "not":
        return NegatedTest(tests[0])
    return EveryTest(tests) if head.text == "and" else AnyTest(tests)


def _relation(head: Word, args: Args) -> JoinTest:
    if len(args) < 2:
        raise temporal_syntax(f"`{head.text}` compares at least two values.", head.position)
    if len(args) > limits.TEMPORAL_ARGUMENTS_MAX:
        raise too_large(head.position, arguments_max=limits.TEMPORAL_ARGUMENTS_MAX)
    op = _RELATIONS[head.text]
    pairs = [Relation(op, left, right) for left, right in _pairs(op, [*map(_expression, args)])]
    return pairs[0] if len(pairs) == 1 else EveryTest(tuple(pairs))


def _pairs(op: RelationOp, values: list[Expression]) -> Iterator[tuple[Expression, Expression]]:
    """Yield the pairs that a comparison of several values compares."""
    if op == "=":
        return ((values[0], value) for value in values[1:])
    return combinations(values, 2) if op == "!=" else pairwise(values)


def _expression(item: Item) -> Expression:
    if isinstance(item, Literal):
        return Const(item.value, item.position)
    if isinstance(item, Word):
        return variable_in(item)
    head = item.items[0] if item.items else item
    if not isinstance(head, Word) or head.text not in _CALCULATIONS:
        known = " ".join(_CALCULATIONS)
        raise temporal_syntax(f"Expected a value, or one of: {known}.", head.position)
    values = [_expression(arg) for arg in item.items[1:]]
    if len(values) < 2:
        raise temporal_syntax(f"`{head.text}` takes at least two values.", head.position)
    result = values[0]
    for value in values[1:]:
        result = Calculation(cast(CalculationOp, head.text), result, value)
    return result
