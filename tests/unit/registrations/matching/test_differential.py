"""All strategies return what the naive scan returns (G5); the comparison finds planted mistakes."""

import pytest
from hypothesis import HealthCheck, given, settings

from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.matching import conjunctions, memo, rarest_pair
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.strategies import STRATEGIES
from tests.unit.registrations.matching.programs import (
    FEW,
    Share,
    Step,
    differs,
    programs,
    seeded,
    share,
)
from tests.unit.registrations.matching.vocabulary import FEW_PATHS, PATHS

SEEDS = (1, 2, 3, 5)
LENGTH = 1_000
MATCHED_SHARE_MIN = 0.3  # of the events; a comparison with fewer proves little
RANDOM_SHARE_MIN = 0.1  # of unseeded cases, whose share varies from run to run

COMPARED = {name: make for name, make in STRATEGIES.items() if name != "scan"}


@pytest.mark.parametrize("seed", SEEDS)
def test_strategies_agree_with_the_scan(seed: int) -> None:
    assert differs(seeded(seed, LENGTH), ScanMatcher, **COMPARED) is None


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_strategies_agree_where_fields_and_tests_often_coincide(seed: int) -> None:
    assert differs(seeded(seed, LENGTH, FEW_PATHS), ScanMatcher, **COMPARED) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_strategies_agree_where_registrations_are_few(seed: int) -> None:
    assert differs(seeded(seed, LENGTH, PATHS, FEW), ScanMatcher, **COMPARED) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_access_agrees_with_frequent_reviews(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(conjunctions, "REVIEW_MIN", 1)
    monkeypatch.setattr(rarest_pair, "PARTNERS_FEW", 1)
    made: list[RarestPairMatcher] = []

    def make(hierarchy: TypeHierarchy = no_supertypes) -> RarestPairMatcher:
        made.append(RarestPairMatcher(hierarchy))
        return made[-1]

    assert differs(seeded(seed, LENGTH), ScanMatcher, access=make) is None
    assert made[0].counters.rebuilds > 10


def test_memo_agrees_when_its_cache_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "FIELD_SETS_MAX", 2)
    assert differs(seeded(1, LENGTH), ScanMatcher, memo=memo.MemoMatcher) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_enough_of_the_seeded_events_match(seed: int) -> None:
    for names in (PATHS, FEW_PATHS):
        found = share(seeded(seed, 2 * LENGTH, names), ScanMatcher)
        assert found.events > 2 * LENGTH / 3
        assert found.matched / found.events >= MATCHED_SHARE_MIN


@pytest.mark.slow
def test_strategies_agree_on_random_programs() -> None:
    met: list[Share] = []

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=programs())
    def agree(steps: list[Step]) -> None:
        met.append(share(steps, ScanMatcher))
        assert differs(steps, ScanMatcher, **COMPARED) is None

    agree()
    events, matched = (sum(column) for column in zip(*met, strict=True))
    assert matched / events >= RANDOM_SHARE_MIN, (matched, events)
