"""What docs/patterns.md says, as directly as it can be written: at each event, all possible matches
of the window are listed, and the preferred one is taken. Nothing here uses the engine.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from registrations.filters import ast as filters
from registrations.filters.evaluate import holds
from registrations.patterns.ast import (
    AnnounceAction,
    AssignAction,
    Combined,
    Do,
    Element,
    IncrementAction,
    NewEventForm,
    NotifyAction,
    Part,
    Pattern,
    VariablePath,
    Where,
)


class Seen(NamedTuple):
    """An event of the log."""

    order: int
    time: int
    event: Event


class New(NamedTuple):
    """An event that was assigned."""

    type: str
    attributes: tuple[tuple[str, Any], ...]


class Open(NamedTuple):
    """A sequence that still takes events: all from its first on, of which it needs `least`."""

    events: tuple[Seen, ...]
    least: int
    most: int | None


class Possible(NamedTuple):
    """A possible match. `choice`: the lesser is preferred."""

    end: int
    bound: tuple[tuple[str, Any], ...]
    choice: tuple[Any, ...]


Output = tuple[Any, ...]


class Oracle:
    """One pattern, and all events so far."""

    def __init__(self, pattern: Pattern, within: int, last: int) -> None:
        self.pattern = pattern
        self.within = within
        self.last = last
        self.elements = [*_elements(pattern.part)]
        self.names = {
            id(element): element.variable or f"${number}"
            for number, element in enumerate(self.elements, 1)
        }
        self.seen: dict[Any, list[Seen]] = {}  # by key, since the last match
        self.ran: dict[Any, dict[int, Seen]] = {}  # of parts with actions
        self.counters: dict[str, Any] = {}
        self.time = 0
        self.ended = False

    def feed(self, order: int, time: int, event: Event) -> list[Output]:
        self.time = max(self.time, time)
        if self.ended or not any(holds(one.node, event) for one in self.elements):
            return []
        key = None
        if self.pattern.per is not None:
            key = event.attributes.get(self.pattern.per.name)
            if key is None:
                return []
        self.seen.setdefault(key, []).append(Seen(order, self.time, event))
        window = self._window(key)
        ran = {part: one for part, one in self.ran.get(key, {}).items() if one in window}
        outputs = [*self._part_outputs(window, order, ran)]
        found = self._best(self._possible(self.pattern.part, window, 0), order)
        self.ran[key] = ran
        if found is not None:
            bound = _complete(found, found.end)
            outputs.append(("match", order, _names(bound)))
            outputs += self._whole_outputs(order, bound)
            self.seen[key], self.ran[key] = [], {}
            self.ended = self.pattern.once
        return outputs

    def _window(self, key: Any) -> list[Seen]:
        """Return the events since the last match, not older than `within`, at most `last`."""
        recent = self.seen[key][-self.last :]
        return [one for one in recent if self.time - one.time <= self.within]

    def _best(self, possible: list[Possible], order: int) -> Possible | None:
        ending = [one for one in possible if one.end == order]
        return min(ending, key=lambda one: one.choice, default=None)

    # --- the parts ---

    def _possible(self, part: Part, window: list[Seen], start: int) -> list[Possible]:
        return [*self._each(part, window, start, in_row=False)]

    def _each(
        self, part: Part, window: list[Seen], start: int, *, in_row: bool
    ) -> Iterator[Possible]:
        match part:
            case Element():
                yield from self._element(part, window, start)
            case Combined():
                yield from self._combined(part, window, start, in_row=in_row)
            case Where(inner, condition):
                for one in self._of_all_lengths(inner, window, start):
                    if _is_true(condition, dict(one.bound)):
                        yield one
            case Do(inner):
                for one in self._each(inner, window, start, in_row=False):
                    yield self._assigned(part, one)

    def _element(self, part: Element, window: list[Seen], start: int) -> Iterator[Possible]:
        name = self.names[id(part)]
        hits = [one for one in window if one.order > start and holds(part.node, one.event)]
        if not part.is_sequence:
            for hit in hits:
                yield Possible(hit.order, ((name, hit),), (hit.order,))
        elif part.least == 0:
            yield Possible(start, ((name, Open((*hits,), 0, part.most)),), ())
        else:
            for first in range(len(hits) - part.least + 1):
                rest = Open((*hits[first:],), part.least, part.most)
                end = hits[first + part.least - 1].order
                yield Possible(end, ((name, rest),), (hits[first].order,))

    def _of_all_lengths(self, part: Part, window: list[Seen], start: int) -> Iterator[Possible]:
        """Yield the matches of a part in a condition, which is the part around a sequence."""
        if isinstance(part, Do) and isinstance(_bare(part), Element):
            for one in self._of_all_lengths(part.part, window, start):
                yield self._assigned(part, one)
        elif isinstance(part, Element) and part.is_sequence:
            for one in self._element(part, window, start):
                ((name, rest),) = one.bound
                for count in range(part.least, min(len(rest.events), part.most or 999) + 1):
                    some = rest.events[:count]
                    yield Possible(some[-1].order, ((name, some),), (*one.choice, count))
        else:
            for one in self._each(part, window, start, in_row=False):
                yield one._replace(bound=tuple(_complete(one, one.end).items()))

    def _combined(
        self, part: Combined, window: list[Seen], start: int, *, in_row: bool
    ) -> Iterator[Possible]:
        same = isinstance(part.left, Combined) and part.left.operator == part.operator
        lefts = [*self._each(part.left, window, start, in_row=same)]
        if part.operator == ";":
            yield from self._then(part, window, lefts, in_row=in_row)
            return
        rights = [*self._each(part.right, window, start, in_row=False)]
        if part.operator == "&&":
            for one in lefts:
                for other in rights:
                    end = max(one.end, other.end)
                    bound = (*one.bound, *other.bound)
                    yield _closed(
                        Possible(end, bound, one.choice + other.choice), closes=not in_row
                    )
        elif part.operator == "||":
            for side, found in enumerate((lefts, rights)):
                for one in found:
                    yield _closed(one._replace(choice=(side, *one.choice)), closes=True)
        else:
            for one in lefts:
                if all(other.end > one.end for other in rights):
                    yield _closed(one, closes=True)

    def _then(
        self, part: Combined, window: list[Seen], lefts: list[Possible], *, in_row: bool
    ) -> Iterator[Possible]:
        for one in lefts:
            for other in self._each(part.right, window, one.end, in_row=False):
                left = _closed(Possible(other.end, one.bound, ()), closes=True).bound
                right = _closed(other, closes=not in_row).bound
                yield Possible(other.end, left + right, one.choice + other.choice)

    def _assigned(self, part: Do, one: Possible) -> Possible:
        known = _complete(one, one.end)
        new: list[tuple[str, Any]] = []
        for action in part.actions:
            if isinstance(action, AssignAction):
                known[action.variable] = event = _new(action.event, known, {})
                new.append((action.variable, event))
        return one._replace(bound=(*one.bound, *new))

    # --- actions ---

    def _part_outputs(
        self, window: list[Seen], order: int, ran: dict[int, Seen]
    ) -> Iterator[Output]:
        for part, starts in self._active(self.pattern.part, window, order, [0], whole=True):
            if id(part) in ran:
                continue
            for start in starts:
                found = self._best(self._possible(part, window, start), order)
                if found is not None:
                    ran[id(part)] = window[-1]
                    yield from self._run(part, order, _complete(found, order))
                    break

    def _active(
        self, part: Part, window: list[Seen], order: int, starts: list[int], *, whole: bool
    ) -> Iterator[tuple[Do, list[int]]]:
        """Yield the parts with actions of their own, inner ones first, and their starts."""
        match part:
            case Combined():
                yield from self._sides(part, window, order, starts)
            case Where(inner):
                yield from self._active(inner, window, order, starts, whole=False)
            case Do(inner, actions):
                yield from self._active(inner, window, order, starts, whole=whole)
                if not whole and any(not isinstance(one, AssignAction) for one in actions):
                    yield part, starts

    def _sides(
        self, part: Combined, window: list[Seen], order: int, starts: list[int]
    ) -> Iterator[tuple[Do, list[int]]]:
        lefts, rights = starts, starts
        if part.operator == "butnot":
            ends = {start: self._ends(part.right, window, start) for start in starts}
            lefts = [start for start in starts if all(end > order for end in ends[start])]
            rights = [start for start in starts if all(end >= order for end in ends[start])]
        elif part.operator == "||":
            rights = [one for one in starts if order not in self._ends(part.left, window, one)]
        elif part.operator == ";":
            found = [
                sorted(self._possible(part.left, window, start), key=lambda one: one.choice)
                for start in starts
            ]
            ends_of_left = (one.end for some in found for one in some if one.end < order)
            rights = [*dict.fromkeys(ends_of_left)]
        yield from self._active(part.left, window, order, lefts, whole=False)
        yield from self._active(part.right, window, order, rights, whole=False)

    def _ends(self, part: Part, window: list[Seen], start: int) -> list[int]:
        return [one.end for one in self._possible(part, window, start)]

    def _whole_outputs(self, order: int, bound: dict[str, Any]) -> Iterator[Output]:
        if all(isinstance(action, AssignAction) for action in _actions(self.pattern.part)):
            yield "notify", order, _names(bound), None
        around: list[Do] = []
        part = self.pattern.part
        while isinstance(part, Do):
            around.append(part)
            part = part.part
        for one in reversed(around):
            yield from self._run(one, order, bound)

    def _run(self, part: Do, order: int, bound: dict[str, Any]) -> Iterator[Output]:
        for action in part.actions:
            match action:
                case NotifyAction(names, target):
                    some = (
                        bound
                        if names is None
                        else {one: bound[one] for one in names if one in bound}
                    )
                    yield "notify", order, _names(some), target
                case AnnounceAction(NewEventForm() as form, stream):
                    yield "announce", order, _new(form, bound, self.counters), stream
                case AnnounceAction(str(name), stream):
                    if name in bound:
                        yield "announce", order, bound[name], stream
                case IncrementAction(name, by):
                    added = _value(by, bound, self.counters)
                    self.counters[name] = self.counters.get(name, 0) + (added or 0)


def _closed(one: Possible, *, closes: bool) -> Possible:
    """End the sequences of a match, where the part around them matches."""
    return one._replace(bound=tuple(_complete(one, one.end).items())) if closes else one


def _complete(one: Possible, end: int) -> dict[str, Any]:
    return {
        name: _taken(value, end) if isinstance(value, Open) else value for name, value in one.bound
    }


def _taken(rest: Open, end: int) -> tuple[Seen, ...]:
    """Return what it needs, and what came before the end, up to its most."""
    more = [one for one in rest.events[rest.least :] if one.order < end]
    return (*rest.events[: rest.least], *more)[: rest.most]


def _names(bound: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    def shown(value: Any) -> Any:
        if isinstance(value, New):
            return value
        return (value.order,) if isinstance(value, Seen) else tuple(one.order for one in value)

    return tuple((name, shown(value)) for name, value in bound.items())


def _elements(part: Part) -> Iterator[Element]:
    match part:
        case Element():
            yield part
        case Combined():
            yield from _elements(part.left)
            yield from _elements(part.right)
        case Where() | Do():
            yield from _elements(part.part)


def _actions(part: Part) -> Iterator[Any]:
    match part:
        case Combined():
            yield from _actions(part.left)
            yield from _actions(part.right)
        case Where(inner):
            yield from _actions(inner)
        case Do(inner, actions):
            yield from _actions(inner)
            yield from actions


def _bare(part: Part) -> Part:
    return _bare(part.part) if isinstance(part, Do) else part


# --- conditions and values, as far as the tests use them ---


def _new(form: NewEventForm, bound: dict[str, Any], counters: dict[str, Any]) -> New:
    pairs = ((name, _value(value, bound, counters)) for name, value in form.attributes)
    return New(form.type, tuple((name, value) for name, value in pairs if value is not None))


def _value(operand: Any, bound: dict[str, Any], counters: dict[str, Any]) -> Any:
    """Return a number; None if there is none."""
    if isinstance(operand, filters.Const):
        return operand.value
    assert isinstance(operand, VariablePath)
    if operand.function == "counter":
        return counters.get(operand.variable, 0)
    value = bound.get(operand.variable, ())
    events = [value] if isinstance(value, Seen | New) else [*value]
    if operand.component is None:
        return len(events)
    name = operand.component.name
    attributes = (
        dict(one.attributes) if isinstance(one, New) else one.event.attributes for one in events
    )
    found = [one[name] for one in attributes if name in one]
    function: dict[Any, Callable[[list[Any]], Any]] = {
        "count": len,
        "sum": sum,
        "distinct": lambda some: len(set(some)),
        "min": lambda some: min(some, default=None),
        "max": lambda some: max(some, default=None),
        "avg": lambda some: sum(some) / len(some) if some else None,
        "span": lambda some: max(some) - min(some) if some else None,
        "first": lambda some: some[0] if some else None,
        "last": lambda some: some[-1] if some else None,
        None: lambda some: some[0] if some else None,  # of a single event
    }
    return function[operand.function](found)


def _is_true(node: Any, bound: dict[str, Any]) -> bool:
    match node:
        case filters.And(items):
            return all(_is_true(item, bound) for item in items)
        case filters.Or(items):
            return any(_is_true(item, bound) for item in items)
        case filters.Not(item):
            return not _is_true(item, bound)
        case filters.Exists(path):
            assert isinstance(path, VariablePath)
            return bool(bound.get(path.variable, ()))
        case filters.Compare(op, left, right):
            one, other = _value(left, bound, {}), _value(right, bound, {})
            if one is None or other is None:
                return False
            return {"=": one == other, "!=": one != other, "<": one < other,
                    "<=": one <= other, ">": one > other, ">=": one >= other}[op]  # fmt: skip
    raise TypeError(node)
