"""Why a filter holds for an event, or why not: its tree with what each part saw, and which tests
decide. Plain module.

It says what `holds` says (evaluate.py), of every part; a property test compares them.
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
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Place,
    Text,
    Truth,
    Within,
)
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.evaluated_value import Seen, comes_to, seen_at, shown
from registrations.filters.event_values import EventValues
from registrations.filters.paths import paths_of
from registrations.filters.printed import printed, printed_operand, type_text
from registrations.filters.values import number_of

_WANTED = {
    "prefix": "a text that begins with",
    "suffix": "a text that ends with",
    "substring": "a text that has",
    "wildcard": "a text that fits",
}
_NUMBERS = {"integer": "number"}  # kinds that compare alike
_IN_WORDS_MAX = 5  # constants of `in` that the words name; the predicate form has all


class Explained(NamedTuple):
    """A part of a filter, and what it says of the event.

    `decides`: the answer for the whole hangs on it. As long as the tests that decide say what they
    say, the others might say anything.
    """

    op: str
    predicate: str
    place: Place | None
    held: bool
    why: str
    seen: tuple[Seen, ...] = ()
    parts: tuple["Explained", ...] = ()
    decides: bool = False

    def json(self) -> dict[str, Any]:
        """As answers show it. `line` and `column` are null where the language has no places."""
        place = self.place or (None, None)
        return {
            "op": self.op,
            "predicate": self.predicate,
            "line": place[0],
            "column": place[1],
            "held": self.held,
            "decides": self.decides,
            "why": self.why,
            "seen": [{**one._asdict(), "values": list(one.values)} for one in self.seen],
            "parts": [one.json() for one in self.parts],
        }


def explain(node: Node, event: Event, hierarchy: TypeHierarchy = no_supertypes) -> Explained:
    """The whole tree of a filter that is within bounds (bounds.py)."""
    return _deciding(_part(node, EventValues(event), hierarchy))


def deciding(explained: Explained) -> Iterator[Explained]:
    """The single tests on which the answer hangs."""
    if not explained.decides:
        return
    if not explained.parts:
        yield explained
    for part in explained.parts:
        yield from deciding(part)


def _deciding(explained: Explained) -> Explained:
    """The same, marked from the top down: of an `and` that does not hold, and of an `or` that does,
    those parts decide that make it so; else all do.
    """
    some = (explained.op == "and" and not explained.held) or (
        explained.op == "or" and explained.held
    )
    parts = tuple(
        part if some and part.held != explained.held else _deciding(part)
        for part in explained.parts
    )
    return explained._replace(parts=parts, decides=True)


def _part(node: Node, values: EventValues, hierarchy: TypeHierarchy) -> Explained:
    match node:
        case And(items, place) | Or(items, place):
            parts = tuple(_part(item, values, hierarchy) for item in items)
            both = isinstance(node, And)
            held = all(part.held for part in parts) if both else any(part.held for part in parts)
            op = "and" if both else "or"
            return Explained(op, printed(node), place, held, _count(parts), parts=parts)
        case Not(item, place):
            part = _part(item, values, hierarchy)
            so = "must not hold, and does" if part.held else "does not hold, as wanted"
            why = f"{so}: {part.why}"
            return Explained("not", printed(node), place, not part.held, why, parts=(part,))
        case _:
            return _test(node, values, hierarchy)


def _count(parts: tuple[Explained, ...]) -> str:
    held = sum(part.held for part in parts)
    if held == len(parts):
        return "all hold"
    return f"{held} of {len(parts)} hold" if held else "none holds"


def _test(node: Node, values: EventValues, hierarchy: TypeHierarchy) -> Explained:
    """A single test, in words."""
    held = holds(node, values, hierarchy)
    op, seen = "", tuple[Seen, ...]()
    match node:
        case Compare(op):
            seen = tuple(seen_at(path, values) for path in dict.fromkeys(paths_of(node)))
            why = _compared(node, values, seen, held=held)
        case In(path, wanted):
            op, seen = "in", (seen_at(path, values),)
            why = f"{seen[0].said()}, wanted {_one_of(wanted)}"
        case Text(_, path, text):
            op, seen = node.op, (seen_at(path, values),)
            why = f"{seen[0].said()}, wanted {_WANTED[op]} {shown(text)}"
        case Exists(path):
            op, seen = "exists", (seen_at(path, values),)
            why = f"{seen[0].path} is there" if held else seen[0].said()
        case Within(path):
            op, seen = "within", (seen_at(path, values),)
            why = _objects(node, values, hierarchy, held=held)
        case OfType():
            op, why = "type", _typed(node, values.event, hierarchy)
        case Truth(value):
            op, why = "true" if value else "false", "always" if value else "never"
        case _:
            raise TypeError(node)
    return Explained(op, printed(node), node.place, held, why, seen)


def _compared(node: Compare, event: EventValues, seen: tuple[Seen, ...], *, held: bool) -> str:
    op, left, right = node.op, node.left, node.right
    missing = [one for one in seen if one.kind == "missing"]
    if missing:
        return f"{', '.join(one.said() for one in missing)}, wanted {_wanted(node)}"
    said = [_said(side, event) for side in (left, right) if not isinstance(side, Const)]
    words = ", ".join([*said, f"wanted {_wanted(node)}"])
    if not held and len(seen) == 1 and isinstance(right, Const) and op != "!=":
        words += _unlike(seen[0], right, equality=op == "=")
    return words


def _objects(node: Within, event: EventValues, hierarchy: TypeHierarchy, *, held: bool) -> str:
    """How near the objects of a list come: what the nearest of the first ones fails."""
    name, found = printed_operand(node.path), event.within(node.path.name)
    if held:
        return f"an object at {name} holds all of it"
    if not found.objects:
        return f"{seen_at(node.path, event).said()}, wanted an object or a list of objects"
    first = islice(event.of_each(found), limits.EXPLAIN_OBJECTS_MAX)
    some = (_deciding(_part(node.item, one, hierarchy)) for one in first)
    nearest = min((tuple(deciding(one)) for one in some), key=len)
    fails = "; ".join(one.why for one in nearest[: limits.EXPLAIN_VALUES_MAX])
    if len(found.objects) == 1:
        return f"in the object at {name}: {fails}"
    return f"in none of {len(found.objects)} objects at {name}; in the nearest: {fails}"


def _wanted(node: Compare) -> str:
    if isinstance(node.right, Const) and not isinstance(node.left, Const):
        return f"{node.op} {shown(node.right.value)}"
    return printed(node)


def _said(operand: Operand, event: EventValues) -> str:
    if isinstance(operand, Arithmetic):
        parts = [seen_at(path, event).said() for path in dict.fromkeys(paths_of(operand))]
        return ", ".join([comes_to(operand, event), *parts])
    [path] = paths_of(operand)
    return seen_at(path, event).said()


def _unlike(seen: Seen, wanted: Const, *, equality: bool) -> str:
    """What a person overlooks: a number in quotes, and what has no order."""
    kinds = {_NUMBERS.get(kind, kind) for kind in (seen.kind, wanted.kind)}
    if len(kinds) == 1 or seen.kind in ("list", "object"):
        return ""
    if equality:
        return f"; {_article(seen.kind)} does not equal {_article(wanted.kind)}"
    if kinds == {"number", "text"}:
        text = seen.values[0] if seen.kind == "text" else wanted.value
        return "" if number_of(text) is not None else "; the text is not written as a number"
    return f"; {_article(seen.kind)} and {_article(wanted.kind)} have no order"


def _article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind == 'integer' else 'a'} {kind}"


def _one_of(values: tuple[Const, ...]) -> str:
    some = [shown(value.value) for value in values[:_IN_WORDS_MAX]]
    more = len(values) - len(some)
    return f"one of {', '.join(some)}" + (f" or {more} more" if more else "")


def _typed(node: OfType, event: Event, hierarchy: TypeHierarchy) -> str:
    above = [name for name in hierarchy(event) if name != event.type]
    below = f", below {', '.join(above)}" if above else ""
    return f"the event is of {event.domain}::{event.type}{below}, wanted {type_text(node)}"
