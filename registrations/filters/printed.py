"""The predicate form of any filter, which `parse_predicate` parses into an equal tree. Plain
module.
"""

import json
import re
from json.encoder import encode_basestring

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

# a path without back quotes: a word that has no other meaning
_PLAIN = re.compile(r"(?!env\.)(?!(?i:true|false|null|nan|infinity)\Z)[^\W\d][\w.-]*")


def is_plain(name: str) -> bool:
    """Return whether a path into the attributes needs no back quotes."""
    return _PLAIN.fullmatch(name) is not None


def printed(node: Node) -> str:
    """Print the predicate form, on one line."""
    if isinstance(node, Compare):  # most are
        return f"({node.op} {printed_operand(node.left)} {printed_operand(node.right)})"
    match node:
        case And(items):
            return _form("and", *map(printed, items))
        case Or(items):
            return _form("or", *map(printed, items))
        case Not(item):
            return _form("not", printed(item))
        case Within(path, item):
            return _form("within", _path(path), printed(item))
    return _printed_test(node)


def _printed_test(node: Node) -> str:
    match node:
        case In(path, values):
            return _form("in", _path(path), *map(printed_operand, values))
        case Text(op, path, text):
            return _form(op, _path(path), _constant(text))
        case Exists(path):
            return _form("exists", _path(path))
        case Expression(language, text):
            return _form(language, _constant(text))
        case OfType():
            return _form("type", _constant(type_text(node)))
        case Truth(value):
            return _constant(value)
    raise TypeError(node)


def type_text(node: OfType) -> str:
    """Print `D::T`, with `*` for any domain or type."""
    name = node.type or "*"
    return f"{node.domain or '*'}::{name}{'.*' if node.below else ''}"


def _form(*words: str) -> str:
    return f"({' '.join(words)})"


def printed_operand(operand: Operand) -> str:
    """Print a path, a constant or a calculation."""
    if isinstance(operand, Path):
        return _path(operand)
    if isinstance(operand, Const):
        return _constant(operand.value)
    if isinstance(operand, Arithmetic):
        return _form(operand.op, printed_operand(operand.left), printed_operand(operand.right))
    raise TypeError(operand)


def _path(path: Path) -> str:
    if path.space == "envelope":
        return f"@{path.name}"
    if path.space == "environment":
        return f"env.{path.name}"
    if is_plain(path.name):
        return path.name
    escaped = _constant(path.name)[1:-1].replace('\\"', '"').replace("`", "\\`")
    return f"`{escaped}`"


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _constant(value: object) -> str:
    return encode_basestring(value) if isinstance(value, str) else _encode(value)
