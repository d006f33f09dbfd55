"""The explanation of a filter's result for an event: its tree with the evaluated values of each
part, and the tests that decide. Plain module.

Every part has the result that `holds` returns (evaluate.py); a property test compares them.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
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
    Text,
    TextPosition,
    Truth,
    Within,
)
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.evaluated_value import (
    EvaluatedValue,
    rendered,
    result_text,
    value_at_path,
)
from registrations.filters.event_values import EventValues
from registrations.filters.expressions import program_of, result_of
from registrations.filters.paths import paths_of
from registrations.filters.printed import printed, printed_operand, type_text
from registrations.filters.values import number_of

_EXPECTED = {
    "prefix": "a text that begins with",
    "suffix": "a text that ends with",
    "substring": "a text that contains",
    "wildcard": "a text that matches",
    "equals-ignore-case": "a text that is, in any case,",
    "prefix-ignore-case": "a text that begins, in any case, with",
    "suffix-ignore-case": "a text that ends, in any case, with",
    "cidr": "an address in",
}
_NUMBERS = {"integer": "number"}  # kinds that compare alike
_IN_WORDS_MAX = 5  # constants of `in` in the explanation; the predicate form has all


class Explained(NamedTuple):
    """A part of a filter and its result for the event.

    `decides`: the result of the whole filter depends on it. While the deciding tests keep their
    results, those of the other tests have no effect.
    """

    op: str
    predicate: str
    position: TextPosition | None
    held: bool
    why: str
    evaluated: tuple[EvaluatedValue, ...] = ()
    parts: tuple["Explained", ...] = ()
    decides: bool = False

    def json(self) -> dict[str, Any]:
        """Return the JSON of API responses; `line` and `column` are null for a JSON language."""
        position = self.position or (None, None)
        return {
            "op": self.op,
            "predicate": self.predicate,
            "line": position[0],
            "column": position[1],
            "held": self.held,
            "decides": self.decides,
            "why": self.why,
            "evaluated": [{**one._asdict(), "values": list(one.values)} for one in self.evaluated],
            "parts": [one.json() for one in self.parts],
        }


def explain(node: Node, event: Event, hierarchy: TypeHierarchy = no_supertypes) -> Explained:
    """Explain a filter that is within the size limits (bounds.py)."""
    return _mark_deciding(_part(node, EventValues(event), hierarchy))


def deciding(explained: Explained) -> Iterator[Explained]:
    """Yield the single tests that decide the result."""
    if not explained.decides:
        return
    if not explained.parts:
        yield explained
    for part in explained.parts:
        yield from deciding(part)


def _mark_deciding(explained: Explained) -> Explained:
    """Mark the parts that decide, from the top down: of a false `and` its false parts, of a true
    `or` its true parts, otherwise all parts.
    """
    some = (explained.op == "and" and not explained.held) or (
        explained.op == "or" and explained.held
    )
    parts = tuple(
        part if some and part.held != explained.held else _mark_deciding(part)
        for part in explained.parts
    )
    return explained._replace(parts=parts, decides=True)


def _part(node: Node, values: EventValues, hierarchy: TypeHierarchy) -> Explained:
    match node:
        case And(items, position) | Or(items, position):
            parts = tuple(_part(item, values, hierarchy) for item in items)
            both = isinstance(node, And)
            held = all(part.held for part in parts) if both else any(part.held for part in parts)
            op = "and" if both else "or"
            return Explained(op, printed(node), position, held, _count(parts), parts=parts)
        case Not(item, position):
            part = _part(item, values, hierarchy)
            so = "must not hold, but does" if part.held else "does not hold, as expected"
            why = f"{so}: {part.why}"
            return Explained("not", printed(node), position, not part.held, why, parts=(part,))
        case _:
            return _test(node, values, hierarchy)


def _count(parts: tuple[Explained, ...]) -> str:
    held = sum(part.held for part in parts)
    if held == len(parts):
        return "all hold"
    return f"{held} of {len(parts)} hold" if held else "none holds"


def _test(node: Node, values: EventValues, hierarchy: TypeHierarchy) -> Explained:
    """Explain a single test, in words."""
    held = holds(node, values, hierarchy)
    op, evaluated = "", tuple[EvaluatedValue, ...]()
    match node:
        case Compare(op):
            evaluated = tuple(value_at_path(path, values) for path in dict.fromkeys(paths_of(node)))
            why = _compared(node, values, evaluated, held=held)
        case In(path, constants):
            op, evaluated = "in", (value_at_path(path, values),)
            why = f"{evaluated[0].text()}, expected {_one_of(constants)}"
        case Text(_, path, text):
            op, evaluated = node.op, (value_at_path(path, values),)
            why = f"{evaluated[0].text()}, expected {_EXPECTED[op]} {rendered(text)}"
        case Exists(path):
            op, evaluated = "exists", (value_at_path(path, values),)
            why = f"{evaluated[0].path} exists" if held else evaluated[0].text()
        case Within(path):
            op, evaluated = "within", (value_at_path(path, values),)
            why = _objects(node, values, hierarchy, held=held)
        case Expression(language, text):
            op, why = language, f"{text}: {result_of(node, values).why}"
            evaluated = tuple(value_at_path(path, values) for path in program_of(node).paths)
        case OfType():
            op, why = "type", _typed(node, values.event, hierarchy)
        case Truth(value):
            op, why = "true" if value else "false", "always" if value else "never"
        case _:
            raise TypeError(node)
    return Explained(op, printed(node), node.position, held, why, evaluated)


def _compared(
    node: Compare, event: EventValues, evaluated: tuple[EvaluatedValue, ...], *, held: bool
) -> str:
    op, left, right = node.op, node.left, node.right
    missing = [one for one in evaluated if one.kind == "missing"]
    if missing:
        return f"{', '.join(one.text() for one in missing)}, expected {_expected(node)}"
    said = [_said(side, event) for side in (left, right) if not isinstance(side, Const)]
    words = ", ".join([*said, f"expected {_expected(node)}"])
    if not held and len(evaluated) == 1 and isinstance(right, Const) and op != "!=":
        words += _unlike(evaluated[0], right, equality=op == "=")
    return words


def _objects(node: Within, event: EventValues, hierarchy: TypeHierarchy, *, held: bool) -> str:
    """Explain `within`: if no object passes, the tests that the nearest object fails."""
    name, found = printed_operand(node.path), event.within(node.path.name)
    if held:
        return f"an object at {name} passes all tests"
    if not found.objects:
        return f"{value_at_path(node.path, event).text()}, expected an object or a list of objects"
    first = islice(event.of_each(found), limits.EXPLAIN_OBJECTS_MAX)
    some = (_mark_deciding(_part(node.item, one, hierarchy)) for one in first)
    nearest = min((tuple(deciding(one)) for one in some), key=len)
    fails = "; ".join(one.why for one in nearest[: limits.EXPLAIN_VALUES_MAX])
    if len(found.objects) == 1:
        return f"in the object at {name}: {fails}"
    return f"in none of {len(found.objects)} objects at {name}; in the nearest: {fails}"


def _expected(node: Compare) -> str:
    if isinstance(node.right, Const) and not isinstance(node.left, Const):
        return f"{node.op} {rendered(node.right.value)}"
    return printed(node)


def _said(operand: Operand, event: EventValues) -> str:
    if isinstance(operand, Arithmetic):
        parts = [value_at_path(path, event).text() for path in dict.fromkeys(paths_of(operand))]
        return ", ".join([result_text(operand, event), *parts])
    [path] = paths_of(operand)
    return value_at_path(path, event).text()


def _unlike(evaluated: EvaluatedValue, constant: Const, *, equality: bool) -> str:
    """Return a hint at a mistake that is easy to miss: a number in quotes, values without order."""
    kinds = {_NUMBERS.get(kind, kind) for kind in (evaluated.kind, constant.kind)}
    if len(kinds) == 1 or evaluated.kind in ("list", "object"):
        return ""
    if equality:
        return f"; {_article(evaluated.kind)} does not equal {_article(constant.kind)}"
    if kinds == {"number", "text"}:
        text = evaluated.values[0] if evaluated.kind == "text" else constant.value
        return "" if number_of(text) is not None else "; the text is not written as a number"
    return f"; {_article(evaluated.kind)} and {_article(constant.kind)} have no order"


def _article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind == 'integer' else 'a'} {kind}"


def _one_of(values: tuple[Const, ...]) -> str:
    some = [rendered(value.value) for value in values[:_IN_WORDS_MAX]]
    more = len(values) - len(some)
    return f"one of {', '.join(some)}" + (f" or {more} more" if more else "")


def _typed(node: OfType, event: Event, hierarchy: TypeHierarchy) -> str:
    supertypes = [name for name in hierarchy(event) if name != event.type]
    below = f", a subtype of {', '.join(supertypes)}" if supertypes else ""
    return f"the event is of {event.domain}::{event.type}{below}, expected {type_text(node)}"
