"""How large a filter may be, whatever language it came from. Plain.

What passes is safe for code that follows the tree by calling itself, and its predicate form can be
read back.
"""

from collections.abc import Iterator
from math import isfinite

from eventhub import limits
from eventhub.errors import InvalidUtf8, NumberOutOfRange
from registrations.errors import FilterTooLarge
from registrations.lang.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Text,
    Truth,
)
from registrations.lang.printed import printed

_INTEGER_MAX = 1 << 63
Part = Node | Operand
_LEAVES = (Path, Const, Truth)  # what stands in no parentheses of its own


def bounded(node: Node) -> Node:
    """The same tree. Raises FilterTooLarge for its depth, parts, paths and length in predicate
    form, NumberOutOfRange for what 64 bits do not hold, InvalidUtf8 for half characters.
    """
    waiting: list[tuple[Part, int]] = [(node, 1)]
    parts = 0
    while waiting:
        part, depth = waiting.pop()
        parts += 1 + isinstance(part, Text | OfType)  # and the text in it
        if parts > limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(parts_max=limits.FILTER_PARTS_MAX)
        if depth > limits.FILTER_DEPTH_MAX and not isinstance(part, _LEAVES):
            raise FilterTooLarge(depth_max=limits.FILTER_DEPTH_MAX)
        _check(part)
        waiting.extend((one, depth + 1) for one in _inner(part))
    _check_text(printed(node))
    return node


def _inner(part: Part) -> Iterator[Part]:
    match part:
        case And(items) | Or(items):
            yield from items
        case Not(item):
            yield item
        case Compare(_, left, right) | Arithmetic(_, left, right):
            yield left
            yield right
        case In(path, values):
            yield path
            yield from values
        case Text(_, path) | Exists(path):
            yield path


def _check(part: Part) -> None:
    if isinstance(part, Path) and len(part.name) > limits.PATH_CHARS_MAX:
        raise FilterTooLarge(path_chars_max=limits.PATH_CHARS_MAX)
    if not isinstance(part, Const) or isinstance(part.value, bool):
        return
    value = part.value
    whole = isinstance(value, int) and not -_INTEGER_MAX <= value < _INTEGER_MAX
    if whole or (isinstance(value, float) and not isfinite(value)):
        raise NumberOutOfRange


def _check_text(text: str) -> None:
    if len(text) > limits.FILTER_CHARS_MAX:
        raise FilterTooLarge(chars_max=limits.FILTER_CHARS_MAX)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidUtf8 from error
