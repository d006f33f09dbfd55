"""The closure of many filters: one filter that lets through what any of them does, in as few
alternatives as covering allows (OIF-07). Plain.

It is bounded. What exceeds the bounds is widened step by step, all alternatives alike: values are
forgotten, then attributes, then types. So a closure may let through more than is wanted, and says
so; it never lets through less.
"""

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from eventhub import limits
from eventhub.event.envelope import Event
from registrations.closure.covering import Known
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
from registrations.lang.evaluate import Kin, holds, only_itself
from registrations.lang.normal import Alternative, Form
from registrations.lang.printed import printed

_GATE = ("domain", "type", "application")
_EVERYTHING: Alternative = frozenset()
_Key = tuple[str, object]


class Closure(NamedTuple):
    """What is wanted, as alternatives; () is nothing. `widened`: it lets through more than that."""

    form: Form = ()
    widened: bool = False

    def matches(self, event: Event, kin: Kin = only_itself) -> bool:
        return any(all(holds(part, event, kin) for part in parts) for parts in self.form)

    def node(self) -> Node:
        """As one filter."""
        nodes = tuple(map(alternative_node, self.form))
        if not nodes:
            return Truth(False)
        return nodes[0] if len(nodes) == 1 else Or(nodes)


EVERYTHING = Closure((_EVERYTHING,), widened=True)


class Bounds(NamedTuple):
    """How much a closure may be, and cost."""

    alternatives_max: int = limits.CLOSURE_ALTERNATIVES_MAX
    chars_max: int = limits.CLOSURE_CHARS_MAX
    compared_max: int = limits.CLOSURE_COMPARED_MAX


_BOUNDS = Bounds()


class TooMuch(Exception):
    """A bound was met on the way."""


def closure_of(forms: Iterable[Form], bounds: Bounds = _BOUNDS) -> Closure:
    """The union of filters in normal form."""
    alternatives = {parts for form in forms for parts in form}
    for level, widen in enumerate((_as_it_is, _without_values, _gate_alone)):
        try:
            found = _least({widen(parts) for parts in alternatives}, bounds)
        except TooMuch:
            continue
        return Closure(tuple(sorted(found, key=_words)), widened=level > 0)
    return EVERYTHING


def alternative_node(parts: Alternative) -> Node:
    """One alternative as a filter."""
    nodes = tuple(sorted(parts, key=printed))
    if not nodes:
        return Truth(True)
    return nodes[0] if len(nodes) == 1 else And(nodes)


def _least(alternatives: Set[Alternative], bounds: Bounds) -> list[Alternative]:
    """Without those that another one covers. Raises TooMuch."""
    kept = _Kept(bounds)
    for parts in sorted(alternatives, key=_fewest):
        kept.add(parts)
    found = kept.uncovered()
    if len(found) > bounds.alternatives_max:
        raise TooMuch
    if sum(len(printed(part)) for parts in found for part in parts) > bounds.chars_max:
        raise TooMuch
    return found


def _fewest(parts: Alternative) -> tuple[int, list[str]]:
    """What asks for less covers more, so it comes first."""
    return len(parts), _words(parts)


def _words(parts: Alternative) -> list[str]:
    return sorted(map(printed, parts))


class _Kept:
    """Alternatives by what must be among the facts of all that they cover."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._compared = 0
        self._by_key: dict[_Key, dict[Known, None]] = {}
        self._all: dict[Known, None] = {}

    def add(self, parts: Alternative) -> None:
        known = Known(parts)
        if self._covered(known):
            return
        self._by_key.setdefault(_key_of(known), {})[known] = None
        self._all[known] = None
        if len(self._all) > 4 * self._bounds.alternatives_max:
            raise TooMuch

    def uncovered(self) -> list[Alternative]:
        """Those that what came later does not cover either."""
        for known in list(self._all):
            self._by_key[_key_of(known)].pop(known)
            if self._covered(known):
                del self._all[known]
            else:
                self._by_key[_key_of(known)][known] = None
        return [known.parts for known in self._all]

    def _covered(self, known: Known) -> bool:
        for key in _keys_of(known):
            for other in self._by_key.get(key, ()):
                self._compared += 1
                if self._compared > self._bounds.compared_max:
                    raise TooMuch
                if other.covers(known):
                    return True
        return False


_ALWAYS: _Key = ("", None)


def _key_of(known: Known) -> _Key:
    """An equality if there is one, else a path: facts of which no such thing is known lack it."""
    keys = [key for test in known.tests for key in _keys(test)]
    return min(keys, key=_rank) if keys else _ALWAYS


def _rank(key: _Key) -> tuple[int, str]:
    return (0 if key[0] == "=" else 1 if key[0] == "path" else 2), repr(key[1])


def _keys_of(known: Known) -> set[_Key]:
    """Every key that what covers it may have."""
    found = {_ALWAYS, ("not", None), ("type", None)}
    for fact in known.facts:
        found.update(_keys(fact))
        found.update(("path", path) for path in _paths_of(fact))
    return found


def _keys(test: Node) -> Iterator[_Key]:
    match test:
        case Compare("=", Path() as path, Const(value)):
            yield "=", (path, isinstance(value, bool), value)
        case Not():
            yield "not", None
        case OfType():
            yield "type", None
        case _:
            for path in _paths_of(test):
                yield "path", path


def _paths_of(test: Node) -> Iterator[Path]:
    match test:
        case Compare(_, left, right):
            yield from _operands(left)
            yield from _operands(right)
        case In(path) | Text(_, path) | Exists(path):
            yield path


def _operands(operand: Operand) -> Iterator[Path]:
    match operand:
        case Path():
            yield operand
        case Arithmetic(_, left, right):
            yield from _operands(left)
            yield from _operands(right)


def _as_it_is(parts: Alternative) -> Alternative:
    return parts


def _without_values(parts: Alternative) -> Alternative:
    """The gate, and the attributes that must be there."""
    there = {
        Exists(path)
        for part in parts - _gate_of(parts)
        if not isinstance(part, Not)
        for path in _paths_of(part)
        if path.space == "attributes"
    }
    return _gate_of(parts) | there


def _gate_alone(parts: Alternative) -> Alternative:
    return _gate_of(parts)


def _gate_of(parts: Alternative) -> Alternative:
    return frozenset(part for part in parts if _is_gate(part))


def _is_gate(part: Node) -> bool:
    match part:
        case OfType():
            return True
        case Compare("=", Path(name, "envelope"), Const()):
            return name in _GATE
    return False
