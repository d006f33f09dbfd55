"""READY's simple expressions, `{Ev1: MyAlarm | $Priority > 5}`: a type and a condition on its
events, in a subset of the OMG Notification Service's filter grammar (RDY-16 to RDY-19).
Plain module.

The subset has the meaning that OMG gives it. Ambiguous forms are refused: `not` before a comparison
without parentheses, chained comparisons, `$list._length`. Names of components and types that are
not words are quoted, an extension of OMG's grammar: `$'disk usage' > 90`.
"""

import re
from functools import cache
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
    Operand,
    Or,
    Path,
    Text,
    TextPosition,
    Truth,
)
from registrations.filters.bounds import bounded
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.filters.predicate import path_of, type_pattern
from registrations.filters.ready_grammar import CLOSES, GRAMMAR, position_of, unfinished, unfit
from registrations.filters.ready_printed import HEADER, OMG_ONLY, expression_text, types_text
from registrations.filters.sexpr import end_of, number_in, syntax_error


class SimpleExpression(NamedTuple):
    """A simple expression: a variable that an enclosing expression uses ("": none), the filter."""

    variable: str
    node: Node


def parse_ready(text: str) -> SimpleExpression:
    """Parse `[{] [variable:] type[, type ...] [| expression] [}]`.

    Raises FilterSyntax with its position, FilterTooLarge, InvalidUtf8.
    """
    simple = read_ready(text)
    bounded(simple.node)
    return simple


def read_ready(text: str) -> SimpleExpression:
    """Parse the same without checking the size limits of the tree."""
    if len(text) > limits.FILTER_CHARS_MAX:
        raise FilterTooLarge(position=end_of(text), chars_max=limits.FILTER_CHARS_MAX)
    if not text.strip():
        raise syntax_error("The filter is empty.", TextPosition(1, 1))
    return _read(text, _grammar().parse_interactive(text))


def print_ready(simple: SimpleExpression) -> str:
    """Print the text that `parse_ready` parses into the same, in braces and on one line (RDY-16).

    Raises ValueError if READY cannot express it within the size limits of a filter.
    """
    types, expression = simple.node, None
    if isinstance(types, And) and len(types.items) == 2:
        types, expression = types.items
    text = types_text(types)
    if simple.variable:
        text = f"{simple.variable}: {text}"
    if expression is not None:
        text = f"{text} | {expression_text(expression)}"
    text = f"{{{text}}}"
    try:
        if parse_ready(text) == simple:
            return text
    except EventHubError as error:
        raise ValueError(f"READY cannot express {text}") from error
    raise ValueError(f"READY cannot express {text}")


def _read(text: str, state: InteractiveParser) -> SimpleExpression:
    """Feed token after token, so that a text that is nested too deep or too long fails early."""
    opened: list[Token] = []
    tokens_max = 3 * limits.FILTER_PARTS_MAX  # more than the tokens of so many parts
    try:
        for number, token in enumerate(state.iter_parse()):
            if token.type in CLOSES:
                opened.append(token)
            elif opened and token.type == CLOSES[opened[-1].type]:
                opened.pop()
            if len(opened) > limits.FILTER_DEPTH_MAX + 1:  # one more for the brace
                raise FilterTooLarge(position=position_of(token), depth_max=limits.FILTER_DEPTH_MAX)
            if number > tokens_max:
                raise FilterTooLarge(position=position_of(token), parts_max=limits.FILTER_PARTS_MAX)
    except UnexpectedInput as error:
        message = unfit(text, error.pos_in_stream or 0, state, opened)
        raise syntax_error(message, TextPosition(error.line, error.column)) from None
    try:
        return cast(SimpleExpression, state.feed_token(Token("$END", "")))
    except UnexpectedInput:
        raise unfinished(text, state, opened) from None


