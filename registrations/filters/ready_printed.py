"""The printed form of READY's expressions, which parses into an equal tree. Plain module."""

import re
from collections.abc import Callable

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Text,
    Truth,
)
from registrations.filters.printed import type_text

HEADER = "header."
OMG_ONLY = frozenset(("_length", "_d", "_type_id", "_repos_id"))
PathText = Callable[[Path], str]  # returns a path as the language writes it
_TYPE_WORD = re.compile(r"[\w.*-]+(?:::[\w.*-]+)?")
_PATH_WORD = re.compile(r"(?!env\.|header\.)[^\W\d]\w*(?:\.\w+)*")
# precedence of the operators, the lowest first
_ANY, _ALL, _TEST, _SUM, _TERM, _FACTOR, _ATOM = range(7)


def simple_text(path: Path) -> str:
    """Return a path as a simple expression writes it: `$` and the component."""
    return f"${component_text(path)}"


def component_text(path: Path) -> str:
    """Return the component of an event that a path names."""
    if path.space != "attributes":
        return f"{'env.' if path.space == 'environment' else HEADER}{path.name}"
    plain = _PATH_WORD.fullmatch(path.name) and OMG_ONLY.isdisjoint(path.name.split("."))
    return path.name if plain else in_quotes(path.name)


def types_text(node: Node) -> str:
    """Print a type, or several with commas. Raises ValueError for another filter."""
    return ", ".join(map(_type, node.items if isinstance(node, Or) else (node,)))


def expression_text(part: Node | Operand, path_text: PathText = simple_text) -> str:
    """Print a condition or a value. Raises ValueError if READY cannot express it."""
    return _Printer(path_text).text(part, _ANY)


def constant_text(value: str | int | float) -> str:
    """Print a constant."""
    if isinstance(value, bool):
        return str(value).upper()
    return in_quotes(value) if isinstance(value, str) else repr(value)


def in_quotes(text: str) -> str:
    """Print a text in single quotes."""
    escaped = re.sub(r"(['\\\\])", r"\\\1", text)
    return f"'{escaped}'"


class _Printer:
    """A printer with the text of a path."""

    def __init__(self, path_text: PathText) -> None:
        self._path = path_text

    def text(self, part: Node | Operand, least: int) -> str:
        """Print a part, in parentheses if its precedence is too low."""
        text, strength = self._said(part)
        return text if strength >= least else f"({text})"

    def _said(self, part: Node | Operand) -> tuple[str, int]:  # noqa: C901 - one case for each
        text = self.text
        match part:
            case Or(items):
                return " or ".join(text(item, _ALL) for item in items), _ANY
            case And(items):
                return " and ".join(text(item, _TEST) for item in items), _ALL
            case Not(item):
                return f"not {text(item, _FACTOR)}", _FACTOR
            case Truth(value):
                return str(value).upper(), _ATOM
            case Exists(path):
                return f"exist {self._path(path)}", _ATOM
            case Text("substring", path, sought):
                return f"{in_quotes(sought)} ~ {self._path(path)}", _TEST
            case Compare("=", Path() as path, Const(True)):
                return self._path(path), _ATOM
            case Compare(op, left, right):
                sign = "==" if op == "=" else op
                return f"{text(left, _SUM)} {sign} {text(right, _SUM)}", _TEST
            case Arithmetic("-", Const(0, kind="integer"), Path() | Arithmetic() as right):
                return f"-{text(right, _ATOM)}", _FACTOR
            case Arithmetic(op, left, right):
                strength = _SUM if op in "+-" else _TERM
                return f"{text(left, strength)} {op} {text(right, strength + 1)}", strength
            case Path():
                return self._path(part), _ATOM
            case Const(value) if value is not None:
                return constant_text(value), _FACTOR
        raise ValueError(f"READY cannot express {part}")


def _type(node: Node) -> str:
    if isinstance(node, OfType):
        text = type_text(node)
        short = text.removeprefix("*::")
        if node.type is not None and "::" not in short:
            text = short
        return text if _TYPE_WORD.fullmatch(text) else in_quotes(text)
    raise ValueError(f"A READY filter begins with a type, not with {node}")
