"""READY's simple expressions, `{Ev1: MyAlarm | $Priority > 5}`: a type, and what must hold of its
events, in a subset of the OMG Notification Service's filter grammar (RDY-16 to RDY-19).
Plain module.

What the subset takes means what it means there. What could be read in two ways is refused: `not`
before a comparison without parentheses, comparisons in a row, `$list._length`. Names that are no
words, of components and of types, stand in quotes, which OMG does not have: `$'disk usage' > 90`.
"""

import re
from typing import Any, NamedTuple, cast

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.parsers.lalr_interactive_parser import InteractiveParser

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Const,
    Exists,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Place,
    Text,
    Truth,
)
from registrations.filters.bounds import bounded
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.filters.predicate import path_of, type_pattern
from registrations.filters.printed import type_text
from registrations.filters.ready_grammar import CLOSES, GRAMMAR, place_of, unfinished, unfit
from registrations.filters.sexpr import end_of, number_in, wrong

_HEADER = "header."
_OMG_ONLY = frozenset(("_length", "_d", "_type_id", "_repos_id"))
_TYPE_WORD = re.compile(r"[\w.*-]+(?:::[\w.*-]+)?")
_PATH_WORD = re.compile(r"(?!env\.|header\.)[^\W\d]\w*(?:\.\w+)*")
# how strongly the parts of a text hold together, the weakest first
_ANY, _ALL, _TEST, _SUM, _TERM, _FACTOR, _ATOM = range(7)


class Simple(NamedTuple):
    """A simple expression: the name that the event has in a larger one, or "", and the filter."""

    variable: str
    node: Node


def parse_ready(text: str) -> Simple:
    """The tree of `[{] [variable:] type[, type ...] [| expression] [}]`.

    Raises FilterSyntax with its place, FilterTooLarge, InvalidUtf8.
    """
    simple = read_ready(text)
    bounded(simple.node)
    return simple


def read_ready(text: str) -> Simple:
    """The same for who sees to the bounds of the tree."""
    if len(text) > limits.FILTER_CHARS_MAX:
        raise FilterTooLarge(place=end_of(text), chars_max=limits.FILTER_CHARS_MAX)
    if not text.strip():
        raise wrong("The filter is empty.", Place(1, 1))
    return _read(text, _GRAMMAR.parse_interactive(text))


def print_ready(simple: Simple) -> str:
    """The text that `parse_ready` reads into the same, in braces and on one line (RDY-16).

    Raises ValueError if READY cannot say it, or not within the bounds of a filter.
    """
    types, expression = simple.node, None
    if isinstance(types, And) and len(types.items) == 2:
        types, expression = types.items
    several = types.items if isinstance(types, Or) else (types,)
    text = ", ".join(map(_type, several))
    if simple.variable:
        text = f"{simple.variable}: {text}"
    if expression is not None:
        text = f"{text} | {_text(expression, _ANY)}"
    text = f"{{{text}}}"
    try:
        if parse_ready(text) == simple:
            return text
    except EventHubError as error:
        raise ValueError(f"READY cannot say it: {text}") from error
    raise ValueError(f"READY cannot say it: {text}")


def _read(text: str, state: InteractiveParser) -> Simple:
    """Feeds token after token: what nests too deep or goes on for too long is left early."""
    opened: list[Token] = []
    tokens_max = 3 * limits.FILTER_PARTS_MAX  # more than so many parts are written with
    try:
        for number, token in enumerate(state.iter_parse()):
            if token.type in CLOSES:
                opened.append(token)
            elif opened and token.type == CLOSES[opened[-1].type]:
                opened.pop()
            if len(opened) > limits.FILTER_DEPTH_MAX + 1:  # a brace is one
                raise FilterTooLarge(place=place_of(token), depth_max=limits.FILTER_DEPTH_MAX)
            if number > tokens_max:
                raise FilterTooLarge(place=place_of(token), parts_max=limits.FILTER_PARTS_MAX)
    except UnexpectedInput as error:
        message = unfit(text, error.pos_in_stream or 0, state, opened)
        raise wrong(message, Place(error.line, error.column)) from None
    try:
        return cast(Simple, state.feed_token(Token("$END", "")))
    except UnexpectedInput:
        raise unfinished(text, state, opened) from None


