"""The parser of READY's compound patterns, `({a: A} && {b: B}) where a.user == b.user`: text to
tree. Plain module.

It checks the syntax, and the limits of the text and its nesting; checks.py checks what the parts
mean together.
"""

import re
from functools import cache
from typing import Any, NamedTuple, cast

from lark import Lark, Token, UnexpectedInput, v_args
from lark.parsers.lalr_interactive_parser import InteractiveParser

from eventhub.base import limits
from registrations.filters.ast import And, Const, Node, Operand, Path, TextPosition
from registrations.filters.bounds import check_bounds
from registrations.filters.paths import all_paths, paths_of
from registrations.filters.ready import ReadyTree, component, operand_of, truth_of, unquoted
from registrations.filters.ready_grammar import position_of
from registrations.filters.ready_printed import component_text
from registrations.filters.sexpr import end_of, syntax_error
from registrations.patterns.ast import (
    Action,
    AnnounceAction,
    AssignAction,
    Combined,
    Do,
    Element,
    IncrementAction,
    NewEventForm,
    NotifyAction,
    Operator,
    Part,
    Pattern,
    SetFunction,
    VariablePath,
    Where,
)
from registrations.patterns.checks import check
from registrations.patterns.errors import PatternTooLarge
from registrations.patterns.grammar import GRAMMAR, Brackets, unfinished, unfit

_UNITS_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_ONE = Const(1)
_DURATION = re.compile(r"([0-9]+)([a-z]+)")


_Range = tuple[int, int | None]


class _Modifier(NamedTuple):
    name: str
    value: Any
    position: TextPosition


def parse_pattern(text: str) -> Pattern:
    """Parse a pattern. Raises FilterSyntax with its position, FilterTooLarge, PatternTooLarge,
    InvalidUtf8.
    """
    if len(text) > limits.PATTERN_CHARS_MAX:
        raise PatternTooLarge(position=end_of(text), chars_max=limits.PATTERN_CHARS_MAX)
    if not text.strip():
        raise syntax_error("The pattern is empty.", TextPosition(1, 1))
    pattern = _read(text, _grammar().parse_interactive(text))
    check(pattern)
    return pattern


def _read(text: str, state: InteractiveParser) -> Pattern:
    """Feed token after token, so that a text that is nested too deep fails early."""
    brackets = Brackets()
    try:
        for token in state.iter_parse():
            brackets.take(token, state)
            if len(brackets.open) > limits.PATTERN_DEPTH_MAX + limits.FILTER_DEPTH_MAX:
                depth_max = limits.PATTERN_DEPTH_MAX
                raise PatternTooLarge(position=position_of(token), depth_max=depth_max)
    except UnexpectedInput as error:
        message = unfit(text, error.pos_in_stream or 0, state, brackets)
        raise syntax_error(message, TextPosition(error.line, error.column)) from None
    try:
        return cast(Pattern, state.feed_token(Token("$END", "")))
    except UnexpectedInput:
        raise unfinished(text, state, brackets) from None


