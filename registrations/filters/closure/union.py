"""The closure of many filters: one filter that matches what any of them matches, in as few
alternatives as covering allows (OIF-07). Plain module.

It is bounded. Alternatives that differ by one value become one alternative with the set of values;
a closure that still exceeds the bounds is widened step by step (value_groups.py). So a closure may
match more than the filters, and reports it (`widened`); it never matches less.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import And, Compare, Const, Node, Not, OfType, Or, Path, Truth
from registrations.filters.closure.covers_by_value import ComparisonBudget, PreparedAlternative
from registrations.filters.closure.value_groups import ValueGroups
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.normal import Alternative, NormalForm
from registrations.filters.paths import paths_of
from registrations.filters.printed import printed

_EVERYTHING: Alternative = frozenset()
_Key = tuple[str, object]


class Closure(NamedTuple):
    """A closure as alternatives; () matches nothing. `widened`: it matches more than the filters
    do.
    """

    form: NormalForm = ()
    widened: bool = False

    def matches(self, event: Event, hierarchy: TypeHierarchy = no_supertypes) -> bool:
        values = EventValues(event)
        return any(all(holds(part, values, hierarchy) for part in parts) for parts in self.form)

    def node(self) -> Node:
        """Return it as one filter."""
        nodes = tuple(map(alternative_node, self.form))
        if not nodes:
            return Truth(False)
        return nodes[0] if len(nodes) == 1 else Or(nodes)


EVERYTHING = Closure((_EVERYTHING,), widened=True)


class ClosureBounds(NamedTuple):
    """The limits of a closure's size and cost. Beyond `exact_max` alternatives it is grouped."""

    exact_max: int = limits.CLOSURE_FILTERS_MAX
    alternatives_max: int = limits.CLOSURE_ALTERNATIVES_MAX
    chars_max: int = limits.CLOSURE_CHARS_MAX
    compared_max: int = limits.CLOSURE_COMPARED_MAX
    tests_max: int = limits.CLOSURE_TESTS_MAX


_BOUNDS = ClosureBounds()
Pause = Callable[[], object]  # called between steps of some microseconds each
_GROUPED_SHARE = 5  # divides the work for grouped alternatives, of which there are fewer


class ClosureWork(NamedTuple):
    """The work that finding a closure may take, and the pause between its steps."""

    work: ComparisonBudget
    pause: Pause


def _no_pause() -> None:
    """Do not pause."""


class BoundExceeded(Exception):
    """A limit of the closure was exceeded."""