@v_args(inline=True)
class _Tree(Transformer[Token, Any]):
    """Makes the tree while the text is read. A component or TRUE is a value until it stands where a
    truth does.
    """

    def simple(self, variable: Token | None, types: Node, condition: Node | None = None) -> Simple:
        node = types if condition is None else And((types, condition), types.place)
        return Simple(str(variable or ""), node)

    def types(self, *names: Token) -> Node:
        found = tuple(
            type_pattern(_quoted(name) if name.type == "TEXT" else str(name), place_of(name))
            for name in names
        )
        return found[0] if len(found) == 1 else Or(found, found[0].place)

    def expression(self, item: Node | Operand) -> Node:
        return _truth(item)

    def any(self, *items: Any) -> Node:
        return Or(tuple(map(_truth, items[::2])), place_of(items[1]))

    def all(self, *items: Any) -> Node:
        return And(tuple(map(_truth, items[::2])), place_of(items[1]))

    def negation(self, word: Token, item: Node | Operand) -> Node:
        return Not(_truth(item), place_of(word))

    def compare(self, left: Node | Operand, sign: Token, right: Node | Operand) -> Node:
        op = cast(Comparison, "=" if sign == "==" else str(sign))
        return Compare(op, _value(left), _value(right), place_of(sign))

    def member(self, value: Node | Operand, word: Token, path: Path) -> Node:
        return Compare("=", path, _value(value), place_of(word))

    def substring(self, text: Node | Operand, sign: Token, path: Node | Operand) -> Node:
        if not isinstance(text, Const) or not isinstance(text.value, str):
            raise wrong(
                "Before ~ stands a text in quotes, as in 'disk' ~ $summary.", place_of(sign)
            )
        if not isinstance(path, Path):
            raise wrong("After ~ stands a component, as in 'disk' ~ $summary.", place_of(sign))
        return Text("substring", path, text.value, place_of(sign))

    def arithmetic(self, left: Node | Operand, sign: Token, right: Node | Operand) -> Operand:
        return Arithmetic(cast(Any, str(sign)), _value(left), _value(right), place_of(sign))

    def minus(self, sign: Token, item: Node | Operand) -> Operand:
        return Arithmetic("-", Const(0, place_of(sign)), _value(item), place_of(sign))

    def negative(self, sign: Token, number: Token) -> Operand:
        return Const(number_in(f"-{number}", place_of(sign)), place_of(sign))

    def number(self, number: Token) -> Operand:
        return Const(number_in(str(number), place_of(number)), place_of(number))

    def text(self, text: Token) -> Operand:
        return Const(_quoted(text), place_of(text))

    def truth(self, word: Token) -> Operand:
        return Const(word == "TRUE", place_of(word))

    def exist(self, word: Token, path: Path) -> Node:
        return Exists(path, place_of(word))

    def path(self, token: Token) -> Path:
        place = place_of(token)
        name = token[1:].removeprefix(".")
        if name.startswith("'"):
            return Path(_quoted(name), place=place)
        if not _OMG_ONLY.isdisjoint(name.split(".")):
            raise wrong(f"Of OMG's {token} only the name is known here: $'{name}'.", place)
        if not name.startswith(_HEADER):
            return path_of(name, place)
        try:
            return path_of("@" + name.removeprefix(_HEADER), place)
        except FilterSyntax as error:
            raise wrong(error.message.replace("@", f"${_HEADER}"), place) from error


# made when a process starts: whoever reads the first filter would wait for it
_GRAMMAR = Lark(GRAMMAR, parser="lalr", transformer=_Tree())


def _quoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _truth(item: Node | Operand) -> Node:
    if isinstance(item, Path):
        return Compare("=", item, Const(True, item.place), item.place)
    if isinstance(item, Const) and isinstance(item.value, bool):
        return Truth(item.value, item.place)
    if isinstance(item, Const | Arithmetic):
        raise wrong("Here a truth is wanted, as in $Priority > 5.", item.place or Place(1, 1))
    return item


def _value(item: Node | Operand) -> Operand:
    if isinstance(item, Path | Const | Arithmetic):
        return item
    message = "Here a value is wanted; a comparison gives none."
    if isinstance(item, Not):
        message = "`not` is of what stands next to it; write not ($Priority > 5)."
    raise wrong(message, item.place or Place(1, 1))


def _text(part: Node | Operand, least: int) -> str:
    """In parentheses, if it holds together less than it must."""
    text, strength = _said(part)
    return text if strength >= least else f"({text})"


def _said(part: Node | Operand) -> tuple[str, int]:  # noqa: C901 - one case for each
    match part:
        case Or(items):
            return " or ".join(_text(item, _ALL) for item in items), _ANY
        case And(items):
            return " and ".join(_text(item, _TEST) for item in items), _ALL
        case Not(item):
            return f"not {_text(item, _FACTOR)}", _FACTOR
        case Truth(value):
            return str(value).upper(), _ATOM
        case Exists(path):
            return f"exist {_path(path)}", _ATOM
        case Text("substring", path, text):
            return f"{_in_quotes(text)} ~ {_path(path)}", _TEST
        case Compare("=", Path() as path, Const(True)):
            return _path(path), _ATOM
        case Compare(op, left, right):
            sign = "==" if op == "=" else op
            return f"{_text(left, _SUM)} {sign} {_text(right, _SUM)}", _TEST
        case Arithmetic("-", Const(0, kind="integer"), Path() | Arithmetic() as right):
            return f"-{_text(right, _ATOM)}", _FACTOR
        case Arithmetic(op, left, right):
            strength = _SUM if op in "+-" else _TERM
            return f"{_text(left, strength)} {op} {_text(right, strength + 1)}", strength
        case Path():
            return _path(part), _ATOM
        case Const(value) if value is not None:
            return _constant(value), _FACTOR
    raise ValueError(f"READY has no word for {part}")


def _path(path: Path) -> str:
    if path.space != "attributes":
        return f"${'env.' if path.space == 'environment' else _HEADER}{path.name}"
    plain = _PATH_WORD.fullmatch(path.name) and _OMG_ONLY.isdisjoint(path.name.split("."))
    return f"${path.name if plain else _in_quotes(path.name)}"


def _constant(value: str | int | float) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return _in_quotes(value) if isinstance(value, str) else repr(value)


def _type(node: Node) -> str:
    if isinstance(node, OfType):
        text = type_text(node)
        short = text.removeprefix("*::")
        if node.type is not None and "::" not in short:
            text = short
        return text if _TYPE_WORD.fullmatch(text) else _in_quotes(text)
    raise ValueError(f"In READY a filter begins with a type, not with {node}")


def _in_quotes(text: str) -> str:
    escaped = re.sub(r"(['\\\\])", r"\\\1", text)
    return f"'{escaped}'"
