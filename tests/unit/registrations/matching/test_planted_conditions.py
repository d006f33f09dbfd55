"""The differential comparison catches mistakes planted where conjunctions have tests, and where
filters have alternatives.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Node, Not, Path
from registrations.filters.evaluate import TypeHierarchy, holds
from registrations.matching import (
    atoms,
    compile_matcher,
    conditions,
    conjunctions,
    counting,
    rarest_pair,
    spec,
)
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.compile_matcher import CompileMatcher
from registrations.matching.counting import CountingMatcher
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.spec import Spec, Specs
from registrations.matching.strategies import MatcherFactory
from tests.unit.registrations.matching import filters
from tests.unit.registrations.matching.programs import caught

SEED = 1
LENGTH = 2_000


# --- tests ---


class Remembers(conditions.EventTestResults):
    """A trial that keeps its verdicts for the next event."""

    def __init__(self, tests: conditions.Conditions, event: Event) -> None:
        super().__init__(tests, event)
        self._verdicts = REMEMBERED


REMEMBERED: dict[conditions.Condition, bool] = {}


class NeverEvaluates(conditions.EventTestResults):
    def passes(self, tests: tuple[conditions.Condition, ...]) -> bool:
        return True


class EvaluatesTheFirstOnly(conditions.EventTestResults):
    def passes(self, tests: tuple[conditions.Condition, ...]) -> bool:
        return super().passes(tests[:1])


class NoHierarchy(conditions.EventTestResults):
    def __init__(self, tests: conditions.Conditions, event: Event) -> None:
        super().__init__(tests, event)
        self._hierarchy = lambda event: (event.type,)


def without_not(node: Node, event: Event, hierarchy: TypeHierarchy) -> bool:
    return holds(node.item if isinstance(node, Not) else node, event, hierarchy)


def anchored_to_its_absence(nodes: Iterable[Node]) -> str | None:
    """Take an attribute that must be absent for a required one."""
    return true_anchor_of(node.item if isinstance(node, Not) else node for node in nodes)


def first_member(value: Any) -> Any:
    return true_keys_of(value[:1] if isinstance(value, list) else value)


def no_tests(
    tests: conditions.Conditions, nodes: Iterable[Node]
) -> tuple[conditions.Condition, ...]:
    return ()


true_anchor_of = conditions.anchor_of
true_keys_of = atoms.keys_of

WRONG: list[tuple[MatcherFactory, Any, str, Any]] = [
    *(
        (RarestPairMatcher, rarest_pair, "EventTestResults", wrong)
        for wrong in (Remembers, NeverEvaluates)
    ),
    *(
        (RarestPairMatcher, rarest_pair, "EventTestResults", wrong)
        for wrong in (EvaluatesTheFirstOnly, NoHierarchy)
    ),
    *(
        (CountingMatcher, counting, "EventTestResults", wrong)
        for wrong in (Remembers, NeverEvaluates)
    ),
    *(
        (CountingMatcher, counting, "EventTestResults", wrong)
        for wrong in (EvaluatesTheFirstOnly, NoHierarchy)
    ),
    (RarestPairMatcher, conditions, "holds", without_not),
    (CountingMatcher, conditions, "holds", without_not),
    (CompileMatcher, compile_matcher, "holds", without_not),
    (RarestPairMatcher, conjunctions, "anchor_of", anchored_to_its_absence),
    (RarestPairMatcher, rarest_pair, "keys_of", first_member),
    (CountingMatcher, counting, "keys_of", first_member),
    (CompileMatcher, compile_matcher, "keys_of", first_member),
    (RarestPairMatcher, conditions.Conditions, "of", no_tests),
    (CountingMatcher, conditions.Conditions, "of", no_tests),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "module", "name", "wrong"),
    WRONG,
    ids=[f"{make.__name__}-{wrong.__name__}" for make, _, _, wrong in WRONG],  # type: ignore[attr-defined]
)
def test_a_mistake_with_tests_is_caught(
    monkeypatch: pytest.MonkeyPatch, make: MatcherFactory, module: Any, name: str, wrong: Any
) -> None:
    REMEMBERED.clear()
    monkeypatch.setattr(module, name, wrong)
    assert caught(make, ScanMatcher, LENGTH)


class ScanForgetsNot(ScanMatcher):
    def add(self, id: int, spec: Spec) -> None:
        tests = (test.item if isinstance(test, Not) else test for test in spec.tests)
        super().add(id, spec._replace(tests=tuple(tests)))


@pytest.mark.slow
def test_a_mistake_of_the_scan_is_caught() -> None:
    assert caught(ScanForgetsNot, RarestPairMatcher, LENGTH)


# --- alternatives ---


class KeepsAnAlternative(FilterMatcher):
    def remove(self, id: int) -> None:
        numbers = self._numbers.get(id, ())
        self._numbers[id] = numbers[:-1] if len(numbers) > 1 else numbers
        if id in self._numbers and not numbers:
            del self._numbers[id]
        super().remove(id)


class KeepsWhatItReplaces(FilterMatcher):
    def add(self, id: int, specs: Specs) -> None:
        if len(specs) == 1:
            self._matcher.add(id, specs[0])
        else:
            super().add(id, specs)


class ReturnsTwice(FilterMatcher):
    def match(self, event: Event) -> list[int]:
        found = self._matcher.match(event)
        return [self._filters[id] if id < 0 else id for id in found]


class TakesTheFirstAlternative(FilterMatcher):
    def add(self, id: int, specs: Specs) -> None:
        super().add(id, specs[:1] if len(specs) > 1 else specs)


class TakesTwoForOne(FilterMatcher):
    """A matcher that joins alternatives as if all of them had to hold."""

    def add(self, id: int, specs: Specs) -> None:
        if len(specs) == 2 and specs[0][:2] == specs[1][:2]:
            one, other = specs
            joined = one._replace(pairs=one.pairs + other.pairs, tests=one.tests + other.tests)
            specs = (joined,)
        super().add(id, specs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        *(KeepsAnAlternative, KeepsWhatItReplaces, ReturnsTwice),
        *(TakesTheFirstAlternative, TakesTwoForOne),
    ],
)
def test_a_mistake_with_alternatives_is_caught(wrong: type[FilterMatcher]) -> None:
    found = filters.differs(filters.seeded(SEED, LENGTH), RarestPairMatcher, wrong)
    assert isinstance(found, filters.Wrong)


@pytest.mark.slow
def test_a_gate_that_takes_an_empty_text_for_a_domain_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A past mistake: an event's empty type is missing for a filter, but a value for a gate."""
    given: Callable[[Any], Spec] = spec._spec

    def careless(alternative: Any, roles: Any) -> Spec:
        made = given(alternative, roles)
        empty = [test for test in made.tests if test == EMPTY_TYPE]
        return made._replace(type="", tests=()) if empty else made

    monkeypatch.setattr(spec, "_spec", careless)
    steps: list[filters.Step] = [filters.Take(1, EMPTY_TYPE), Event("d", "", {})]
    assert isinstance(filters.differs(steps, RarestPairMatcher), filters.Wrong)


EMPTY_TYPE = Compare("=", Path("type", "envelope"), Const(""))
