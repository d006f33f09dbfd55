"""The matcher over a match index: filters changed before and after a build are found once, and
removed ones are not found.
"""

import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eventhub.event.envelope import Event
from eventhub.supervisor.hub import HOME
from registrations.filters.ast import Compare, Const
from registrations.filters.ast import Path as Field
from registrations.filters.predicate import parse_predicate
from registrations.match_index.engines.available import ENGINES, new_engine
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.index import open_base
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.spec import Spec, specs_of
from registrations.matching.strategies import new_matcher

engines = pytest.mark.parametrize("engine", [*ENGINES])
EVENT = Event("", "", {"x": [1, 2, 3]})


def spec_of_x(value: int) -> Spec:
    return Spec(pairs=(("x", value),))


@engines
def test_a_new_index_has_the_live_filters_and_nothing_else(engine: str) -> None:
    """It combines the previous index, later changes, and a filter removed and added again."""
    matcher = IndexMatcher(options=IndexOptions(engine, first=20, least=100))
    for id in range(20):
        matcher.add(id, spec_of_x(1))
    assert (matcher.state().base, matcher.state().delta) == (20, 0)
    for id in (0, 2, 4):
        matcher.remove(id)
    matcher.add(1, spec_of_x(9))
    matcher.add(4, spec_of_x(3))
    matcher.add(50, spec_of_x(2))
    expected = [*range(3, 20), 50]
    assert sorted(matcher.match(EVENT)) == expected
    assert (matcher.state()[1:4], len(matcher)) == ((20, 3, 4), 19)
    matcher.compact()
    assert sorted(matcher.match(EVENT)) == expected
    assert (matcher.state()[1:4], len(matcher)) == ((19, 0, 0), 19)
    assert matcher.match(Event("", "", {"x": 9})) == [1]
    assert matcher.counters.rebuilds == 2


def test_filters_that_no_index_can_store_stay_in_memory() -> None:
    odd = Spec(tests=(Compare("<", Field("trace", "environment"), Const(2**70)),))
    matcher = IndexMatcher(options=IndexOptions(first=3, least=3))
    for id in range(10):
        matcher.add(id, odd if id % 2 else spec_of_x(1))
    event = EVENT._replace(environment={"trace": "5"})
    assert sorted(matcher.match(event)) == [*range(10)]
    matcher.remove(1)
    matcher.add(3, spec_of_x(7))
    assert sorted(matcher.match(event)) == [0, 2, 4, 5, 6, 7, 8, 9]
    assert len(matcher) == 9


@engines
def test_a_filter_of_several_alternatives_is_returned_once_and_removed_completely(
    engine: str,
) -> None:
    options = IndexOptions(engine, first=2, least=2, share=0.0)
    matcher = FilterMatcher(IndexMatcher(options=options))
    texts = {
        1: "(or (= x 1) (= x 2) (> y 3))",
        2: "(= x 1)",
        3: "(and (= x 1) (not (= x 1)))",
        4: "(or (= x 3) (and (= x 1) (= x 2)))",
    }
    for id, text in texts.items():
        matcher.add(id, specs_of(parse_predicate(text)))
    for id in range(100, 110):
        matcher.add(id, (spec_of_x(id),))
    assert (sorted(matcher.match(EVENT)), len(matcher)) == ([1, 2, 4], 14)
    matcher.remove(1)
    matcher.remove(3)
    assert (sorted(matcher.match(EVENT)), len(matcher)) == ([2, 4], 12)
    matcher.add(2, specs_of(parse_predicate("(or (= x 2) (= x 3))")))
    for id in range(100, 110):
        matcher.remove(id)
    assert (sorted(matcher.match(EVENT)), len(matcher)) == ([2, 4], 2)


@engines
def test_dense_positions_of_a_filter_with_alternatives_are_returned_once(
    tmp_path: Path, engine: str
) -> None:
    filters = {1: "(or (= x 1) (= x 2))", 2: "(= x 3)", 3: "(or (= x 2) (= x 3) (= x 4))"}
    entries = [IndexEntry(id, specs_of(parse_predicate(text))) for id, text in filters.items()]
    build(tmp_path, entries)
    base = open_base(tmp_path)
    [shard] = base.shards
    answering = ENGINES[engine](shard, lambda event: (event.type,))
    positions = answering.match(EVENT, positions=True).tolist()
    assert sorted(shard.views["ids"][at] for at in positions) == [1, 2, 3]
    for position in base.positions_of(3):
        answering.mark_removed(position.dense)
    assert sorted(answering.match(EVENT).tolist()) == [1, 2]


def test_a_full_disk_costs_speed_and_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = IndexMatcher(options=IndexOptions(first=5, least=5))
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    for id in range(9):
        matcher.add(id, spec_of_x(1))
    assert sorted(matcher.match(EVENT)) == [*range(9)]
    assert matcher.state().why.endswith("the last build failed")
    monkeypatch.undo()
    for id in range(9, 20):
        matcher.add(id, spec_of_x(1))
    assert sorted(matcher.match(EVENT)) == [*range(20)]
    assert matcher.state().base >= 10


def test_auto_is_access_until_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventhub.base.limits.INDEX_AUTO_MIN", 50)
    matcher = new_matcher("auto")
    assert isinstance(matcher, IndexMatcher)
    for id in range(49):
        matcher.add(id, spec_of_x(id % 5))
    assert matcher.state() == ("access", 0, 49, 0, "fewer than 50 registrations")
    matcher.add(49, spec_of_x(1))
    assert matcher.state()[1:4] == (50, 0, 0)
    assert len(matcher.match(EVENT)) == 31


def test_the_cost_of_matching_depends_on_touched_entries_only(tmp_path: Path) -> None:
    """The counters are equal for every engine, at any size of the index."""
    random = Random(5)
    specs = {id: Spec("d", "t", (("x", random.randrange(500)),)) for id in range(3_000)}
    specs |= {id: Spec("d", f"t{id}", (("x", 7),)) for id in range(3_000, 3_100)}
    build(
        tmp_path, (IndexEntry(id, (spec,)) for id, spec in specs.items()), EpochPlan(durable=False)
    )
    [shard] = open_base(tmp_path).shards
    for name in ENGINES:
        engine = new_engine(name, shard)
        engine.match(Event("d", "t", {"x": 7, "y": 8}))
        assert (engine.counters.touched, engine.counters.evaluated) == (1, 0), name


PLAIN = """
import sys
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.spec import Spec
from eventhub.event.envelope import Event
matcher = IndexMatcher(options=IndexOptions(first=2))
for id in range(5):
    matcher.add(id, Spec(pairs=(("x", id),)))
assert matcher.match(Event("", "", {"x": 3})) == [3]
assert not [name for name in sys.modules if name.split(".")[0] in ("django", "psycopg", "redis")]
"""


def test_an_index_works_without_the_hub() -> None:
    subprocess.run([sys.executable, "-c", PLAIN], check=True)


def test_the_example_of_the_document_runs() -> None:
    page = (HOME / "docs/match-index.md").read_text()
    [example] = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    names: dict[str, Any] = {}
    exec(example, names)
    assert sorted(names["found"]) == [7, 8]


def test_the_installation_reports_the_engine() -> None:
    command = [sys.executable, "-m", "registrations.match_index.engines.available"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (said.count("\n"), "compiled engine." in said) == (1, "compiled" in ENGINES)
