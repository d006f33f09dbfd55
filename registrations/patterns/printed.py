"""The printed form of a compound pattern, which parses into an equal tree, and its normal form.
Plain module.
"""

import re
from collections.abc import Callable

from eventhub.base import limits
from registrations.filters.ast import And, Operand, Path
from registrations.filters.normal import normal, printed_parts
from registrations.filters.ready_printed import (
    expression_text,
    in_quotes,
    simple_text,
    types_text,
)
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
    Where,
)

ElementText = Callable[[Element], str]
# precedence, the lowest first
_STRENGTH: dict[Operator, int] = {";": 0, "||": 1, "&&": 2, "butnot": 3}
_POSTFIXED = 4
_WORD = re.compile(r"[^\W\d]\w*")
_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000))


def print_pattern(pattern: Pattern) -> str:
    """Print a pattern on one line. Raises ValueError if READY cannot express a filter in it."""
    words = [part_text(pattern.part)]
    if pattern.per is not None:
        words.append(f"per {simple_text(pattern.per)}")
    if pattern.within_us is not None:
        words.append(f"within {duration_text(pattern.within_us)}")
    if pattern.last is not None:
        words.append(f"last {pattern.last}")
    return " ".join([*words, "once"] if pattern.once else words)


def part_text(part: Part) -> str:
    """Print a part of a pattern."""
    return _text(part, 0)


def element_text(element: Element) -> str:
    """Print an element in its braces."""
    types, expression = element.node, None
    if isinstance(types, And) and len(types.items) == 2:
        types, expression = types.items
    text = types_text(types)
    if element.variable:
        text = f"{element.variable}{_range(element)}: {text}"
    if expression is not None:
        text = f"{text} | {expression_text(expression)}"
    return f"{{{text}}}"


def duration_text(us: int) -> str:
    """Print a duration in its largest whole unit."""
    found = next(((name, unit) for name, unit in _UNITS if us % unit == 0), ("ms", 1_000))
    return f"{us // found[1]}{found[0]}"


def normal_pattern(pattern: Pattern) -> str:
    """Return the normal form of a pattern, in which every filter is in its own normal form and the
    window is stated. Patterns with equal normal forms have the same outputs for all events.
    """
    within_us = pattern.within_us or limits.PATTERN_WITHIN_S_DEFAULT * 1_000_000
    last = f"{pattern.last}" if pattern.last else f"{limits.PATTERN_LAST_DEFAULT} by default"
    per = "" if pattern.per is None else simple_text(pattern.per)
    part = _text(pattern.part, 0, _normal_element)
    return f"{part} per {per} within {within_us} last {last} once {pattern.once}"


def _text(part: Part, least: int, element: ElementText = element_text) -> str:
    match part:
        case Element():
            return element(part)
        case Combined(operator, left, right):
            strength = _STRENGTH[operator]
            # the operators group from the left, butnot not at all
            own = strength + 1 if operator == "butnot" else strength
            sign = ";" if operator == ";" else f" {operator}"
            others = _text(left, own, element), _text(right, strength + 1, element)
            text = f"{others[0]}{sign} {others[1]}"
            return text if strength >= least else f"({text})"
        case Where(inner, condition):
            text = _text(inner, _POSTFIXED, element)
            return f"{text} where {expression_text(condition, _name)}"
        case Do(inner, actions):
            return f"{_text(inner, _POSTFIXED, element)} do {', '.join(map(_action, actions))}"


def _action(action: Action) -> str:
    match action:
        case AssignAction(variable, event):
            return f"assign {variable} = {_type(event)}{_attributes(event)}"
        case NotifyAction(variables, target):
            to = "" if target is None else f" to {in_quotes(target)}"
            return f"notify({', '.join(variables or ())}){to}"
        case AnnounceAction(event, stream):
            into = "" if stream is None else f" into {in_quotes(stream)}"
            what = event if isinstance(event, str) else f"{_type(event)}, {_attributes(event)}"
            return f"announce({what}){into}"
        case IncrementAction(counter, by):
            return f"increment {counter} by {_value(by)}"


def _type(event: NewEventForm) -> str:
    return f"{event.domain}::{event.type}" if event.domain else event.type


def _attributes(event: NewEventForm) -> str:
    pairs = (
        f"{name if _WORD.fullmatch(name) else in_quotes(name)} = {_value(value)}"
        for name, value in event.attributes
    )
    return f"{{{', '.join(pairs)}}}"


def _value(value: Operand) -> str:
    return expression_text(value, _name)


def _name(path: Path) -> str:
    return path.name


def _normal_element(element: Element) -> str:
    alternatives = printed_parts(normal(element.node))
    texts = [" ".join(text for text, _ in parts) for parts in alternatives]
    return f"{{{element.variable}{_range(element)}: {' or '.join(texts) or 'never'}}}"


def _range(element: Element) -> str:
    if not element.is_sequence:
        return ""
    return f"[{element.least}..{'*' if element.most is None else element.most}]"
