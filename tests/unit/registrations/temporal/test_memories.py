"""What is remembered of the events of a pattern: shared with patterns that look back differently
far, recalled, excluded for a time, and in no combination twice.
"""

import pytest

from eventhub.base import limits
from registrations.temporal.language import parse_temporal
from registrations.temporal.network import RememberedEvent
from tests.unit.registrations.temporal.engines import (
    Fields,
    dropped,
    engine_of,
    fed,
    matches,
    numbered,
    typed,
)
from tests.unit.registrations.temporal.rules import event, position

PAIR = "(event (a ?a)) (event (b ?b))"
ASCENDING = "(event (n ?a)) (event (n ?b)) (test (< ?a ?b))"
UNPAID = "(event (type 'order) (id ?o)) (not (event (type 'paid) (id ?o)))"


def remembered(stream: list[Fields]) -> list[RememberedEvent]:
    return [(position(number), event(one)) for number, one in enumerate(stream, 1)]


@pytest.mark.parametrize("stream", [[{"a": 1}, {}, {"b": 1}], [{"b": 1}, {}, {"a": 1}]])
def test_a_pattern_does_not_match_what_only_another_one_remembers(stream: list[Fields]) -> None:
    engine = engine_of(f"(memory 2) {PAIR}", f"(memory 3) {PAIR}")
    *before, last = [engine.feed(position(n), event(one)) for n, one in enumerate(stream, 1)]
    assert before == [[], []]
    assert [one.pattern for one in last] == [1]


def test_a_pattern_recalls_no_more_than_it_remembers() -> None:
    stream = [{"n": "x" * (limits.TEMPORAL_VALUE_CHARS_MAX + 1)}, {"n": 1}, {"n": 2}]
    recent = remembered(stream)
    alone = engine_of("(event (x ?x))")
    fed(alone, stream)
    pattern = parse_temporal("(memory 2) (event (n ?n))")
    outputs = alone.add(1, pattern, recent=recent)
    assert matches(outputs) == [(2,), (3,)]
    assert dropped(outputs) == {}
    beside = engine_of("(memory 5) (event (n ?n))")
    fed(beside, numbered(3))
    outputs = beside.add(1, pattern, recent=remembered(numbered(3))[1:])
    assert matches(outputs) == [(2,), (3,)]


def test_a_recalled_event_that_another_pattern_remembers_is_there_once() -> None:
    engine = engine_of("(event (x ?x))")
    fed(engine, numbered(2))
    engine.add(1, parse_temporal(ASCENDING))
    fed(engine, numbered(4)[2:], first=3)
    recent = remembered(numbered(4))
    outputs = engine.add(2, parse_temporal(ASCENDING), recent=recent)
    assert matches(outputs) == [(a, b) for a in range(1, 5) for b in range(a + 1, 5)]


def test_recalled_events_match_as_if_they_came_together() -> None:
    engine = engine_of("(event (x ?x))")
    stream = typed("order", "paid")
    fed(engine, stream)
    assert engine.add(1, parse_temporal(UNPAID), recent=remembered(stream)) == []


def test_an_event_that_is_each_of_a_pattern_makes_each_combination_once() -> None:
    engine = engine_of("".join(f"(event (n ?n{number}))" for number in range(4)))
    assert fed(engine, numbered(1)) == [[(1, 1, 1, 1)]]
    assert engine.counters.stored == 2  # of its first two events, and of its first three


def test_of_two_excluded_events_the_later_one_counts() -> None:
    absent = "".join(f"(not (event (type '{type}) (id ?o)))" for type in ("paid", "void"))
    engine = engine_of(f"(memory 4) (event (type 'order) (id ?o)) {absent}")
    assert fed(engine, typed("paid", "void", "order", "x", "x", "x")) == [[]] * 5 + [[(3,)]]


def test_an_event_that_excludes_itself_is_not_stored() -> None:
    engine = engine_of("(event (type 'order) (id ?o)) (not (event (type 'order) (id ?o)))")
    assert fed(engine, typed("order")) == [[]]
    assert engine.partial_matches(0) == []


def test_what_is_forgotten_early_excludes_nothing_and_does_not_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The older half is forgotten, the payment with it, and so are the first two orders."""
    monkeypatch.setattr(limits, "TEMPORAL_PARTIAL_MATCHES_MAX", 4)
    engine = engine_of(f"(memory 100) {UNPAID}")
    assert fed(engine, typed("paid", *["order"] * 4)) == [[]] * 5
    outputs = engine.feed(position(6), event(*typed("order")))
    assert matches(outputs) == [(4,), (5,), (6,)]
    assert dropped(outputs) == {"partial_matches_max": 3}


def test_an_excluded_event_that_is_forgotten_during_the_search_excludes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is found first; the search of the second one takes more steps than the limit."""
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_PER_EVENT_MAX", 4)
    order = "(event (type 'order) (id ?o) (m ?m))"
    absent = "(not (event (type 'least) (id ?o) (n ?n)) (test (< ?n ?m)))"
    paid = "(not (event (type 'paid) (id ?o)))"
    engine = engine_of(f"(memory 100) {order} {paid} {absent}")
    others = [{"type": "least", "id": 1, "n": 1}] * 8
    assert fed(engine, [*typed("paid"), *others]) == [[]] * 9
    outputs = engine.feed(position(10), event({"type": "order", "id": 1, "m": 0}))
    assert matches(outputs) == [(10,)]
    assert dropped(outputs) == {"joins_max": 5}