class InterestCollector:
    """A collector of filters, in bounded memory, and their closure."""

    def __init__(self, bounds: ClosureBounds = _BOUNDS) -> None:
        self._bounds = bounds
        self._exact: set[Alternative] = set()
        self._tests = 0  # in `_exact`
        self._groups: ValueGroups | None = None
        self._matches_everything = False

    def match_everything(self) -> None:
        """Widen the closure to every event for good."""
        self._matches_everything = True

    def add(self, form: NormalForm) -> None:
        """Add a filter in normal form."""
        for parts in form:
            if self._groups is not None:
                self._groups.add(parts)
                continue
            if parts in self._exact:
                continue
            self._exact.add(parts)
            self._tests += len(parts)
            bounds = self._bounds
            if len(self._exact) > bounds.exact_max or self._tests > bounds.tests_max:
                self._group()

    def closure(self, pause: Pause = _no_pause) -> Closure:
        """Return the closure of all added filters. If it had to be widened, it stays widened."""
        if self._matches_everything:
            return EVERYTHING
        if self._groups is None:
            cost = ClosureWork(ComparisonBudget(self._bounds.compared_max), pause)
            try:
                return _sorted(_uncovered(self._exact, self._bounds, cost), widened=False)
            except BoundExceeded:
                groups = self._group()
        else:
            groups = self._groups
        cost = ClosureWork(ComparisonBudget(self._bounds.compared_max // _GROUPED_SHARE), pause)
        while True:
            try:
                found = _uncovered(set(groups.alternatives()), self._bounds, cost)
                return _sorted(found, widened=groups.widened)
            except BoundExceeded:
                if not groups.coarsen(self._bounds.alternatives_max):
                    return EVERYTHING

    def _group(self) -> ValueGroups:
        self._groups = ValueGroups(self._exact, self._bounds.tests_max)
        self._exact = set()
        return self._groups


def _sorted(found: list[Alternative], *, widened: bool) -> Closure:
    return Closure(tuple(sorted(found, key=_words)), widened)


def alternative_node(parts: Alternative) -> Node:
    """Return one alternative as a filter."""
    nodes = tuple(sorted(parts, key=printed))
    if not nodes:
        return Truth(True)
    return nodes[0] if len(nodes) == 1 else And(nodes)


def _uncovered(
    alternatives: Set[Alternative], bounds: ClosureBounds, cost: ClosureWork
) -> list[Alternative]:
    """Drop the alternatives that another one covers, within the work allowed. Raises
    BoundExceeded.
    """
    uncovered = _UncoveredAlternatives(cost, 4 * bounds.alternatives_max)
    for _, parts in sorted(_with_rank(alternatives, cost.pause), key=itemgetter(0)):
        uncovered.add(parts)
    found = uncovered.uncovered()
    if len(found) > bounds.alternatives_max:
        raise BoundExceeded
    chars = 0
    for part in chain.from_iterable(found):
        chars += len(printed(part))
        if chars > bounds.chars_max:
            raise BoundExceeded
    return found


def _with_rank(
    alternatives: Iterable[Alternative], pause: Pause
) -> Iterator[tuple[tuple[int, list[str]], Alternative]]:
    for parts in alternatives:
        yield _sort_key(parts), parts
        pause()


def _sort_key(parts: Alternative) -> tuple[int, list[str]]:
    """Return the sort key: fewer tests cover more, so they come first."""
    return len(parts), _words(parts)


def _words(parts: Alternative) -> list[str]:
    return sorted(map(printed, parts))


class _UncoveredAlternatives:
    """Alternatives that no other covers, indexed by a key among the facts of all they may cover."""

    def __init__(self, cost: ClosureWork, most: int) -> None:
        self._cost = cost
        self._most = most
        self._by_key: dict[_Key, dict[PreparedAlternative, None]] = {}
        self._all: dict[PreparedAlternative, None] = {}

    def add(self, parts: Alternative) -> None:
        known = PreparedAlternative(parts)
        if self._covered(known):
            return
        self._by_key.setdefault(_key_of(known), {})[known] = None
        self._all[known] = None
        if len(self._all) > self._most:
            raise BoundExceeded

    def uncovered(self) -> list[Alternative]:
        """Return the alternatives that no later one covers either."""
        for known in list(self._all):
            self._by_key[_key_of(known)].pop(known)
            if self._covered(known):
                del self._all[known]
            else:
                self._by_key[_key_of(known)][known] = None
        return [known.parts for known in self._all]

    def _covered(self, known: PreparedAlternative) -> bool:
        work, pause = self._cost
        pause()
        if work.done:
            return False
        for key in _keys_of(known):
            for other in self._by_key.get(key, ()):
                if other.covers(known, work):
                    return True
        return False


_ALWAYS: _Key = ("", None)


def _key_of(known: PreparedAlternative) -> _Key:
    """Return the index key of an alternative: an equality if it has one, else a path."""
    keys = [key for test in known.tests for key in _keys(test)]
    return min(keys, key=_rank) if keys else _ALWAYS


def _rank(key: _Key) -> tuple[int, str]:
    return (0 if key[0] == "=" else 1 if key[0] == "path" else 2), repr(key[1])


def _keys_of(known: PreparedAlternative) -> set[_Key]:
    """Return every index key that an alternative covering it may have."""
    found = {_ALWAYS, ("not", None), ("type", None)}
    for fact in known.facts:
        found.update(_keys(fact))
        found.update(("path", path) for path in paths_of(fact))
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
            for path in paths_of(test):
                yield "path", path
