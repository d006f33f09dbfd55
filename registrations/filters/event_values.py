"""The values of one event, cached while filters are evaluated: the hundredth test of a long list
costs as much as a test of a single value. Plain module.

Without the cache the cost of an event would be its tests times the members of its lists, and
clients choose both.
"""

from collections.abc import Iterator
from typing import Any

from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.event.filterable import filterable, is_in_data
from registrations.filters.ast import Arithmetic, Const, Expression, Operand, Path, Text
from registrations.filters.objects import Objects, objects_at
from registrations.filters.text_tests import passes
from registrations.filters.value_sets import Values, ValueSet
from registrations.filters.values import (
    MISSING,
    key_of,
    members,
    number_of,
    result,
    same,
    value_inside,
    value_of,
)
from registrations.filters.work import Result, Work

FEW = 8  # up to so many values are tested one by one


class EventValues:
    """The values of one event while it is matched. Not valid once the event changes. `work`: what
    all objects of a list share to evaluate an expression; None for an event, each of whose
    expressions has its own. `outcomes`: the results of its expressions.
    """

    __slots__ = ("_inside", "_lists", "_nested", "_results", "_verdicts", "event", "outcomes",
                 "work")  # fmt: skip

    def __init__(self, event: Event) -> None:
        self.event = event
        self._nested: dict[str, Any] = {}  # by dotted path, found once ...
        self._lists: dict[int, Values] = {}  # ... and by identity: the two hold the lists
        self._results: dict[Arithmetic, Values] = {}
        self._verdicts: dict[Text, bool] = {}
        self._inside: dict[str, Objects] = {}  # by path
        self.outcomes: dict[Expression, Result] = {}
        self.work: Work | None = None

    def value(self, path: Path) -> Any:
        """Return the value at a path, or MISSING."""
        if path.space != "attributes" or "." not in path.name:
            return value_of(path, self.event)
        found = self._nested.get(path.name, self)
        if found is self:
            found = self._nested[path.name] = value_of(path, self.event)
        return found

    def within(self, path: str) -> Objects:
        """Return the objects at a path. An attribute with the exact full name takes precedence over
        a value in an object. If there is no object, but attribute names begin with the path and a
        dot, these attributes are one object.
        """
        found = self._inside.get(path)
        if found is None:
            found = self._inside[path] = self._objects(path)
        return found

    def of_each(self, objects: Objects) -> "Iterator[EventValues]":
        """Yield each object as an event whose attributes are the object's."""
        work = Work()
        return (_ObjectValues(self.event, objects.base, one, work) for one in objects.objects)

    def of(self, operand: Operand) -> Values:
        """Return the values of an operand."""
        if isinstance(operand, Const):
            return (operand.value,)
        if isinstance(operand, Arithmetic):
            found = self._results.get(operand)
            if found is None:
                found = self._results[operand] = self._calculated(operand)
            return found
        value = self.value(operand)
        if isinstance(value, list | tuple):
            return self._of_list(value)
        return () if value is MISSING or isinstance(value, dict) else (value,)

    def has(self, test: Text) -> bool:
        """Return whether a text at the test's path passes it."""
        found = self.of(test.path)
        if not isinstance(found, ValueSet):
            return any(_is_so(test, one) for one in found)
        verdict = self._verdicts.get(test)
        if verdict is None:
            verdict = self._verdicts[test] = found.has(test)
        return verdict

    def _objects(self, path: str) -> Objects:
        event = filterable(self.event) if is_in_data(path) else self.event
        attributes = event.attributes
        found = objects_at(attributes, path, value_inside(attributes, path))
        return Objects(attributes, path, found)

    def _of_list(self, value: Any) -> Values:
        found = self._lists.get(id(value))
        if found is None:
            found = self._lists[id(value)] = _some(tuple(members(value)))
        return found

    def _calculated(self, operand: Arithmetic) -> Values:
        """Calculate each value with each; return none if there are too many."""
        lefts, rights = self.of(operand.left), self.of(operand.right)
        if len(lefts) * len(rights) > limits.ARITHMETIC_RESULTS_MAX:
            return ()
        others = [one for one in map(number_of, rights) if one is not None]
        found = tuple(
            each
            for one in map(number_of, lefts)
            if one is not None
            for other in others
            for each in result(operand.op, one, other)
        )
        return _some(found)


class _ObjectValues(EventValues):
    """The values of one object of an event. `base`: the path to the object."""

    __slots__ = ("_base", "_object")

    def __init__(self, event: Event, base: str, inner: dict[str, Any], work: Work) -> None:
        super().__init__(event)
        self.work = work
        self._base = base
        self._object = inner

    def value(self, path: Path) -> Any:
        """Return the value at a path; the event's attribute with the exact full name goes first."""
        if path.space != "attributes":
            return value_of(path, self.event)
        found = self._nested.get(path.name, self)
        if found is self:
            exact = self.event.attributes.get(f"{self._base}.{path.name}", MISSING)
            found = value_inside(self._object, path.name) if exact is MISSING else exact
            self._nested[path.name] = found
        return found

    def _objects(self, path: str) -> Objects:
        return Objects(self.event.attributes, self._base, [self._object]).within(path)


def meet(some: Values, others: Values) -> bool:
    """Return whether both share a value, in time linear in both (not in their product)."""
    if len(some) == 1 and len(others) == 1:
        return same(some[0], others[0])
    return not keys_of(some).isdisjoint(keys_of(others))


def deciding(values: Values, *, least: bool) -> list[Any] | Values:
    """Return the values that decide whether an order holds for any of them."""
    if isinstance(values, ValueSet):
        return values.least if least else values.greatest
    return values


def keys_of(values: Values) -> frozenset[Any]:
    """Return the keys (`key_of`) of the values."""
    return values.keys if isinstance(values, ValueSet) else frozenset(map(key_of, values))


def _some(values: Values) -> Values:
    return ValueSet(values) if len(values) > FEW else values


def _is_so(test: Text, value: Any) -> bool:
    return isinstance(value, str) and passes(test, value)
