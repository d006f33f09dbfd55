"""Every engine of the match index returns what the naive scan returns: under a changing matcher,
over a built index, and over one whose names collide in a few slots.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from registrations.match_index.engines import numpy_engine, python_engine
from registrations.match_index.format.builder import EpochPlan
from registrations.matching.index import IndexMatcher
from registrations.matching.scan import ScanMatcher
from tests.unit.registrations.match_index.worlds import OFTEN, built, found, indexed, moments, names
from tests.unit.registrations.matching import filters
from tests.unit.registrations.matching.conditions import hierarchy
from tests.unit.registrations.matching.programs import FEW, Step, differs, programs, seeded
from tests.unit.registrations.matching.vocabulary import FEW_PATHS, PATHS

LENGTH = 800
MATCHED_SHARE_MIN = 0.3
AT_ONCE = OFTEN._replace(first=2, least=2)
WEAK = 0xF0000000F  # of a hash: 4 bits for the slot, 4 to compare

engines = pytest.mark.parametrize("engine", names)


@pytest.fixture
def always_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the code paths for many conjunctions in small programs."""
    for name in ("SPAN_FEW", "VERIFIED_FEW", "COPIED_FEW"):
        monkeypatch.setattr(numpy_engine, name, -1)
    monkeypatch.setattr(python_engine, "RUNS_FEW", 0)


@pytest.mark.parametrize(
    ("seed", "paths", "ids"),
    [(1, PATHS, 200), (2, PATHS, 200), (1, FEW_PATHS, 200), (1, PATHS, FEW)],
)
def test_engines_agree_with_the_scan(seed: int, paths: tuple[str, ...], ids: int) -> None:
    each = {engine: indexed(engine) for engine in names}
    assert differs(seeded(seed, LENGTH, paths, ids), ScanMatcher, **each) is None


@pytest.mark.usefixtures("always_numpy")
@pytest.mark.parametrize("paths", [PATHS, FEW_PATHS])
def test_code_paths_for_many_agree_on_few(paths: tuple[str, ...]) -> None:
    each = {engine: indexed(engine) for engine in ("numpy", "python")}
    assert differs(seeded(3, LENGTH, paths), ScanMatcher, **each) is None


@engines
@pytest.mark.parametrize("seed", [1, 2])
def test_engines_agree_with_the_trees(engine: str, seed: int) -> None:
    met = filters.differs(filters.seeded(seed, LENGTH), indexed(engine))
    assert isinstance(met, filters.Met), met
    assert met.matched / met.pairs >= MATCHED_SHARE_MIN


@pytest.mark.slow
@pytest.mark.parametrize("plan", [EpochPlan(), EpochPlan(hash_mask=WEAK), EpochPlan(hash_mask=0)])
def test_built_indexes_agree_with_any_hash(tmp_path: Path, plan: EpochPlan) -> None:
    """If the hash has no bits, all names collide, and only their comparison separates them."""
    for number, paths in enumerate((PATHS, FEW_PATHS)):
        for at, still in enumerate(moments(seeded(5, LENGTH, paths))):
            base = built(tmp_path / f"{number}.{at}", still.specs, plan)
            scan = ScanMatcher(hierarchy)
            for id, spec in still.specs.items():
                scan.add(id, spec)
            expected = [sorted(scan.match(event)) for event in still.events]
            for name in names:
                assert found(base, name, still.events, hierarchy) == expected, name


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=programs())
def test_engines_agree_on_random_programs(steps: list[Step]) -> None:
    """The programs are those of the other strategies' comparison, in which enough events match."""
    each = {engine: indexed(engine, AT_ONCE) for engine in names}
    assert differs(steps, ScanMatcher, **each) is None


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=filters.programs())
def test_engines_agree_on_random_filters(steps: list[filters.Step]) -> None:
    for name in names:
        met = filters.differs(steps, indexed(name, AT_ONCE))
        assert isinstance(met, filters.Met), met


@engines
def test_the_base_has_most_registrations_of_a_program(engine: str) -> None:
    """Otherwise the comparison would test the matcher in memory."""
    made: list[IndexMatcher] = []

    def make(hierarchy: object) -> IndexMatcher:
        made.append(indexed(engine)(hierarchy))  # type: ignore[arg-type]
        return made[-1]

    assert differs(seeded(1, LENGTH), ScanMatcher, index=make) is None  # type: ignore[arg-type]
    state, counters = made[0].state(), made[0].counters
    assert (state.engine, counters.rebuilds > 10) == (engine, True)
    assert state.base > state.delta
