"""What temporal patterns forget at their limits, and how they say so."""

import time

import pytest

from eventhub.base import limits
from registrations.patterns.pattern_engine import Dropped, Match
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.entries import Entry
from registrations.temporal.joins import PatternJoins
from registrations.temporal.language import parse_temporal
from tests.unit.registrations.temporal.engines import (
    FREE,
    dropped,
    engine_of,
    fed,
    matches,
    numbered,
)
from tests.unit.registrations.temporal.rules import event, position


def test_partial_matches_are_bounded_and_the_pattern_forgets_the_older_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_PARTIAL_MATCHES_MAX", 100)
    engine = engine_of(FREE)
    reasons: set[str] = set()
    for n, one in enumerate(numbered(200), 1):
        outputs = engine.feed(position(n), event(one))
        reasons |= dropped(outputs).keys()
        network = engine._network
        assert network.joins[0].size <= 100
        assert outputs or n < 3, "the latest events match after all"
    assert reasons == {"partial_matches_max"}


def test_after_it_forgot_a_pattern_matches_as_with_a_smaller_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_PARTIAL_MATCHES_MAX", 60)
    engine = engine_of(FREE)
    kept = 0
    for n, one in enumerate(numbered(80), 1):
        outputs = engine.feed(position(n), event(one))
        if dropped(outputs):
            network = engine._network
            kept = network.index - network.joins[0].start  # with the latest one
        else:
            kept += 1
            others = [(a, b, n) for b in range(n - kept + 1, n) for a in range(n - kept + 1, b)]
            assert matches(outputs) == sorted(others)
    assert 5 < kept < 12


def test_examined_combinations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_PER_EVENT_MAX", 50)
    engine = engine_of("(event (n ?a)) (event (n ?b)) (test (< ?b ?a))")
    seen: dict[str, int] = {}
    before = 0
    for n, one in enumerate(numbered(500), 1):
        for reason, count in dropped(engine.feed(position(n), event(one))).items():
            seen[reason] = seen.get(reason, 0) + count
        examined, before = engine.counters.examined - before, engine.counters.examined
        assert examined <= 2 * 50
    assert seen.keys() == {"joins_max"}
    assert 400 < seen["joins_max"] < 500


def test_matches_of_one_event_are_bounded_and_the_most_recent_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_MATCHES_PER_EVENT_MAX", 3)
    engine = engine_of("(event (n ?a)) (event (n ?b)) (test (< ?a ?b))")
    fed(engine, numbered(10))
    outputs = engine.feed(position(11), event({"n": 99}))
    assert matches(outputs) == [(8, 11), (9, 11), (10, 11)]
    assert dropped(outputs) == {"matches_max": 7}


def test_remembered_events_of_all_patterns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_ENTRIES_MAX", 100)
    rare = "(event (rare ?a)) (event (rare ?b)) (test (< ?a ?b))"
    engine = engine_of("(event (n ?a)) (event (n ?b)) (test (= ?a (+ ?b 1)))", rare)
    forgot = 0
    for n, one in enumerate(numbered(300), 1):
        outputs = engine.feed(position(n), event({**one, **({"rare": n} if n == 1 else {})}))
        assert all(one.pattern == 0 for one in outputs)
        forgot += dropped(outputs).get("entries_max", 0)
        assert len(matches(outputs)) == (n > 1)
    assert forgot > 200
    network = engine._network
    assert network._entries == sum(len(one.memory.entries) for one in network.alphas.values())
    assert network._entries <= 100
    assert matches(engine.feed(position(301), event({"rare": 301}))) == [(1, 301)]


def test_partial_matches_of_all_patterns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_PARTIAL_MATCHES_SUM_MAX", 200)
    small = "(event (k ?a)) (event (k ?b)) (event (k ?c)) (test (< ?a ?b ?c))"
    engine = engine_of(f"(memory 40) {FREE}", f"(memory 50) {FREE}", small)
    fed(engine, [{"k": 1}, {"k": 2}])
    network = engine._network
    reasons: set[tuple[int, str]] = set()
    for n, one in enumerate(numbered(100), 3):
        outputs = engine.feed(position(n), event(one))
        reasons |= {(one.pattern, one.reason) for one in outputs if isinstance(one, Dropped)}
        assert sum(one.size for one in network.joins.values()) <= 200
    assert reasons == {(number, "partial_matches_sum_max") for number in (0, 1)}
    assert matches(engine.feed(position(103), event({"k": 3}))) == [(1, 2, 103)]


