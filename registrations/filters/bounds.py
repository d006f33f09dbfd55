"""The size limits of a filter, in every language. Plain module.

A tree within the limits is safe for recursive code, and its predicate form can be parsed again.
"""

from math import isfinite

from eventhub.base import limits
from eventhub.base.errors import InvalidUtf8, NumberOutOfRange
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    Expression,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Text,
    Truth,
    Within,
)
from registrations.filters.errors import FilterTooLarge
from registrations.filters.expressions import program_of
from registrations.filters.printed import printed

Part = Node | Operand
_LEAVES = (Path, Const, Truth)  # printed without parentheses
_WITH_TEXT = (Text, OfType)  # their text counts as a part
_OF_TWO = (Compare, Arithmetic)


def bounded(node: Node) -> str:
    """Return the tree in predicate form. Raises FilterTooLarge if its depth, parts, paths or this
    form exceed a limit, NumberOutOfRange for numbers beyond 64 bits, InvalidUtf8 for unpaired
    surrogates.
    """
    check_bounds(node)
    text = printed(node)
    _check_text(text)
    return text


def check_bounds(part: Part) -> None:
    """Raise FilterTooLarge if the depth, parts, expressions or paths of a tree exceed a limit:
    other functions over trees call themselves for each level. Raises NumberOutOfRange for numbers
    beyond 64 bits.
    """
    waiting: list[tuple[Part, int]] = [(part, 1)]
    parts, expressions = 0, set[Node]()
    while waiting:
        part, depth = waiting.pop()
        parts += 1 + _further(part)
        if isinstance(part, Expression):
            expressions.add(part)
            if len(expressions) > (most := limits.FILTER_EXPRESSIONS_MAX):
                raise FilterTooLarge(position=part.position, expressions_max=most)
        if parts > limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(position=part.position, parts_max=limits.FILTER_PARTS_MAX)
        if isinstance(part, _LEAVES):
            _check(part)
            continue
        if depth > limits.FILTER_DEPTH_MAX:
            raise FilterTooLarge(position=part.position, depth_max=limits.FILTER_DEPTH_MAX)
        waiting += [(one, depth + 1) for one in _inner(part)[::-1]]


def _further(part: Part) -> int:
    """Return the parts in a text of a node. Raises FilterSyntax, FilterTooLarge."""
    if isinstance(part, Expression):
        return program_of(part).size
    return isinstance(part, _WITH_TEXT)


def _inner(part: Part) -> tuple[Part, ...]:
    if isinstance(part, _OF_TWO):  # most are
        return part.left, part.right
    match part:
        case And(items) | Or(items):
            return items
        case Not(item):
            return (item,)
        case In(path, values):
            return path, *values
        case Text(_, path) | Exists(path):
            return (path,)
        case Within(path, item):
            return path, item
    return ()


def _check(part: Part) -> None:
    if isinstance(part, Path) and len(part.name) > limits.PATH_CHARS_MAX:
        raise FilterTooLarge(position=part.position, path_chars_max=limits.PATH_CHARS_MAX)
    if isinstance(part, Const):
        check_number(part.value)


def check_number(value: object, field: str | None = None) -> None:
    """Raise NumberOutOfRange with the field for a number that no event can have."""
    if isinstance(value, int) and not limits.INTEGER_MIN <= value <= limits.INTEGER_MAX:
        raise NumberOutOfRange(field=field)
    if isinstance(value, float) and not isfinite(value):
        raise NumberOutOfRange(field=field)


def _check_text(text: str) -> None:
    if len(text) > limits.FILTER_CHARS_MAX:
        raise FilterTooLarge(chars_max=limits.FILTER_CHARS_MAX)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidUtf8 from error
