"""Intervals, conjunctions with a lower and an upper bound of one path, in every engine."""

from pathlib import Path
from random import Random

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Node
from registrations.filters.ast import Path as Field
from registrations.filters.evaluate import holds, no_supertypes
from registrations.match_index.engines.available import ENGINES, new_engine
from registrations.match_index.format.builder import build_columns
from registrations.match_index.format.decode import columns_of
from registrations.matching.spec import Spec
from tests.unit.registrations.match_index.worlds import built, files, found

engines = pytest.mark.parametrize("engine", [*ENGINES])
NUMBERS = (0, 1, 1.0, 2, 2.5, 3, 7, -1, 10**18, 10**18 + 1, 2**53, 2**53 + 1, 1e300)
TEXTS = ("", "a", "ab", "b", "é", "z")
LOWER, UPPER = (">", ">="), ("<", "<=")


def bounds(random: Random, path: str) -> tuple[Node, ...]:
    """Return bounds of one path, in any order, also of ranges that only lists are in."""
    values = random.choice((NUMBERS, NUMBERS, TEXTS))
    several = [random.choice(LOWER), random.choice(UPPER)]
    several += random.choice(((), (), (">",), ("<=",)))
    return tuple(
        Compare(op, Field(path), Const(random.choice(values)))  # type: ignore[arg-type]
        for op in several
    )


def specs_of(seed: int, count: int) -> dict[int, Spec]:
    """Return intervals of two paths, in several gates, some with a pair."""
    random, made = Random(seed), dict[int, Spec]()
    for id in range(count):
        tests = bounds(random, random.choice("xy"))
        if random.random() < 0.3:
            tests += bounds(random, random.choice("xyz"))
        pairs = (("k", random.randrange(3)),) if random.random() < 0.3 else ()
        gate = random.choice(((None, None), ("d", None), ("d", "t"), ("e", None)))
        made[id] = Spec(*gate, pairs=pairs, tests=tests)
    return made


def events_of(seed: int, count: int) -> list[Event]:
    random = Random(seed)

    def value() -> object:
        values = random.choice((NUMBERS, TEXTS, (5, 2.4, "7", True, None)))
        one = random.choice(values)
        return random.choice((one, one, [one, random.choice(NUMBERS)]))

    return [
        Event(random.choice("de"), random.choice("tu"), {path: value() for path in "kxyz"})
        for _ in range(count)
    ]


def expected_of(specs: dict[int, Spec], event: Event) -> list[int]:
    found = []
    for id, spec in specs.items():
        pairs = [Compare("=", Field(path), Const(value)) for path, value in spec.pairs]
        passes = spec.domain in (None, event.domain) and spec.type in (None, event.type)
        if passes and all(holds(test, event) for test in (*pairs, *spec.tests)):
            found.append(id)
    return found


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
