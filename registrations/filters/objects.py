"""Objects at one path of an event, and which of them hold a test: a set of them is a number with a
bit for each. Plain module.

A test is asked of all objects at once, of the values that they have at its path: the hundredth test
of a long list costs what a test of a single object does. Without this an event would cost the tests
times the objects, and both are chosen by others.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from itertools import accumulate
from operator import or_
from typing import Any

from registrations.filters.ast import (
    FLIPPED,
    Compare,
    Comparison,
    Const,
    Exists,
    In,
    Node,
    Path,
    Text,
)
from registrations.filters.value_sets import Many
from registrations.filters.values import (
    MISSING,
    key_of,
    members,
    number_of,
    objects_inside,
    value_inside,
)

Cell = tuple[int, Any]  # objects, and what they have


class Objects:
    """`base`: the path to them. By a whole path an exact name of the event (`attributes`) comes
    before what is in an object.
    """

    def __init__(
        self,
        attributes: dict[str, Any],
        base: str,
        objects: list[dict[str, Any]],
        owners: Iterable[Cell] = (),
    ) -> None:
        self.base = base
        self.objects = objects
        self.every = (1 << len(objects)) - 1
        self.verdicts: dict[Node, int] = {}  # of tests that are asked of one after the other
        self._attributes = attributes
        self._owners = list(owners)  # each with those that are in it
        self._columns: dict[str, _Column] = {}
        self._within: dict[str, Objects] = {}

    def holding(self, test: Node) -> int | None:
        """Those that hold a test of one attribute; None if it is another test."""
        match test:
            case Compare(op, Path(name, "attributes"), Const(value)):
                return self._column(name).compared(op, value)
            case Compare(op, Const(value), Path(name, "attributes")):
                return self._column(name).compared(FLIPPED[op], value)
            case In(Path(name, "attributes"), values):
                keys = self._column(name).keys
                return reduce(or_, (keys.get(key_of(one.value), 0) for one in values), 0)
            case Text(_, Path(name, "attributes")):
                return self._column(name).fitting(test)
            case Exists(Path(name, "attributes")):
                return self._column(name).there
        return None

    def within(self, path: str) -> "Objects":
        """The objects at a path of each of these."""
        found = self._within.get(path)
        if found is None:
            found = self._within[path] = self._opened(path)
        return found

    def owning(self, inner: int) -> int:
        """Those in which some of the objects are of which this was made by `within`."""
        return reduce(or_, (owner for owner, of in self._owners if of & inner), 0)

    def _opened(self, path: str) -> "Objects":
        base = f"{self.base}.{path}"
        found: list[dict[str, Any]] = []
        owners: list[Cell] = []
        for place, one in enumerate(self.objects):
            first = len(found)
            found += objects_at(self._attributes, base, value_inside(one, path))
            owners.append((1 << place, (1 << len(found)) - (1 << first)))
        return Objects(self._attributes, base, found, owners)

    def _column(self, name: str) -> "_Column":
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = _Column(self._cells(name))
        return found

    def _cells(self, name: str) -> Iterator[Cell]:
        exact = self._attributes.get(f"{self.base}.{name}", MISSING)
        if exact is not MISSING:
            yield self.every, exact
            return
        step, dot, rest = name.partition(".")
        for bit, value in self._fields.get(step, ()):
            inside = value_inside(value, rest) if dot else value
            if inside is not MISSING:
                yield bit, inside

    @cached_property
    def _fields(self) -> dict[str, list[Cell]]:
        found: dict[str, list[Cell]] = {}
        for place, one in enumerate(self.objects):
            for name, value in one.items():
                found.setdefault(name, []).append((1 << place, value))
        return found


def objects_at(attributes: dict[str, Any], path: str, value: Any) -> list[dict[str, Any]]:
    """The objects that a value at a path is or has. Where there is none, but names of attributes
    begin with the path and a dot, these are one.
    """
    found = objects_inside(value)
    if not found and any(name.startswith(f"{path}.") for name in attributes):
        return [{}]
    return found


class _Column:
    """What objects have at one path. `there`: those that have something."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.there = 0
        self._cells: list[Cell] = []  # each value that is compared
        for bits, value in cells:
            self.there |= bits
            self._cells += [(bits, one) for one in members(value)]

    def compared(self, op: Comparison, value: Any) -> int:
        """Those of which one value is in a relation to this one; `!=`: that have values, and none
        is equal.
        """
        if op == "=":
            return self.keys.get(key_of(value), 0)
        if op == "!=":
            return self._some & ~self.keys.get(key_of(value), 0)
        found = self._texts.bits(op, value) if isinstance(value, str) else 0
        number = number_of(value)
        if number is None:
            return found
        numbers = self._numbers if isinstance(value, str) else self._all_numbers
        return found | numbers.bits(op, number)

    def fitting(self, test: Text) -> int:
        return reduce(or_, map(self.keys.__getitem__, self._many.fitting(test)), 0)

    @cached_property
    def keys(self) -> dict[Any, int]:
        """Which objects have each value."""
        found: dict[Any, int] = {}
        for bits, value in self._cells:
            key = key_of(value)
            found[key] = found.get(key, 0) | bits
        return found

    @cached_property
    def _some(self) -> int:
        return reduce(or_, (bits for bits, _ in self._cells), 0)

    @cached_property
    def _many(self) -> Many:
        return Many(value for _, value in self._cells)

    @cached_property
    def _texts(self) -> "_Ordered":
        return _Ordered(cell for cell in self._cells if isinstance(cell[1], str))

    @cached_property
    def _numbers(self) -> "_Ordered":
        """Without texts: these are compared with texts as texts."""
        return _numbers(cell for cell in self._cells if not isinstance(cell[1], str))

    @cached_property
    def _all_numbers(self) -> "_Ordered":
        return _numbers(self._cells)


class _Ordered:
    """Values in order, and which objects have those before and after each place."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        ordered = sorted(cells, key=lambda cell: cell[1])
        bits = [one for one, _ in ordered]
        self._values = [value for _, value in ordered]
        self._before = [*accumulate(bits, or_, initial=0)]
        self._after = [*accumulate(reversed(bits), or_, initial=0)][::-1]

    def bits(self, op: Comparison, value: Any) -> int:
        at = (bisect_left if op in ("<", ">=") else bisect_right)(self._values, value)
        return (self._before if op[0] == "<" else self._after)[at]


def _numbers(cells: Iterable[Cell]) -> _Ordered:
    found = ((bits, number_of(value)) for bits, value in cells)
    return _Ordered((bits, number) for bits, number in found if number is not None)
