"""The differential comparison catches a mistake planted in each engine: a comparison that no
mistake fails would prove nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters import pairs
from registrations.matching import (
    atoms,
    compile_matcher,
    conditions,
    conjunctions,
    counting,
    rarest_pair,
)
from registrations.matching.atoms import Pair
from registrations.matching.compile_matcher import CompileMatcher
from registrations.matching.conjunctions import Atom, Conjunction, GateConjunctions
from registrations.matching.counting import CountedRegistration, CountingMatcher, Entry, HashKey
from registrations.matching.gates import GateKey
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.spec import Spec
from registrations.matching.strategies import MatcherFactory
from tests.unit.registrations.matching.programs import caught

LENGTH = 1_000


# --- mistakes in whole matchers ---


class ForgetsRemoval(RarestPairMatcher):
    def remove(self, id: int) -> None:
        self._places.pop(id, None)


class ForgetsWildcards(RarestPairMatcher):
    def match(self, event: Event) -> list[int]:
        due: list[int] = []
        gate = self._gates.get((event.domain, event.type, None))
        if gate is not None:
            seen = rarest_pair.AttributeValues(event.attributes, {})
            self._match_gate(gate, seen, conditions.EventTestResults(self._tests, event), due)
        return due


class IgnoresTheTypeGate(RarestPairMatcher):
    def add(self, id: int, spec: Spec) -> None:
        super().add(id, spec._replace(type=None))


class IgnoresTheApplication(RarestPairMatcher):
    def add(self, id: int, spec: Spec) -> None:
        super().add(id, spec._replace(application=None))


class CountingUsesTheFirstApplicationOnly(CountingMatcher):
    def match(self, event: Event) -> list[int]:
        return super().match(event._replace(application=event.application[:1]))


class ForgetsSpecsWithoutPairs(RarestPairMatcher):
    def add(self, id: int, spec: Spec) -> None:
        super().add(id, spec if spec.pairs else spec._replace(domain="nobody's"))


class KeepsTheOldSpec(RarestPairMatcher):
    def add(self, id: int, spec: Spec) -> None:
        if id not in self._places:
            super().add(id, spec)


class CountingIgnoresTheTypeGate(CountingMatcher):
    def add(self, id: int, spec: Spec) -> None:
        super().add(id, spec._replace(type=None))


class CountingCountsAPairTwice(CountingMatcher):
    def add(self, id: int, spec: Spec) -> None:
        super().add(id, spec)
        self._registrations[id].total = len(spec.pairs)


class CountingForgetsRemoval(CountingMatcher):
    """A matcher that keeps index entries, so that removed numbers become due."""

    def remove(self, id: int) -> None:
        self._registrations.pop(id, None)

    def _passing(self, due: list[int], event: Event) -> list[int]:
        there = [id for id in due if id in self._registrations]
        return super()._passing(there, event) + [id for id in due if id not in there]


class ScanIgnoresTheType(ScanMatcher):
    def add(self, id: int, spec: Spec) -> None:
        super().add(id, spec._replace(type=None))


class ScanForgetsRemoval(ScanMatcher):
    def remove(self, id: int) -> None:
        pass


class ScanUsesTheFirstPairOnly(ScanMatcher):
    def add(self, id: int, spec: Spec) -> None:
        super().add(id, spec._replace(pairs=spec.pairs[:1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        *(ForgetsRemoval, ForgetsWildcards, IgnoresTheTypeGate, ForgetsSpecsWithoutPairs),
        *(IgnoresTheApplication, CountingUsesTheFirstApplicationOnly),
        *(KeepsTheOldSpec, CountingIgnoresTheTypeGate, CountingForgetsRemoval),
        CountingCountsAPairTwice,
        *(ScanIgnoresTheType, ScanForgetsRemoval, ScanUsesTheFirstPairOnly),
    ],
)
def test_a_planted_mistake_in_a_matcher_is_caught(make: MatcherFactory) -> None:
    oracle = RarestPairMatcher if issubclass(make, ScanMatcher) else ScanMatcher  # type: ignore[arg-type]
    assert caught(make, oracle, LENGTH)


# --- mistakes in single steps ---


def no_reset(visited: list[CountedRegistration]) -> None:
    """Do not reset the counters of the last event."""


def due_too_early(entry: Entry, visited: list[CountedRegistration], due: list[int]) -> None:
    for registration in entry.values():
        registration.counter += 1
        visited.append(registration)
        if registration.counter == max(registration.total - 1, 1):
            due.append(registration.id)


def only_the_first_gate(
    event: Event, gates: list[GateKey], prefixes: dict[str, int]
) -> Iterable[HashKey]:
    return true_event_keys(event, gates[:1], prefixes)


def as_text(value: Any) -> Any:
    return str(value)


def python_equality(value: Any) -> Any:
    """Compare as Python does: 1 is True."""
    return object() if isinstance(value, dict | list) else value


def identity_of_numbers(value: Any) -> Any:
    """Take 1 and 1.0 for different."""
    return (type(value), value) if isinstance(value, int | float) else true_key_of(value)


def through_a_float(value: Any) -> Any:
    """Round large integers to floats."""
    return float(value) if type(value) is int and abs(value) < 10**300 else true_key_of(value)


def nothing_inside(attributes: dict[str, Any], opened: Any) -> list[tuple[str, Any]]:
    return []


def nothing_in_lists(attributes: dict[str, Any], opened: Any) -> list[tuple[str, Any]]:
    return true_nested_pairs(
        {path: value for path, value in attributes.items() if not isinstance(value, list)}, opened
    )


def each_object_alone(attributes: dict[str, Any], opened: Any) -> list[tuple[str, Any]]:
    """Return the values of several objects of a list separately."""
    found: list[tuple[str, Any]] = []
    for path, value in true_nested_pairs(attributes, opened):
        found += [(path, one) for one in value] if isinstance(value, list) else [(path, value)]
    return found


def without_shadows(attributes: dict[str, Any], opened: Any) -> list[tuple[str, Any]]:
    return true_nested_pairs(
        {path: value for path, value in attributes.items() if "." not in path}, opened
    )


def unverified(present: set[Atom], trial: conditions.EventTestResults, due: list[int]) -> int:
    for atom in present:
        due += atom.alone or []
        for couple in (atom.partners or {}).values():
            due += couple.both or []
            due += [id for conjunction in couple.more or () for id in conjunction.ids]
    return 0


def two_are_enough(
    couple: Any, present: set[Atom], trial: conditions.EventTestResults, due: list[int]
) -> int:
    due += couple.both or []
    due += [id for conjunction in couple.more or () for id in conjunction.ids]
    return 0


def review_that_loses(gate: GateConjunctions, atom: Atom | None) -> int:
    """Unlink the conjunctions of an atom and do not link them again."""
    if atom is None or atom.posted < atom.review_at or atom.partners is None:
        return 0
    for couple in list(atom.partners.values()):
        for conjunction in list(couple.more or ()):
            conjunctions.unlink(conjunction)
            conjunction.access = None
    return 1


def merged(
    gate: GateConjunctions, pairs: tuple[Pair, ...], tests: tuple[conditions.Condition, ...]
) -> tuple[Conjunction, int]:
    """Take conjunctions for equal that differ in the last pair only."""
    return true_conjunction_of(gate, pairs[:-1] if len(pairs) > 2 else pairs, tests)


true_event_keys = counting.event_keys
true_key_of = atoms.key_of
true_nested_pairs = atoms.nested_pairs
true_conjunction_of = conjunctions.conjunction_of

ACCESS: list[tuple[Any, str, Callable[..., Any]]] = [
    (rarest_pair, "collect", unverified),
    (rarest_pair, "collect_couple", two_are_enough),
    (rarest_pair, "nested_pairs", nothing_inside),
    (rarest_pair, "nested_pairs", without_shadows),
    (rarest_pair, "nested_pairs", nothing_in_lists),
    (rarest_pair, "nested_pairs", each_object_alone),
    (rarest_pair, "conjunction_of", merged),
    (conjunctions, "review_if_due", review_that_loses),
]
COUNTING: list[tuple[Any, str, Callable[..., Any]]] = [
    (counting, "reset", no_reset),
    (counting, "count", due_too_early),
    (counting, "event_keys", only_the_first_gate),
    (counting, "nested_pairs", nothing_inside),
    (counting, "nested_pairs", without_shadows),
    (counting, "nested_pairs", nothing_in_lists),
    (counting, "nested_pairs", each_object_alone),
]
EQUALITY = [as_text, python_equality, identity_of_numbers, through_a_float]


def names(cases: list[tuple[Any, str, Callable[..., Any]]]) -> list[str]:
    return [f"{module.__name__.rpartition('.')[2]}-{wrong.__name__}" for module, _, wrong in cases]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "module", "step", "wrong"),
    [
        *((RarestPairMatcher, *case) for case in ACCESS),
        *((CountingMatcher, *case) for case in COUNTING),
    ],
    ids=[*names(ACCESS), *names(COUNTING)],
)
def test_a_planted_mistake_in_a_step_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    make: MatcherFactory,
    module: Any,
    step: str,
    wrong: Callable[..., Any],
) -> None:
    monkeypatch.setattr(conjunctions, "REVIEW_MIN", 1)  # so that reviews are frequent
    monkeypatch.setattr(module, step, wrong)
    assert caught(make, ScanMatcher, LENGTH)


@pytest.mark.slow
@pytest.mark.parametrize("make", [RarestPairMatcher, CountingMatcher, CompileMatcher])
@pytest.mark.parametrize("wrong", EQUALITY)
def test_a_wrong_equality_is_caught(
    monkeypatch: pytest.MonkeyPatch, make: MatcherFactory, wrong: Callable[[Any], Any]
) -> None:
    for module in (atoms, rarest_pair, compile_matcher):
        monkeypatch.setattr(module, "key_of", wrong)
    assert caught(make, ScanMatcher, LENGTH)


@pytest.mark.slow
def test_another_equality_of_the_language_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "same", lambda one, other: one == other)
    assert caught(ScanMatcher, RarestPairMatcher, LENGTH)
