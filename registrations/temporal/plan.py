"""The plan of a temporal pattern's joins: in which order its events are joined, by which equal
values, and where each test is evaluated. Plain module.

Variables with one name are equal, and so are those of `(test (= ?a ?b))`. A join compares them by
an index. Events are joined in the order of the text, except that an event which shares an equality
with those before it goes first: the order of a text does not decide the cost.
"""

from typing import NamedTuple

from registrations.filters.ast import And, Exists, Path, TextPosition
from registrations.filters.normal import normal
from registrations.filters.printed import printed, printed_operand
from registrations.temporal.compiled_tests import Check, Slot, all_of, compiled
from registrations.temporal.entries import AlphaPattern
from registrations.temporal.errors import as_temporal
from registrations.temporal.expressions import (
    AnyTest,
    BoundVariable,
    Calculation,
    EveryTest,
    Expression,
    JoinTest,
    NegatedTest,
    Relation,
    conjuncts_of,
    printed_test,
    variables_of,
)
from registrations.temporal.pattern import SEQUENCE, EventPattern, TemporalPattern

_NOWHERE = TextPosition(1, 1)


class JoinPlan(NamedTuple):
    """One event of a pattern, or one that must be absent, and how it joins with the entries before
    it: by the values of `earlier`, which equal its own with the indexes `own`, and by a check.
    """

    number: int  # in the text, from 0
    alpha: AlphaPattern
    earlier: tuple[Slot, ...]
    own: tuple[int, ...]
    check: Check | None


class PatternPlan(NamedTuple):
    """The joins of a pattern in their order, its absent events, and where each variable is."""

    pattern: TemporalPattern
    joins: tuple[JoinPlan, ...]
    absent: tuple[JoinPlan, ...]
    slots: dict[str, Slot]


def planned(pattern: TemporalPattern) -> PatternPlan:
    """Plan the joins of a pattern. Raises TemporalTooLarge for a filter that is too complex."""
    with as_temporal():
        return _Planner(pattern).plan()


class _Fields(NamedTuple):
    """The fields of an event pattern, and its variables with the indexes of their fields."""

    paths: tuple[Path, ...]
    variables: tuple[tuple[str, int], ...]


class _Planner:
    """Plans one pattern."""

    def __init__(self, pattern: TemporalPattern) -> None:
        self._pattern = pattern
        self._fields = [_fields(event) for event in pattern.events]
        self._same: dict[str, str] = {}  # a variable that each of several equal ones leads to
        self._tests = [test for test in conjuncts_of(pattern.tests) if not self._equates(test)]
        self._order = self._ordered()
        self._slots: dict[str, Slot] = {}
        for level, number in enumerate(self._order):
            for name, index in self._fields[number].variables:
                self._slots.setdefault(name, Slot(level, index))

    def plan(self) -> PatternPlan:
        joins = tuple(self._join(level) for level in range(len(self._order)))
        absent = tuple(self._absent(number) for number in range(len(self._pattern.absent)))
        return PatternPlan(self._pattern, joins, absent, self._slots)

    # --- equal variables ---

    def _equates(self, test: JoinTest) -> bool:
        """Note two variables that a test requires to be equal; return whether it is such a test."""
        match test:
            case Relation("=", BoundVariable(one), BoundVariable(other)):
                self._same[self._class_of(one)] = self._class_of(other)
                return True
        return False

    def _class_of(self, name: str) -> str:
        """Return the name that stands for all variables that equal this one."""
        while self._same.get(name, name) != name:
            name = self._same[name]
        return name

    def _classes(self, number: int) -> set[str]:
        return {self._class_of(name) for name, _ in self._fields[number].variables}

    def _ordered(self) -> list[int]:
        """Return the numbers of the events in the order in which they are joined."""
        waiting = list(range(len(self._fields)))
        order = [waiting.pop(0)]
        known = self._classes(order[0])
        while waiting:
            index = next((i for i, one in enumerate(waiting) if self._classes(one) & known), 0)
            order.append(waiting.pop(index))
            known |= self._classes(order[-1])
        return order

    # --- joins ---

    def _join(self, level: int) -> JoinPlan:
        number = self._order[level]
        fields = self._fields[number]
        keys, tests = self._equalities(level, fields, self._slots)
        checks: list[Check] = []
        for test in self._tests:
            levels = {self._slots[variable.name].level for variable in variables_of(test)} or {0}
            if levels == {level}:
                tests.append(_of_entry(test, {n: i for n, (_, i) in self._slots.items()}))
            elif max(levels) == level:
                checks.append(compiled(test, self._slots))
        return _join_plan(
            number, self._pattern.events[number], fields, _JoinParts(keys, tests, checks)
        )

    def _absent(self, number: int) -> JoinPlan:
        absent = self._pattern.absent[number]
        fields = _fields(absent.event)
        level = len(self._order)
        slots = dict(self._slots)
        for name, index in fields.variables:
            slots.setdefault(name, Slot(level, index))
        keys, tests = self._equalities(level, fields, slots)
        checks: list[Check] = []
        for test in conjuncts_of(absent.tests):
            levels = {slots[variable.name].level for variable in variables_of(test)}
            if levels == {level}:
                tests.append(_of_entry(test, {n: i for n, (_, i) in slots.items()}))
            elif (pair := _equality(test, slots, level)) is not None:
                keys.append(pair)
            else:
                checks.append(compiled(test, slots))
        return _join_plan(number, absent.event, fields, _JoinParts(keys, tests, checks))

    def _equalities(
        self, level: int, fields: _Fields, slots: dict[str, Slot]
    ) -> tuple[list[tuple[Slot, int]], list[JoinTest]]:
        """Return the values of an event that equal earlier ones, and the tests that others of its
        own values are equal.
        """
        earlier: dict[str, Slot] = {}
        for name, slot in sorted(slots.items(), key=lambda item: item[1]):
            if slot.level < level:
                earlier.setdefault(self._class_of(name), slot)
        keys: list[tuple[Slot, int]] = []
        tests: list[JoinTest] = []
        first: dict[str, int] = {}
        for name, index in fields.variables:
            variable_class = self._class_of(name)
            if variable_class in first:
                tests.append(_equal(first[variable_class], index))
                continue
            first[variable_class] = index
            if variable_class in earlier:
                keys.append((earlier[variable_class], index))
        return keys, tests


