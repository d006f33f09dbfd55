"""The differential comparison catches mistakes planted in OIF's strategies: sig, memo, lattice and
compile.
"""

from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Node, Not
from registrations.filters.evaluate import TypeHierarchy
from registrations.matching import compiled, lattice, shadows, signatures
from registrations.matching.compiled import Block, CompileMatcher, Findings
from registrations.matching.lattice import LatticeMatcher, Members, Stop
from registrations.matching.matcher import Counters
from registrations.matching.memo import MemoMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.shadows import Shadows, Threshold
from registrations.matching.sig import SigMatcher
from registrations.matching.signatures import Signatures
from registrations.matching.spec import Spec
from registrations.matching.strategies import Make
from tests.unit.registrations.matching.programs import caught

LENGTH = 2_000


# --- signatures ---


def demanded_of_not(node: Node) -> frozenset[str]:
    return true_demanded(node.item if isinstance(node, Not) else node)


def whole_path(path: str) -> str:
    """A dotted name is looked for at the top."""
    return path


def bit_of_the_number_there_are(self: Signatures, name: str) -> int:
    """Bits that became free are not given again, but counted."""
    if name not in self._bits:
        self._bits[name] = 1 << len(self._bits)
    self._users[name] = self._users.get(name, 0) + 1
    return self._bits[name]


class MemoForgetsNothing(MemoMatcher):
    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        self._signatures.add(id, spec)


class MemoKeepsWhatLeft(MemoMatcher):
    def remove(self, id: int) -> None:
        self._signatures.remove(id)


class MemoKnowsFieldsByTheirNumber(MemoMatcher):
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


def one_too_far(members: dict[int, Members]) -> list[Stop]:
    return [stop._replace(beyond=stop.beyond + 1) for stop in true_laid_flat(members)]


def overlap_is_enough(found: list[int], bits: int) -> int | None:
    """A signature hangs under one that it only shares a field with."""
    return next((each for each in found if each & bits), None)


true_demanded = signatures.demanded
true_laid_flat = lattice.laid_flat


# --- compile ---


class Remembers(Findings):
    """What was found out of one event is believed of the next."""

    def __init__(
        self, event: Event, hierarchy: TypeHierarchy, shadows: Shadows, counters: Counters
    ) -> None:
        super().__init__(event, hierarchy, shadows, counters)
        self._passed, self._failed = BOUNDS


BOUNDS: tuple[dict[object, Any], dict[object, Any]] = ({}, {})


def equal_is_enough(node: Node) -> Threshold | None:
    """`>` is taken for `>=`."""
    found = true_threshold_of(node)
    return found and found._replace(strength=(found.strength[0], False))


def smaller_is_stronger(node: Node) -> Threshold | None:
    found = true_threshold_of(node)
    return found and found._replace(strength=(-found.strength[0], found.strength[1]))


def one_side(node: Node) -> Threshold | None:
    """`<` and `>` of an operand are on the same side."""
    found = true_threshold_of(node)
    return found and found._replace(side=(found.side[0], True))


def unflipped(node: Node) -> Threshold | None:
    """`(> 3 x)` is taken for `(> x 3)`."""
    if isinstance(node, Compare) and isinstance(node.left, Const):
        return true_threshold_of(Compare(node.op, node.right, node.left))
    return true_threshold_of(node)


def only_the_then_part(program: Block, findings: Findings, due: list[int]) -> int:
    """Numbers of a block that goes on are not told."""
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
    """A number that left is still told."""


true_threshold_of = shadows.threshold_of

STEPS: list[tuple[Make, Any, str, Any]] = [
    *((make, signatures, "demanded", demanded_of_not) for make in (SigMatcher, MemoMatcher)),
    *((make, signatures, "property_of", whole_path) for make in (SigMatcher, LatticeMatcher)),
    (SigMatcher, Signatures, "_use", bit_of_the_number_there_are),
    (LatticeMatcher, lattice, "laid_flat", one_too_far),
    (LatticeMatcher, lattice, "_subset", overlap_is_enough),
    (CompileMatcher, compiled, "Findings", Remembers),
    (CompileMatcher, compiled, "run", only_the_then_part),
    (CompileMatcher, compiled, "take_out", stays),
    *(
        (CompileMatcher, shadows, "threshold_of", wrong)
        for wrong in (equal_is_enough, smaller_is_stronger, one_side, unflipped)
    ),
]


@pytest.mark.parametrize(
    ("make", "place", "name", "wrong"),
    STEPS,
    ids=[f"{make.__name__}-{wrong.__name__}" for make, _, _, wrong in STEPS],  # type: ignore[attr-defined]
)
def test_a_step_gone_wrong_is_caught(
    monkeypatch: pytest.MonkeyPatch, make: Make, place: Any, name: str, wrong: Any
) -> None:
    for remembered in BOUNDS:
        remembered.clear()
    monkeypatch.setattr(place, name, wrong)
    assert caught(make, ScanMatcher, LENGTH)


@pytest.mark.parametrize(
    "make",
    [MemoForgetsNothing, MemoKeepsWhatLeft, MemoKnowsFieldsByTheirNumber, LatticeKeepsItsPath],
)
def test_a_matcher_gone_wrong_is_caught(make: Make) -> None:
    assert caught(make, ScanMatcher, LENGTH)
