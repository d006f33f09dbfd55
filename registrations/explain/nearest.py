"""Nearest misses: the filters that an event fails by the fewest tests. Plain module."""

from bisect import insort
from collections.abc import Iterator
from typing import Annotated, Generic, NamedTuple, TypedDict, TypeVar

from msgspec import Meta

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Node, Path
from registrations.filters.evaluate import TypeHierarchy, holds
from registrations.filters.event_values import EventValues
from registrations.filters.explain import explain
from registrations.matching.spec import Spec, Specs

T = TypeVar("T")
Alternatives = tuple[tuple[Node, ...], ...]  # of a filter; all tests of one must hold


class FailedJson(TypedDict):
    """A test that failed."""

    predicate: str
    why: Annotated[str, Meta(description="The reason in words.")]


class Miss(NamedTuple):
    """The tests of a filter's nearest alternative that an event fails; none: it matches."""

    failed: tuple[Node, ...]
    held: int  # number of its tests that hold

    @property
    def tests(self) -> int:
        return len(self.failed) + self.held


def alternatives_of(specs: Specs) -> Alternatives:
    """Return the single tests of each alternative of a filter, including its gate and pairs."""
    return tuple(tuple(_tests(spec)) for spec in specs)


def miss_of(alternatives: Alternatives, event: Event, hierarchy: TypeHierarchy) -> Miss | None:
    """Return the nearest miss of an event; None if the filter never matches."""
    best: Miss | None = None
    values = EventValues(event)
    for tests in alternatives:
        failed = tuple(test for test in tests if not holds(test, values, hierarchy))
        miss = Miss(failed, len(tests) - len(failed))
        if best is None or _distance(miss) < _distance(best):
            best = miss
        if not failed:
            break
    return best


def failed_json(miss: Miss, event: Event, hierarchy: TypeHierarchy) -> list[FailedJson]:
    """Return the failed tests as JSON, each with the reason."""
    found = [explain(node, event, hierarchy) for node in miss.failed]
    return [{"predicate": one.predicate, "why": one.why} for one in found]


class Nearest(Generic[T]):
    """The best `count` of many items: those with the fewest failed tests, then with the most tests
    that hold, then in the order of arrival.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._came = 0
        self._best: list[tuple[tuple[int, int, int], T]] = []

    def offer(self, failed: int, held: int, what: T) -> None:
        self._came += 1
        key = (failed, -held, self._came)
        if len(self._best) == self._count and key >= self._best[-1][0]:
            return
        insort(self._best, (key, what), key=lambda one: one[0])
        del self._best[self._count :]

    def __iter__(self) -> Iterator[T]:
        return (what for _, what in self._best)


def _distance(miss: Miss) -> tuple[int, int]:
    return len(miss.failed), -miss.held


def _tests(spec: Spec) -> Iterator[Node]:
    gate = (("domain", spec.domain), ("type", spec.type), ("application", spec.application))
    for name, value in gate:
        if value is not None:
            yield Compare("=", Path(name, "envelope"), Const(value))
    for path, expected in spec.pairs:
        yield Compare("=", Path(path), Const(expected))
    yield from spec.tests
