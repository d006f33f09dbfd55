"""Alternatives without number in bounded memory: those that differ by the value of one path are one
group, with its values. Plain module.

Which path varies is taken from those that came first: the one with the most values; the domain or
the type, where there is no other. Beyond the bounds the groups become coarser, the largest first,
and then fewer, as their other tests are forgotten. So it may let through more than was put in, and
never less.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Compare, Const, Node, Path
from registrations.filters.closure.value_summary import Numbers, Texts, Varying
from registrations.filters.closure.widening import as_it_is, gate_alone, is_of_gate, without_values
from registrations.filters.normal import Alternative

_LEVELS = (as_it_is, without_values, gate_alone)
_Key = tuple[
    Alternative, Path | None, type[Varying] | None
]  # what they share, the path, and of which kind


class Gathered:
    """Groups of alternatives. `widened`: more than these is let through."""

    def __init__(
        self, alternatives: Iterable[Alternative], tests_max: int = limits.CLOSURE_TESTS_MAX
    ) -> None:
        first = list(alternatives)
        self._values = _values_by_path(first)
        self._groups: dict[_Key, Varying | None] = {}
        self._level = 0
        self._kept = 0  # values, in all groups
        self._tests = 0  # that the groups share
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
        while self._kept > limits.CLOSURE_VALUES_MAX:
            largest = max(self._varying(), key=len)
            self._kept -= len(largest)
            largest.coarsen()
            self._kept += len(largest)
        while self._too_many and self._forget():
            pass

    def coarsen(self, groups_max: int) -> bool:
        """Let all through that is let through now, in fewer words; False: they can be no fewer. Of
        more groups than that, none can be said by itself.
        """
        if len(self._groups) > groups_max:
            return self._forget()
        found = [one.coarsen() for one in self._varying()]
        self._kept = sum(map(len, self._varying()))
        return any(found) or self._forget()

    def alternatives(self) -> Iterator[Alternative]:
        """What the groups say."""
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
            self._kept -= len(group)
            group.add(one.value)
            self._kept += len(group)

    def _group(self, key: _Key, group: Varying | None) -> Varying | None:
        """The one that there is, or else this."""
        if key not in self._groups:
            self._groups[key] = group
            self._tests += len(key[0])
        return self._groups[key]

    def _varying(self) -> Iterator[Varying]:
        return (one for one in self._groups.values() if one is not None)

    def _forget(self) -> bool:
        """Less of what each group shares, so that there are fewer."""
        if self._level == len(_LEVELS):
            return False
        self._level += 1
        groups, self._groups, self._kept, self._tests = self._groups, {}, 0, 0
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
        self._kept = sum(map(len, self._varying()))
        return True


class _Equal(NamedTuple):
    """An equality with a value of which there may be many. `gate`: of the domain, the type or the
    application.
    """

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
    """How many different values each path is to have."""
    seen: dict[Path, set[str | int | float]] = {}
    for parts in alternatives:
        for part in parts:
            one = _equal(part)
            if one is not None:
                seen.setdefault(one.path, set()).add(one.value)
    return {path: len(values) for path, values in seen.items()}