class _JoinParts(NamedTuple):
    keys: list[tuple[Slot, int]]
    tests: list[JoinTest]
    checks: list[Check]


def _join_plan(number: int, event: EventPattern, fields: _Fields, parts: _JoinParts) -> JoinPlan:
    nodes = event.filter.items if isinstance(event.filter, And) else (event.filter,)
    exist = tuple(Exists(path) for path in fields.paths if path != SEQUENCE)
    filter = And(tuple(sorted({*nodes, *exist}, key=printed)))
    tests = tuple(sorted(set(parts.tests), key=printed_test))
    alpha = AlphaPattern(filter, fields.paths, tests)
    earlier = tuple(slot for slot, _ in parts.keys)
    own = tuple(index for _, index in parts.keys)
    check = all_of(parts.checks) if parts.checks else None
    normal(filter)  # raises if it is too complex
    return JoinPlan(number, alpha, earlier, own, check)


def _fields(event: EventPattern) -> _Fields:
    found: dict[Path, str] = {path: printed_operand(path) for path, _ in event.bindings}
    paths = tuple(sorted(found, key=found.__getitem__))
    indexes = {path: index for index, path in enumerate(paths)}
    variables = [(variable.name, indexes[path]) for path, variable in event.bindings]
    return _Fields(paths, tuple(dict.fromkeys(variables)))


def _equal(one: int, other: int) -> JoinTest:
    return Relation("=", _of_index(one), _of_index(other))


def _equality(test: JoinTest, slots: dict[str, Slot], level: int) -> tuple[Slot, int] | None:
    """Return the earlier value and the index of the own one if a test requires the two to be
    equal.
    """
    match test:
        case Relation("=", BoundVariable(one), BoundVariable(other)):
            first, second = sorted((slots[one], slots[other]))
            return (first, second.field) if second.level == level else None
    return None


def _of_entry(test: JoinTest, indexes: dict[str, int]) -> JoinTest:
    """Return a test of one event with the indexes of its fields as variables."""
    match test:
        case EveryTest(items):
            return EveryTest(tuple(_of_entry(item, indexes) for item in items))
        case AnyTest(items):
            return AnyTest(tuple(_of_entry(item, indexes) for item in items))
        case NegatedTest(item):
            return NegatedTest(_of_entry(item, indexes))
    left, right = _of_fields(test.left, indexes), _of_fields(test.right, indexes)
    return Relation(test.op, left, right)


def _of_fields(expression: Expression, indexes: dict[str, int]) -> Expression:
    match expression:
        case BoundVariable(name):
            return _of_index(indexes[name])
        case Calculation(op, left, right):
            return Calculation(op, _of_fields(left, indexes), _of_fields(right, indexes))
    return expression


def _of_index(index: int) -> BoundVariable:
    return BoundVariable(str(index), _NOWHERE)
