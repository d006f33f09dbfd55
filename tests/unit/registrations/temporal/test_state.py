"""The state of temporal patterns is saved, restored, compact, and refused if it is another's."""

import pytest

from eventhub.base import limits
from registrations.patterns.pattern_engine import EventPosition, Match
from registrations.temporal.engine import TemporalEngine
from tests.unit.registrations.temporal.engines import FREE, SEED, engine_of, fed, logins, numbered
from tests.unit.registrations.temporal.rules import event, position


def test_a_restored_engine_continues_as_the_other_under_all_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_PARTIAL_MATCHES_MAX", 50)
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_PER_EVENT_MAX", 60)
    monkeypatch.setattr(limits, "TEMPORAL_MATCHES_PER_EVENT_MAX", 5)
    monkeypatch.setattr(limits, "TEMPORAL_ENTRIES_MAX", 90)
    texts = (FREE, f"(memory 9) {FREE} (not (event (n ?x) (k 1)) (test (< ?a ?x ?c)))", SEED)
    engine = engine_of(*texts)
    other = engine_of(*texts)
    for n in range(1, 200):
        one = {"n": n * 7 % 23, "k": n % 5, "time": n % 17, "userid": n % 3}
        if n % 10 == 0:
            other = engine_of(*texts)
            other.restore(engine.state())
        assert other.feed(position(n), event(one)) == engine.feed(position(n), event(one))
    assert other.state() == engine.state()


def test_the_state_has_the_values_of_fields_only() -> None:
    engine = engine_of(*(f"(memory {n + 100}) {SEED}" for n in range(50)))
    emitted = logins(*((n, f"u{n % 40}") for n in range(149)))
    stream = [{**one, "note": "x" * 1_000} for one in emitted]
    fed(engine, stream)
    size = len(engine.state())
    assert 149 * 20 < size < 149 * 60


def test_a_pattern_with_another_text_starts_again_and_an_unknown_format_is_an_error() -> None:
    engine = engine_of("(event (n ?a)) (event (n ?b)) (test (< ?a ?b))", "(event (n ?a))")
    fed(engine, numbered(3))
    other = engine_of("(event (n ?a)) (event (n ?b)) (test (> ?a ?b))", "(event (n ?a))")
    other.restore(engine.state())
    assert fed(other, [{"n": -5}, {"n": -6}], 4) == [[(4,)], [(4, 5), (5,)]]
    with pytest.raises(ValueError, match="unknown format"):
        other.restore(b"\x00" + engine.state()[1:])
    fresh = engine_of("(event (n ?a))")
    fresh.restore(TemporalEngine().state())
    assert fed(fresh, [{"n": 1}]) == [[(1,)]]


def test_positions_may_be_of_any_segment() -> None:
    engine = engine_of("(event (n ?a)) (event (n ?b)) (test (< ?a ?b))")
    first, second = EventPosition(5, 1, "one", 7, 1), EventPosition(9, 1, "two", 1, 2)
    engine.feed(first, event({"n": 1}))
    other = engine_of("(event (n ?a)) (event (n ?b)) (test (< ?a ?b))")
    other.restore(engine.state())
    (found,) = other.feed(second, event({"n": 2}))
    assert isinstance(found, Match)
    assert found.bindings == {"$1": (first,), "$2": (second,)}