def test_a_long_text_is_no_value_of_a_variable() -> None:
    engine = engine_of("(event (a ?a))", "(event (where (exists a)))")
    outputs = engine.feed(position(1), event({"a": "x" * 1_025}))
    assert [one.pattern for one in outputs] == [0, 1]
    assert dropped(outputs) == {"value_chars_max": 1}
    assert matches(engine.feed(position(2), event({"a": "x" * 1_024}))) == [(2,), (2,)]


def test_the_worst_pattern_costs_a_bounded_time() -> None:
    """Eight events without a relation, each of which fits any event."""
    engine = engine_of("(memory 10000)" + "".join(f"(event (n ?n{i}))" for i in range(8)))
    worst = 0.0
    for n, one in enumerate(numbered(15), 1):
        began = time.process_time()
        outputs = engine.feed(position(n), event(one))
        worst = max(worst, time.process_time() - began)
        assert sum(isinstance(one, Match) for one in outputs) <= 1_000
    assert worst < 5.0


SUM = "(test (> ?t (+ ?a ?b ?c)))"
MANY = f"(event (t ?t)) (event (n ?a)) (event (n ?b)) (event (n ?c)) {SUM}"


def test_an_event_whose_joins_exceed_the_limit_again_and_again_takes_twice_as_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each time half of the events was forgotten, and as many pairs again were examined."""
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_PER_EVENT_MAX", 200)
    engine = engine_of(f"(memory 1000) {MANY}")
    fed(engine, numbered(400))
    before = engine.counters.examined
    outputs = engine.feed(position(401), event({"t": -1}))
    assert 200 < engine.counters.examined - before < 2 * 200 + 20
    assert dropped(outputs)["joins_max"] > 390


def test_long_joins_are_interrupted_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else ran in the process until the joins of an event were over."""
    engine, other = engine_of(MANY), engine_of(MANY)
    for one in (engine, other):
        fed(one, numbered(12))
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_AT_ONCE", 10)
    parts = [[*outputs] for outputs in engine.steps(position(13), event({"t": 12}))]
    assert len(parts) > 100 and parts[:-1] == [[]] * (len(parts) - 1)
    assert parts[-1] == other.feed(position(13), event({"t": 12}))
    assert len(matches(parts[-1])) > 100


LATE = "(memory 1000) (event (a ?a)) (event (b ?b)) (not (event (n ?n)) (test (< ?n ?a)))"


def test_the_search_for_an_excluded_event_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an equality it looked at all remembered events at once."""
    engine, other = engine_of(LATE), engine_of(LATE)
    for one in (engine, other):
        fed(one, [{"a": 0}, *numbered(300)])
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_AT_ONCE", 10)
    parts = [[*outputs] for outputs in engine.steps(position(302), event({"b": 1}))]
    assert len(parts) > 25 and parts[:-1] == [[]] * (len(parts) - 1)
    assert parts[-1] == other.feed(position(302), event({"b": 1}))
    assert matches(parts[-1]) == [(1, 302)]


def test_an_event_that_excludes_many_matches_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_of(LATE)
    fed(engine, [{"n": 1}, {"a": 5}, *({"b": 1} for _ in range(300))])
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_AT_ONCE", 10)
    parts = [[*outputs] for outputs in engine.steps(position(303), event({"n": 2}))]
    assert len(parts) > 25


def test_matches_that_are_not_reported_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new pattern that recognised 10,000 old events held millions of matches of them."""
    monkeypatch.setattr(limits, "TEMPORAL_MATCHES_PER_EVENT_MAX", 3)
    engine = TemporalEngine()
    old = [(position(n), event({"n": n})) for n in range(1, 31)]
    held: list[int] = []
    found = PatternJoins._find

    def noted(joins: PatternJoins, combination: tuple[Entry, ...]) -> None:
        found(joins, combination)
        held.append(len(joins._found))

    monkeypatch.setattr(PatternJoins, "_find", noted)
    pattern = parse_temporal("(event (n ?a)) (event (n ?b)) (test (< ?a ?b))")
    outputs = engine.add(1, pattern, recent=old)
    assert matches(outputs) == [(27, 30), (28, 29), (28, 30), (29, 30)][1:]
    assert dropped(outputs) == {"matches_max": 30 * 29 // 2 - 3}
    assert max(held) == 6


def test_old_events_that_a_new_pattern_recognises_take_a_bounded_number_of_joins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit was of each of 10,000 events."""
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_RECALLED_MAX", 1_000)
    engine = TemporalEngine()
    old = [(position(n), event({"n": n})) for n in range(1, 201)]
    pattern = parse_temporal("(event (n ?a)) (event (n ?b)) (test (= ?a (+ ?b 1)))")
    outputs = engine.add(1, pattern, recent=old)
    assert engine.counters.examined < 2_500
    assert dropped(outputs)["joins_max"] > 100
    assert len(matches(engine.feed(position(201), event({"n": 201})))) == 1
