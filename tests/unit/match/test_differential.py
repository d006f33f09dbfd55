"""All strategies give what the naive scan gives (G5); and the comparison notices mistakes."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from registrations.match import access, conjunctions
from registrations.match.access import AccessMatcher
from registrations.match.matcher import Matcher
from registrations.match.scan import ScanMatcher
from registrations.match.strategies import STRATEGIES
from tests.unit.match.programs import Share, Step, differs, programs, seeded, share

SEEDS = range(1, 7)
LENGTH = 3_000
MATCHED_SHARE_MIN = 0.3  # of the events; below it the comparison would say little

engines = pytest.mark.parametrize("make", [*STRATEGIES.values()], ids=[*STRATEGIES])


@engines
@pytest.mark.parametrize("seed", SEEDS)
def test_strategies_agree_with_the_scan(make: Callable[[], Matcher], seed: int) -> None:
    assert differs(seeded(seed, LENGTH), make, ScanMatcher) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_access_agrees_when_it_looks_again_often(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(conjunctions, "REVIEW_MIN", 1)
    monkeypatch.setattr(access, "PARTNERS_FEW", 1)
    made: list[AccessMatcher] = []

    def make() -> AccessMatcher:
        made.append(AccessMatcher())
        return made[-1]

    assert differs(seeded(seed, LENGTH), make, ScanMatcher) is None
    assert made[0].counters.rebuilds > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_enough_of_the_seeded_events_match(seed: int) -> None:
    found = share(seeded(seed, LENGTH), ScanMatcher)
    assert found.events > LENGTH / 3
    assert found.matched / found.events >= MATCHED_SHARE_MIN


def test_strategies_agree_on_programs_nobody_thought_of() -> None:
    met: list[Share] = []

    @settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=programs())
    def agree(steps: list[Step]) -> None:
        met.append(share(steps, ScanMatcher))
        for make in STRATEGIES.values():
            assert differs(steps, make, ScanMatcher) is None

    agree()
    events, matched = (sum(column) for column in zip(*met, strict=True))
    assert matched / events >= MATCHED_SHARE_MIN, (matched, events)
