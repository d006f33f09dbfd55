"""Intervals, conjunctions with a lower and an upper bound of one path, in every engine."""

from pathlib import Path

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const
from registrations.filters.ast import Path as Field
from registrations.filters.evaluate import no_supertypes
from registrations.match_index.engines.available import ENGINES, new_engine
from registrations.match_index.format.builder import build_columns
from registrations.match_index.format.decode import columns_of
from registrations.matching.spec import Spec
from tests.unit.registrations.match_index.ranges import events_of, expected_of, specs_of
from tests.unit.registrations.match_index.worlds import built, files, found

engines = pytest.mark.parametrize("engine", [*ENGINES])


@engines
@pytest.mark.parametrize(("seed", "count"), [(1, 30), (2, 90), (3, 700)])
def test_intervals_are_found_as_they_are_evaluated(
    tmp_path: Path, engine: str, seed: int, count: int
) -> None:
    specs, events = specs_of(seed, count), events_of(seed, 60)
    base = built(tmp_path, specs)
    assert base.shards[0].head.intervals > count / 10
    expected = [expected_of(specs, event) for event in events]
    assert found(base, engine, events, no_supertypes) == expected
    assert any(expected)


def test_an_index_of_intervals_is_rebuilt_into_the_same_bytes(tmp_path: Path) -> None:
    base = built(tmp_path / "1", specs_of(3, 700))
    build_columns(tmp_path / "2", [columns_of(base.shards[0])])
    assert files(tmp_path / "1") == files(tmp_path / "2")


@engines
def test_a_value_visits_only_the_intervals_that_it_is_in(tmp_path: Path, engine: str) -> None:
    x = Field("x")
    specs = {
        id: Spec(tests=(Compare(">=", x, Const(id)), Compare("<", x, Const(id + 1))))
        for id in range(3_000)
    }
    specs[3_000] = Spec(tests=(Compare(">", x, Const(-1)), Compare("<", x, Const(10**6))))
    [shard] = built(tmp_path, specs).shards
    made = new_engine(engine, shard)
    for value in (0, 7.5, 1_234, 2_999, 2_999.9):
        assert sorted(made.match(Event("", "", {"x": value}))) == [int(value), 3_000]
    assert list(made.match(Event("", "", {"x": 5_000}))) == [3_000]
    assert made.counters.touched == 11
    assert sorted(made.match(Event("", "", {"x": [3, 9]}))) == [*range(3, 10), 3_000]


def test_a_rare_value_goes_before_an_interval(tmp_path: Path) -> None:
    """The interval is of each conjunction's access only if it leads to fewer."""
    x = Field("x")
    wide = (Compare(">=", x, Const(0)), Compare("<", x, Const(100)))
    specs = {id: Spec(pairs=(("k", id),), tests=wide) for id in range(50)}
    assert built(tmp_path, specs).shards[0].head.intervals == 0


@engines
def test_a_threshold_is_found_by_one_conjunction_and_by_many(tmp_path: Path, engine: str) -> None:
    """The compiled engine searches the thresholds that hold for few, and marks them for many."""
    above = {id: (Compare(">", Field("x"), Const(id)),) for id in range(3_000)}
    specs = {
        id: Spec(pairs=(("own", id),) if id < 1_500 else (("shared", 1),), tests=tests)
        for id, tests in above.items()
    }
    [shard] = built(tmp_path, specs).shards
    made = new_engine(engine, shard)
    for value in (2_000, 999, 2_999.5, 1_000):
        assert list(made.match(Event("", "", {"own": 999, "x": value}))) == [999] * (value > 999)
        many = sorted(made.match(Event("", "", {"shared": 1, "x": value})))
        assert many == [id for id in range(1_500, 3_000) if id < value]
    assert made.counters.touched == 4 * 1_501