@v_args(inline=True)
class _PatternTree(ReadyTree):
    """The builder of the tree, called while the text is parsed."""

    def start(self, part: Part, *modifiers: _Modifier) -> Pattern:
        found: dict[str, Any] = {}
        for name, value, position in modifiers:
            if name in found:
                raise syntax_error(
                    f"There can be only one {_WORDS.get(name, f'`{name}`')}.", position
                )
            found[name] = value
        return Pattern(part, **found)

    def bare(self, variable: Token | None, types: Node, condition: Any = None) -> Part:
        return self.element(variable, types, condition)

    def element(self, variable: Token | None, types: Node, condition: Any = None) -> Part:
        position = types.position if variable is None else position_of(variable)
        return Element(_filter(types, condition), str(variable or ""), position=position)

    def sequence(self, variable: Token, bounds: _Range, types: Node, condition: Any = None) -> Part:
        node = _filter(types, condition)
        return Element(node, str(variable), True, *bounds, position_of(variable))

    def range(self, least: Token, most: Token) -> _Range:
        return _whole(least), None if most.type == "STAR" else _whole(most)

    def joined(self, left: Part, *others: Any) -> Part:
        for sign, right in zip(others[::2], others[1::2], strict=True):
            left = Combined(cast(Operator, str(sign)), left, right, position_of(sign))
        return left

    def where(self, part: Part, word: Token, condition: Node | Operand) -> Part:
        return Where(part, _of_variables(truth_of(condition)), position_of(word))

    def do(self, part: Part, word: Token, *actions: Action) -> Part:
        return Do(part, actions, position_of(word))

    def names(self, *names: Token | None) -> tuple[str, ...] | None:
        return tuple(str(name) for name in names if name is not None) or None

    def notify(self, word: Token, names: tuple[str, ...] | None, target: Token | None) -> Action:
        return NotifyAction(names, target and unquoted(target), position_of(word))

    def announce(self, word: Token, event: Token | NewEventForm, stream: Token | None) -> Action:
        what = event if isinstance(event, NewEventForm) else str(event)
        return AnnounceAction(what, stream and unquoted(stream), position_of(word))

    def announced(self, type: Token, attributes: tuple[tuple[str, Operand], ...]) -> NewEventForm:
        domain, _, name = str(type).rpartition("::")
        if max(len(domain), len(name)) > limits.TEXT_CHARS_MAX:
            message = f"No event has a domain or type of more than {limits.TEXT_CHARS_MAX}"
            raise syntax_error(f"{message} characters.", position_of(type))
        return NewEventForm(domain, name, attributes)

    def assign(self, word: Token, name: Token, type: Token, attributes: Any) -> Action:
        return AssignAction(str(name), self.announced(type, attributes), position_of(word))

    def increment(self, word: Token, name: Token, by: Node | Operand | None) -> Action:
        value = _ONE if by is None else _value(by)
        return IncrementAction(str(name), value, position_of(word))

    def attributes(self, *pairs: tuple[Token, str, Operand] | None) -> Any:
        found: dict[str, Operand] = {}
        for token, name, value in filter(None, pairs):
            if name in found:
                raise syntax_error(f"The attribute {name} is there twice.", position_of(token))
            found[name] = value
        return tuple(found.items())

    def attribute(self, name: Token, value: Node | Operand) -> tuple[Token, str, Operand]:
        text = unquoted(name) if name.type == "TEXT" else str(name)
        return name, text, _value(value)

    def component(self, token: Token) -> Path:
        return _variable_path(token, None, position_of(token))

    def function(self, name: Token, token: Token) -> Path:
        return _variable_path(token, cast(SetFunction, str(name)), position_of(name))

    def per(self, word: Token, path: Path) -> _Modifier:
        return _Modifier("per", path, position_of(word))

    def within(self, word: Token, duration: Token) -> _Modifier:
        found = cast(re.Match[str], _DURATION.fullmatch(duration))
        value, position = _whole(duration, found[1]) * _UNITS_US[found[2]], position_of(duration)
        if value > limits.PATTERN_WITHIN_S_MAX * 1_000_000:
            raise PatternTooLarge(position=position, within_s_max=limits.PATTERN_WITHIN_S_MAX)
        if value == 0:
            raise syntax_error("The time after `within` is more than 0, as in 5m.", position)
        return _Modifier("within_us", value, position)

    def last(self, word: Token, count: Token) -> _Modifier:
        value, position = _whole(count), position_of(count)
        if value > limits.PATTERN_LAST_MAX:
            raise PatternTooLarge(position=position, last_max=limits.PATTERN_LAST_MAX)
        if value == 0:
            raise syntax_error("A pattern spans at least one event after `last`.", position)
        return _Modifier("last", value, position)

    def how_often(self, word: Token) -> _Modifier:
        return _Modifier("once", word == "once", position_of(word))


_WORDS = {"within_us": "`within`", "once": "`once` or `repeat`"}


@cache
def _grammar() -> Lark:
    """Return the parser, which is built when the first pattern is parsed."""
    return Lark(GRAMMAR, parser="lalr", transformer=_PatternTree())


def _whole(token: Token, text: str = "") -> int:
    digits = text or str(token)
    if len(digits) > 15:
        raise syntax_error("The number is too large.", position_of(token))
    return int(digits)


def _filter(types: Node, condition: Node | Operand | None) -> Node:
    """Return the filter of an element."""
    if condition is None:
        return types
    node = truth_of(condition)
    check_bounds(node)
    for path in all_paths(node):
        if isinstance(path, VariablePath):
            raise syntax_error(
                "In an element, a component begins with $; conditions over variables follow "
                "`where`.",
                path.position or TextPosition(1, 1),
            )
    return And((types, node), types.position)


def _of_variables(node: Node) -> Node:
    check_bounds(node)
    for path in all_paths(node):
        _check_variable(path)
    return node


def _value(found: Node | Operand) -> Operand:
    value = operand_of(found)
    check_bounds(value)
    for path in paths_of(value):
        _check_variable(path)
    return value


def _check_variable(path: Path) -> None:
    if not isinstance(path, VariablePath):
        raise syntax_error(
            "Here a component is one of a variable, as in a.Priority.",
            path.position or TextPosition(1, 1),
        )


def _variable_path(
    token: Token, function: SetFunction | None, position: TextPosition
) -> VariablePath:
    variable, dot, name = str(token).partition(".")
    path = component(name, str(token), position_of(token)) if dot else None
    text = f"{variable}.{component_text(path)}" if path else variable
    if function:
        text = f"{function}({text})"
    return VariablePath(text, "attributes", position, variable, path, function)