@v_args(inline=True)
class ReadyTree(Transformer[Token, Any]):
    """The builder of the tree, called while the text is parsed. A component or TRUE is a value
    until it is used as a condition.
    """

    def simple(
        self, variable: Token | None, types: Node, condition: Node | None = None
    ) -> SimpleExpression:
        node = types if condition is None else And((types, condition), types.position)
        return SimpleExpression(str(variable or ""), node)

    def types(self, *names: Token) -> Node:
        found = tuple(
            type_pattern(unquoted(name) if name.type == "TEXT" else str(name), position_of(name))
            for name in names
        )
        return found[0] if len(found) == 1 else Or(found, found[0].position)

    def expression(self, item: Node | Operand) -> Node:
        return truth_of(item)

    def any(self, *items: Any) -> Node:
        return Or(tuple(map(truth_of, items[::2])), position_of(items[1]))

    def all(self, *items: Any) -> Node:
        return And(tuple(map(truth_of, items[::2])), position_of(items[1]))

    def negation(self, word: Token, item: Node | Operand) -> Node:
        return Not(truth_of(item), position_of(word))

    def compare(self, left: Node | Operand, sign: Token, right: Node | Operand) -> Node:
        op = cast(Comparison, "=" if sign == "==" else str(sign))
        return Compare(op, operand_of(left), operand_of(right), position_of(sign))

    def member(self, value: Node | Operand, word: Token, path: Path) -> Node:
        return Compare("=", path, operand_of(value), position_of(word))

    def substring(self, text: Node | Operand, sign: Token, path: Node | Operand) -> Node:
        if not isinstance(text, Const) or not isinstance(text.value, str):
            raise syntax_error(
                "Expected a quoted text before ~, as in 'disk' ~ $summary.", position_of(sign)
            )
        if not isinstance(path, Path):
            raise syntax_error(
                "Expected a component after ~, as in 'disk' ~ $summary.", position_of(sign)
            )
        return Text("substring", path, text.value, position_of(sign))

    def arithmetic(self, left: Node | Operand, sign: Token, right: Node | Operand) -> Operand:
        op = cast(Any, str(sign))
        return Arithmetic(op, operand_of(left), operand_of(right), position_of(sign))

    def minus(self, sign: Token, item: Node | Operand) -> Operand:
        return Arithmetic("-", Const(0, position_of(sign)), operand_of(item), position_of(sign))

    def negative(self, sign: Token, number: Token) -> Operand:
        return Const(number_in(f"-{number}", position_of(sign)), position_of(sign))

    def number(self, number: Token) -> Operand:
        return Const(number_in(str(number), position_of(number)), position_of(number))

    def text(self, text: Token) -> Operand:
        return Const(unquoted(text), position_of(text))

    def truth(self, word: Token) -> Operand:
        return Const(word == "TRUE", position_of(word))

    def exist(self, word: Token, path: Path) -> Node:
        return Exists(path, position_of(word))

    def path(self, token: Token) -> Path:
        return component(token[1:].removeprefix("."), str(token), position_of(token))


def component(name: str, written: str, position: TextPosition) -> Path:
    """Return the path of a component, `Priority`, `'disk usage'` or `header.type`; `written` is its
    full text, for errors. Raises FilterSyntax.
    """
    if name.startswith("'"):
        return Path(unquoted(name), position=position)
    if not OMG_ONLY.isdisjoint(name.split(".")):
        quoted = f"{written.removesuffix(name)}'{name}'"
        raise syntax_error(
            f"OMG's {written} is not supported; quote the name of a component: {quoted}.", position
        )
    if not name.startswith(HEADER):
        return path_of(name, position)
    try:
        return path_of("@" + name.removeprefix(HEADER), position)
    except FilterSyntax as error:
        prefix = written.removesuffix(name)
        message = error.message.replace("@", f"{prefix}{HEADER}")
        raise syntax_error(message, position) from error


@cache
def _grammar() -> Lark:
    """Return the parser, which takes 80 ms to build: most processes never parse such a filter."""
    return Lark(GRAMMAR, parser="lalr", transformer=ReadyTree())


def unquoted(text: str) -> str:
    """Return the text in single quotes."""
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def truth_of(item: Node | Operand) -> Node:
    """Return a condition as a filter; a component is compared with TRUE. Raises FilterSyntax."""
    if isinstance(item, Path):
        return Compare("=", item, Const(True, item.position), item.position)
    if isinstance(item, Const) and isinstance(item.value, bool):
        return Truth(item.value, item.position)
    if isinstance(item, Const | Arithmetic):
        raise syntax_error(
            "Expected a condition, as in $Priority > 5.", item.position or TextPosition(1, 1)
        )
    return item


def operand_of(item: Node | Operand) -> Operand:
    """Return a value. Raises FilterSyntax for a condition."""
    if isinstance(item, Path | Const | Arithmetic):
        return item
    message = "Expected a value; a comparison has none."
    if isinstance(item, Not):
        message = "`not` applies to the next word only; write not ($Priority > 5)."
    raise syntax_error(message, item.position or TextPosition(1, 1))
