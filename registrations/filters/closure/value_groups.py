"""Any number of alternatives in bounded memory: those that differ only by the value of one path are
one group with a set of values. Plain module.

The varying path is the one with the most values among the first alternatives; domain or type only
if there is no other. Beyond the limits the groups become coarser, the largest first, and then
fewer, by dropping their other tests. So the groups may match more than the alternatives, never
less.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Compare, Const, Node, Path
from registrations.filters.closure.value_summary import Numbers, Texts, Varying
from registrations.filters.closure.widening import gate_alone, is_of_gate, unchanged, without_values
from registrations.filters.normal import Alternative

_LEVELS = (unchanged, without_values, gate_alone)
# the tests that the alternatives share, the varying path, and the kind of its values
_Key = tuple[Alternative, Path | None, type[Varying] | None]


class ValueGroups:
    """Groups of alternatives. `widened`: they match more than the alternatives."""

    def __init__(
        self, alternatives: Iterable[Alternative], tests_max: int = limits.CLOSURE_TESTS_MAX
    ) -> None:
        first = list(alternatives)
        self._values = _values_by_path(first)
        self._groups: dict[_Key, Varying | None] = {}
        self._level = 0
        self._value_count = 0  # in all groups
        self._tests = 0  # shared tests of all groups
        self._tests_max = tests_max
        for parts in first:
            self.add(parts)

    @property
    def widened(self) -> bool:
        return self._level > 0 or any(not one.exact for one in self._varying())

    def add(self, parts: Alternative) -> None:
        if self._level == len(_LEVELS):
            return
        self._put(parts)
        while self._value_count > limits.CLOSURE_VALUES_MAX:
            largest = max(self._varying(), key=len)
            self._value_count -= len(largest)
            largest.coarsen()
            self._value_count += len(largest)
        while self._too_many and self._forget():
            pass

    def coarsen(self, groups_max: int) -> bool:
        """Widen by one step; return False if that is not possible. If there are more groups than
        `groups_max`, make them fewer, else coarser.
        """
        if len(self._groups) > groups_max:
            return self._forget()
        found = [one.coarsen() for one in self._varying()]
        self._value_count = sum(map(len, self._varying()))
        return any(found) or self._forget()

    def alternatives(self) -> Iterator[Alternative]:
        """Yield the alternatives of the groups."""
        if self._level == len(_LEVELS):
            yield frozenset()
            return
        for (rest, path, _), group in self._groups.items():
            if group is None or path is None:
                yield rest
            else:
                for tests in group.tests(path):
                    yield rest.union(tests)

    @property
    def _too_many(self) -> bool:
        return len(self._groups) > limits.CLOSURE_GROUPS_MAX or self._tests > self._tests_max

    def _put(self, parts: Alternative) -> None:
        widen = _LEVELS[self._level]
        kept = gate_alone(parts) if widen is gate_alone else parts
        equal = [each for part in kept if (each := _equal(part)) is not None]
        found = [each for each in equal if not each.gate] or equal
        if not found:
            self._group((widen(kept), None, None), None)
            return
        one = max(found, key=lambda each: (self._values.get(each.path, 0), repr(each.path)))
        kind = Texts if isinstance(one.value, str) else Numbers
        group = self._group((widen(kept - {one.part}), one.path, kind), kind())
        if group is not None:
            self._value_count -= len(group)
            group.add(one.value)
            self._value_count += len(group)

    def _group(self, key: _Key, group: Varying | None) -> Varying | None:
        """Return the group with the key, or insert this one."""
        if key not in self._groups:
            self._groups[key] = group
            self._tests += len(key[0])
        return self._groups[key]

    def _varying(self) -> Iterator[Varying]:
        return (one for one in self._groups.values() if one is not None)

    def _forget(self) -> bool:
        """Drop some shared tests of each group, so that groups merge; False if none are left."""
        if self._level == len(_LEVELS):
            return False
        self._level += 1
        groups, self._groups, self._value_count, self._tests = self._groups, {}, 0, 0
        if self._level == len(_LEVELS):
            return True
        widen = _LEVELS[self._level]
        for (rest, path, kind), group in groups.items():
            if group is None or path is None or (widen is gate_alone and not is_of_gate(path)):
                self._put(rest)
                continue
            held = self._group((widen(rest), path, kind), group)
            if held is not None and held is not group:
                held.merge(group)
        self._value_count = sum(map(len, self._varying()))
        return True


class _Equal(NamedTuple):
    """An equality whose value may vary. `gate`: it is of the domain, type or application."""

    part: Node
    path: Path
    value: str | int | float
    gate: bool


def _equal(part: Node) -> _Equal | None:
    match part:
        case Compare("=", Path() as path, Const(str() | int() | float() as value)):
            return None if isinstance(value, bool) else _Equal(part, path, value, is_of_gate(path))
    return None


def _values_by_path(alternatives: Iterable[Alternative]) -> dict[Path, int]:
    """Count the distinct values of each path."""
    seen: dict[Path, set[str | int | float]] = {}
    for parts in alternatives:
        for part in parts:
            one = _equal(part)
            if one is not None:
                seen.setdefault(one.path, set()).add(one.value)
    return {path: len(values) for path, values in seen.items()}
