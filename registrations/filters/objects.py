"""The objects at one path of an event, and the set of them that pass a test: an integer with a bit
for each object. Plain module.

A test is evaluated for all objects at once, over a column of their values: the hundredth test of a
long list costs as much as a test of a single object. Otherwise the cost of an event would be its
tests times its objects, and clients choose both.
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
from registrations.filters.value_sets import ValueSet
from registrations.filters.values import (
    MISSING,
    key_of,
    members,
    number_of,
    objects_inside,
    value_inside,
)

Cell = tuple[int, Any]  # objects as bits, and the value that they have


class Objects:
    """The objects at the path `base`. An attribute of the event (`attributes`) with the exact full
    name takes precedence over a value in an object.
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
        self.verdicts: dict[Node, int] = {}  # of tests that are evaluated object by object
        self._attributes = attributes
        self._owners = list(owners)  # each outer object with the objects in it
        self._columns: dict[str, _Column] = {}
        self._within: dict[str, Objects] = {}

    def holding(self, test: Node) -> int | None:
        """Return the objects that pass a test of one attribute; None for any other test."""
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
        """Return the objects at a path within these objects."""
        found = self._within.get(path)
        if found is None:
            found = self._within[path] = self._opened(path)
        return found

    def owning(self, inner: int) -> int:
        """Return the outer objects, from which `within` built this, that have any of `inner`."""
        return reduce(or_, (owner for owner, of in self._owners if of & inner), 0)

    def _opened(self, path: str) -> "Objects":
        base = f"{self.base}.{path}"
        found: list[dict[str, Any]] = []
        owners: list[Cell] = []
        for index, one in enumerate(self.objects):
            first = len(found)
            found += objects_at(self._attributes, base, value_inside(one, path))
            owners.append((1 << index, (1 << len(found)) - (1 << first)))
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
        for index, one in enumerate(self.objects):
            for name, value in one.items():
                found.setdefault(name, []).append((1 << index, value))
        return found


def objects_at(attributes: dict[str, Any], path: str, value: Any) -> list[dict[str, Any]]:
    """Return the object that is the value at a path, or the objects in a list there. If there is
    none, but attribute names begin with the path and a dot, these attributes are one object.
    """
    found = objects_inside(value)
    if not found and any(name.startswith(f"{path}.") for name in attributes):
        return [{}]
    return found


class _Column:
    """The values of objects at one path. `there`: the objects that have a value."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.there = 0
        self._cells: list[Cell] = []  # each comparable value
        for bits, value in cells:
            self.there |= bits
            self._cells += [(bits, one) for one in members(value)]

    def compared(self, op: Comparison, value: Any) -> int:
        """Return the objects with a value in relation `op` to this one; for `!=` those that have
        values, none of them equal.
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
        """The objects that have each value, by its key."""
        found: dict[Any, int] = {}
        for bits, value in self._cells:
            key = key_of(value)
            found[key] = found.get(key, 0) | bits
        return found

    @cached_property
    def _some(self) -> int:
        return reduce(or_, (bits for bits, _ in self._cells), 0)

    @cached_property
    def _many(self) -> ValueSet:
        return ValueSet(value for _, value in self._cells)

    @cached_property
    def _texts(self) -> "_Ordered":
        return _Ordered(cell for cell in self._cells if isinstance(cell[1], str))

    @cached_property
    def _numbers(self) -> "_Ordered":
        """Numbers without numeric texts, which compare with a text as texts."""
        return _numbers(cell for cell in self._cells if not isinstance(cell[1], str))

    @cached_property
    def _all_numbers(self) -> "_Ordered":
        return _numbers(self._cells)


class _Ordered:
    """Sorted values, and the objects that have a value before or after each position."""

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
