"""The closure of many filters: one filter that lets through what any of them does, in as few
alternatives as covering allows (OIF-07). Plain module.

It is bounded. Of alternatives that differ by one value one is made, with the set of values; what
still exceeds the bounds is widened step by step (gathered.py). So a closure may let through more
than is wanted, and says so; it never lets through less.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import And, Compare, Const, Node, Not, OfType, Or, Path, Truth
from registrations.filters.closure.covering import Known, Work
from registrations.filters.closure.value_groups import Gathered
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.normal import Alternative, Form
from registrations.filters.paths import paths_of
from registrations.filters.printed import printed

_EVERYTHING: Alternative = frozenset()
_Key = tuple[str, object]


class Closure(NamedTuple):
    """What is wanted, as alternatives; () is nothing. `widened`: it lets through more than that."""

    form: Form = ()
    widened: bool = False

    def matches(self, event: Event, hierarchy: TypeHierarchy = no_supertypes) -> bool:
        values = EventValues(event)
        return any(all(holds(part, values, hierarchy) for part in parts) for parts in self.form)

    def node(self) -> Node:
        """As one filter."""
        nodes = tuple(map(alternative_node, self.form))
        if not nodes:
            return Truth(False)
        return nodes[0] if len(nodes) == 1 else Or(nodes)


EVERYTHING = Closure((_EVERYTHING,), widened=True)


class Bounds(NamedTuple):
    """How much a closure may be, and cost; and from how many alternatives on they are gathered."""

    exact_max: int = limits.CLOSURE_FILTERS_MAX
    alternatives_max: int = limits.CLOSURE_ALTERNATIVES_MAX
    chars_max: int = limits.CLOSURE_CHARS_MAX
    compared_max: int = limits.CLOSURE_COMPARED_MAX
    tests_max: int = limits.CLOSURE_TESTS_MAX


_BOUNDS = Bounds()
Rest = Callable[[], object]  # called between steps of some microseconds each
_LESS = 5  # of the work for those that are gathered: there are fewer


class Cost(NamedTuple):
    """What finding a closure may cost."""

    work: Work
    rest: Rest


def _go_on() -> None:
    """No rest."""


class TooMuch(Exception):
    """A bound was met on the way."""


class Union:
    """Filters as they come, in bounded memory."""

    def __init__(self, bounds: Bounds = _BOUNDS) -> None:
        self._bounds = bounds
        self._exact: set[Alternative] = set()
        self._tests = 0  # in these
        self._gathered: Gathered | None = None
        self._lost = False

    def give_up(self) -> None:
        """From now on it is everything."""
        self._lost = True

    def add(self, form: Form) -> None:
        """A filter in normal form."""
        for parts in form:
            if self._gathered is not None:
                self._gathered.add(parts)
                continue
            if parts in self._exact:
                continue
            self._exact.add(parts)
            self._tests += len(parts)
            bounds = self._bounds
            if len(self._exact) > bounds.exact_max or self._tests > bounds.tests_max:
                self._gather()

    def closure(self, rest: Rest = _go_on) -> Closure:
        """What lets through all that came; where it was too much, it stays as wide as it became."""
        if self._lost:
            return EVERYTHING
        if self._gathered is None:
            cost = Cost(Work(self._bounds.compared_max), rest)
            try:
                return _sorted(_least(self._exact, self._bounds, cost), widened=False)
            except TooMuch:
                gathered = self._gather()
        else:
            gathered = self._gathered
        cost = Cost(Work(self._bounds.compared_max // _LESS), rest)
        while True:
            try:
                found = _least(set(gathered.alternatives()), self._bounds, cost)
                return _sorted(found, widened=gathered.widened)
            except TooMuch:
                if not gathered.coarsen(self._bounds.alternatives_max):
                    return EVERYTHING

    def _gather(self) -> Gathered:
        self._gathered = Gathered(self._exact, self._bounds.tests_max)
        self._exact = set()
        return self._gathered


def _sorted(found: list[Alternative], *, widened: bool) -> Closure:
    return Closure(tuple(sorted(found, key=_words)), widened)


def alternative_node(parts: Alternative) -> Node:
    """One alternative as a filter."""
    nodes = tuple(sorted(parts, key=printed))
    if not nodes:
        return Truth(True)
    return nodes[0] if len(nodes) == 1 else And(nodes)


def _least(alternatives: Set[Alternative], bounds: Bounds, cost: Cost) -> list[Alternative]:
    """Without those that another one covers, as far as there is time to find them. Raises
    TooMuch.
    """
    kept = _Kept(cost, 4 * bounds.alternatives_max)
    for _, parts in sorted(_with_rank(alternatives, cost.rest), key=itemgetter(0)):
        kept.add(parts)
    found = kept.uncovered()
    if len(found) > bounds.alternatives_max:
        raise TooMuch
    chars = 0
    for part in chain.from_iterable(found):
        chars += len(printed(part))
        if chars > bounds.chars_max:
            raise TooMuch
    return found


def _with_rank(
    alternatives: Iterable[Alternative], rest: Rest
) -> Iterator[tuple[tuple[int, list[str]], Alternative]]:
    for parts in alternatives:
        yield _fewest(parts), parts
        rest()


def _fewest(parts: Alternative) -> tuple[int, list[str]]:
    """What asks for less covers more, so it comes first."""
    return len(parts), _words(parts)


def _words(parts: Alternative) -> list[str]:
    return sorted(map(printed, parts))


class _Kept:
    """Alternatives by what must be among the facts of all that they cover."""

    def __init__(self, cost: Cost, most: int) -> None:
        self._cost = cost
        self._most = most
        self._by_key: dict[_Key, dict[Known, None]] = {}
        self._all: dict[Known, None] = {}

    def add(self, parts: Alternative) -> None:
        known = Known(parts)
        if self._covered(known):
            return
        self._by_key.setdefault(_key_of(known), {})[known] = None
        self._all[known] = None
        if len(self._all) > self._most:
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
        work, rest = self._cost
        rest()
        if work.done:
            return False
        for key in _keys_of(known):
            for other in self._by_key.get(key, ()):
                if other.covers(known, work):
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
