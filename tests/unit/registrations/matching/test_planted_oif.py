"""The differential comparison finds mistakes planted in OIF's strategies: sig, memo, lattice and
compile.
"""

from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Node, Not
from registrations.filters.evaluate import TypeHierarchy
from registrations.matching import compile_matcher, lattice, signatures, thresholds
from registrations.matching.compile_matcher import Block, CompileMatcher, Findings
from registrations.matching.lattice import LatticeMatcher, Members, PathEntry
from registrations.matching.matcher import Counters
from registrations.matching.memo import MemoMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.signature_matcher import SigMatcher
from registrations.matching.signatures import Signatures
from registrations.matching.spec import Spec
from registrations.matching.strategies import MatcherFactory
from registrations.matching.thresholds import Threshold, ThresholdOrder
from tests.unit.registrations.matching.programs import caught

LENGTH = 2_000


# --- signatures ---


def required_of_not(node: Node) -> frozenset[str]:
    return true_required(node.item if isinstance(node, Not) else node)


def whole_path(path: str) -> str:
    """Look for a dotted name at the top level."""
    return path


def bit_by_count(self: Signatures, name: str) -> int:
    """Do not reuse freed bits, but count them."""
    if name not in self._bits:
        self._bits[name] = 1 << len(self._bits)
    self._users[name] = self._users.get(name, 0) + 1
    return self._bits[name]


class MemoKeepsItsCache(MemoMatcher):
    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        self._signatures.add(id, spec)


class MemoKeepsRemoved(MemoMatcher):
    def remove(self, id: int) -> None:
        self._signatures.remove(id)


class MemoKnowsFieldsByTheirCount(MemoMatcher):
    def match(self, event: Event) -> list[int]:
        found = {bits.bit_count(): bits for bits in self._candidates}
        given = self._signatures.given(event.attributes)
        same = found.get(given.bit_count())
        if same is not None:
            self._candidates[given] = self._candidates[same]
        return super().match(event)


class LatticeKeepsItsPath(LatticeMatcher):
    def add(self, id: int, spec: Spec) -> None:
        path = self._path
        super().add(id, spec)
        self._path = path or None


def one_too_far(members: dict[int, Members]) -> list[PathEntry]:
    return [stop._replace(beyond=stop.beyond + 1) for stop in true_laid_flat(members)]


def overlap_is_enough(found: list[int], bits: int) -> int | None:
    """Link a signature below one that only shares a field with it."""
    return next((each for each in found if each & bits), None)


true_required = signatures.required_properties
true_laid_flat = lattice.flattened


# --- compile ---


class Remembers(Findings):
    """Results that are kept for the next event."""

    def __init__(
        self, event: Event, hierarchy: TypeHierarchy, shadows: ThresholdOrder, counters: Counters
    ) -> None:
        super().__init__(event, hierarchy, shadows, counters)
        self._passed, self._failed = BOUNDS


BOUNDS: tuple[dict[object, Any], dict[object, Any]] = ({}, {})


def equal_is_enough(node: Node) -> Threshold | None:
    """Take `>` for `>=`."""
    found = true_threshold_of(node)
    return found and found._replace(strength=(found.strength[0], False))


def smaller_is_stronger(node: Node) -> Threshold | None:
    found = true_threshold_of(node)
    return found and found._replace(strength=(-found.strength[0], found.strength[1]))


def one_side(node: Node) -> Threshold | None:
    """Put `<` and `>` of an operand on the same side."""
    found = true_threshold_of(node)
    return found and found._replace(side=(found.side[0], True))


def unflipped(node: Node) -> Threshold | None:
    """Take `(> 3 x)` for `(> x 3)`."""
    if isinstance(node, Compare) and isinstance(node.left, Const):
        return true_threshold_of(Compare(node.op, node.right, node.left))
    return true_threshold_of(node)


def only_the_then_part(program: Block, findings: Findings, due: list[int]) -> int:
    """Do not return the numbers of a block with further steps."""
    if not (program.cases or program.tests):
        due += program.ids
    for path, cases in program.cases.items():
        for key in findings.keys_at(path):
            if key in cases:
                only_the_then_part(cases[key], findings, due)
    for test, inner in program.tests.items():
        if findings.holds(test):
            only_the_then_part(inner, findings, due)
    return 0


def stays(program: Block, steps: Any, id: int) -> None:
    """Keep a removed number, which is still returned."""


true_threshold_of = thresholds.threshold_of

STEPS: list[tuple[MatcherFactory, Any, str, Any]] = [
    *(
        (make, signatures, "required_properties", required_of_not)
        for make in (SigMatcher, MemoMatcher)
    ),
    *((make, signatures, "property_of", whole_path) for make in (SigMatcher, LatticeMatcher)),
    (SigMatcher, Signatures, "_use", bit_by_count),
    (LatticeMatcher, lattice, "flattened", one_too_far),
    (LatticeMatcher, lattice, "_subset", overlap_is_enough),
    (CompileMatcher, compile_matcher, "Findings", Remembers),
    (CompileMatcher, compile_matcher, "run", only_the_then_part),
    (CompileMatcher, compile_matcher, "remove_row", stays),
    *(
        (CompileMatcher, thresholds, "threshold_of", wrong)
        for wrong in (equal_is_enough, smaller_is_stronger, one_side, unflipped)
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "module", "name", "wrong"),
    STEPS,
    ids=[f"{make.__name__}-{wrong.__name__}" for make, _, _, wrong in STEPS],  # type: ignore[attr-defined]
)
def test_a_planted_mistake_in_a_step_is_caught(
    monkeypatch: pytest.MonkeyPatch, make: MatcherFactory, module: Any, name: str, wrong: Any
) -> None:
    for remembered in BOUNDS:
        remembered.clear()
    monkeypatch.setattr(module, name, wrong)
    assert caught(make, ScanMatcher, LENGTH)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [MemoKeepsItsCache, MemoKeepsRemoved, MemoKnowsFieldsByTheirCount, LatticeKeepsItsPath],
)
def test_a_planted_mistake_in_a_matcher_is_caught(make: MatcherFactory) -> None:
    assert caught(make, ScanMatcher, LENGTH)
