"""The engine of temporal patterns: OIF's examples, what patterns share, what is shown of partial
matches.
"""

import time

import pytest

from eventhub.base import limits
from registrations.patterns.pattern_engine import Ended, Match
from registrations.temporal.language import parse_temporal
from tests.unit.registrations.temporal.engines import (
    OPEN,
    SEED,
    engine_of,
    fed,
    logins,
    matches,
    typed,
)
from tests.unit.registrations.temporal.rules import Enumeration, Rule, RuleEvent, event, position

# --- OIF's rows ---


# OIF-21
def test_three_events_of_one_user_in_the_order_of_their_times_match_once() -> None:
    stream = logins((1, "u"), (2, "v"), (3, "u"), (4, "u"))
    assert fed(engine_of(SEED), stream) == [[], [], [], [(1, 3, 4)]]


# OIF-21
def test_the_time_is_compared_not_the_order_of_arrival() -> None:
    assert fed(engine_of(SEED), logins((3, "u"), (1, "u"), (4, "u"))) == [[], [], [(2, 1, 3)]]


# OIF-21
def test_times_of_day_are_compared_as_times() -> None:
    stream = logins(("9:59:59", "u"), ("10:00:00", "u"), ("12:40:18", "u"))
    assert fed(engine_of(SEED), stream) == [[], [], [(1, 2, 3)]]
    texts = logins(("2", "u"), ("10", "u"), ("100", "u"))
    assert fed(engine_of(SEED), texts) == [[], [], [(1, 2, 3)]]
    both = logins((1, "u"), ("9:59:59", "u"), ("10:00:00", "u"))
    assert fed(engine_of(SEED), both) == [[]] * 3


@pytest.mark.parametrize("op", ["=", "!="])
def test_a_calculation_with_a_value_that_is_no_quantity_holds_for_nothing(op: str) -> None:
    engine = engine_of(f"(event (n ?a)) (event (n ?b)) (test ({op} ?a (+ ?b 1)))")
    assert fed(engine, [{"n": None}, {"n": True}]) == [[], []]


# OIF-20
def test_one_event_is_not_used_twice_because_its_time_is_not_before_itself() -> None:
    assert fed(engine_of(SEED), logins((1, "u"), (1, "u"), (2, "u"), (2, "u"))) == [[]] * 4
    free = "(event (userid ?u)) (event (userid ?u))"
    assert fed(engine_of(free), logins((1, "u"))) == [[(1, 1)]]
    apart = "(event (userid ?u) (@sequence ?a)) (event (userid ?u) (@sequence ?b)) (test (< ?a ?b))"
    assert fed(engine_of(apart), logins((1, "u"), (1, "v"), (1, "u"))) == [[], [], [(1, 3)]]


# OIF-20
def test_a_variable_in_several_events_has_one_value() -> None:
    text = "(event (type 'a) (user ?u)) (event (type 'b) (user ?u))"
    stream = [{"type": t, "user": u} for t, u in ("ap", "bq", "aq", "bp")]
    assert fed(engine_of(text), stream) == [[], [], [(3, 2)], [(1, 4)]]


# OIF-22
def test_only_the_most_recent_events_match() -> None:
    stream = logins((1, "u"), (2, "v"), (3, "u"), (4, "u"))
    assert fed(engine_of(f"(memory 3) {SEED}"), stream) == [[]] * 4
    assert fed(engine_of(f"(memory 4) {SEED}"), stream)[-1] == [(1, 3, 4)]


# OIF-22
def test_a_new_pattern_recalls_old_events_if_asked_to() -> None:
    stream = logins((1, "u"), (2, "v"), (3, "u"), (4, "u"))
    recent = [(position(n), event(one)) for n, one in enumerate(stream, 1)]
    pattern = parse_temporal(f"(memory 10) {SEED}")
    engine = engine_of("(event (x ?x))")
    fed(engine, stream)
    outputs = engine.add(7, pattern, recent=recent)
    assert matches(outputs) == [(1, 3, 4)]
    assert isinstance(outputs[0], Match) and outputs[0].position == position(4)
    assert engine.add(8, pattern) == []
    outputs = engine.feed(position(5), event({"time": 5, "userid": "u"}))
    assert {one.pattern for one in outputs} == {7}
    assert matches(outputs) == [(1, 3, 5), (1, 4, 5), (3, 4, 5)]
    with pytest.raises(ValueError, match="do not end with the latest"):
        engine.add(9, pattern, recent=recent)


# --- not ---


def test_an_excluded_event_prevents_a_match_until_it_is_forgotten() -> None:
    assert fed(engine_of(OPEN), typed("order", "tick")) == [[], [(1, 2)]]
    assert fed(engine_of(OPEN), typed("order", "paid", "tick", "tick")) == [[]] * 4
    forgets = engine_of(f"(memory 3) {OPEN}")
    assert fed(forgets, typed("paid", "order", "tick", "x")) == [[], [], [], [(2, 3)]]


def test_an_event_that_excludes_and_one_that_is_forgotten_come_together() -> None:
    engine = engine_of(f"(memory 3) {OPEN}")
    assert fed(engine, typed("paid", "order", "tick", "paid", "x", "x", "x")) == [[]] * 7
    assert engine.partial_matches(0) == []


def test_a_match_is_not_taken_back() -> None:
    assert fed(engine_of(OPEN), typed("order", "tick", "paid", "x")) == [[], [(1, 2)], [], []]


# --- what patterns share, and what an event costs ---


# OIF-29
def test_patterns_with_the_same_event_share_its_memory() -> None:
    engine = engine_of(*(f"(memory {5 + n}) {SEED}" for n in range(20)))
    network = engine._network
    (alpha,) = network.alphas.values()
    assert len(alpha.users) == 20
    fed(engine, logins(*((n, "u") for n in range(100))))
    assert len(alpha.memory.entries) == 24
    for number in range(20):
        engine.remove(number)
    assert not network.alphas


def test_an_event_is_joined_with_those_of_its_user_only() -> None:
    engine = engine_of(SEED)
    fed(engine, logins(*((n, f"u{n % 500}") for n in range(1_000))))
    assert engine.counters.examined < 1_000 * 12


def test_a_pattern_of_two_events_stores_no_combinations() -> None:
    engine = engine_of("(event (a ?a) (u ?u)) (event (b ?b) (u ?u)) (test (< ?a ?b))")
    fed(engine, [{"a": n, "b": n, "u": n % 50} for n in range(1_000)])
    assert engine.counters.found > 1_000
    assert engine.counters.stored == 0


def test_values_with_equal_hashes_cost_no_more_than_others() -> None:
    """Python's hash of x and of x * 2**61 is the same, so pairs of such numbers all collide."""
    scales = [float(2 ** (61 * n)) for n in range(15)]
    stream = [{"a": a, "b": b, "c": c} for a in scales for b in scales for c in scales]
    text = "(memory 10000) (event (a ?a) (b ?b) (c ?c)) (event (a ?a) (b ?b) (c ?c) (x ?x))"
    took: list[float] = []
    for same_hash in (True, False):
        engine = engine_of(text)
        events = [
            one if same_hash else {"a": n, "b": n / 7, "c": n / 11} for n, one in enumerate(stream)
        ]
        began = time.process_time()
        assert fed(engine, events) == [[]] * len(stream)
        took.append(time.process_time() - began)
    assert took[0] < 5 * took[1]


# --- once ---


def test_a_pattern_once_ends_with_its_first_match() -> None:
    engine = engine_of("(event (a ?a)) (event (a ?b)) (test (< ?a ?b))", once=True)
    stream = [{"a": n} for n in (2, 1, 3, 4)]
    outputs = [engine.feed(position(n), event(one)) for n, one in enumerate(stream, 1)]
    assert [len(one) for one in outputs] == [0, 2, 0, 0]
    assert matches(outputs[1]) == [(2, 1)]
    assert outputs[1][1] == Ended(0, position(2))
    waiting = engine.waiting(0)
    assert waiting is not None and waiting.status == "matched"
    restored = engine_of("(event (a ?a)) (event (a ?b)) (test (< ?a ?b))", once=True)
    restored.restore(engine.state())
    assert restored.feed(position(5), event({"a": 9})) == []


# --- partial matches ---


# RDY-46
def test_partial_matches_say_what_is_bound_and_what_they_wait_for() -> None:
    engine = engine_of(f"(memory 10) {SEED}")
    fed(engine, logins((1, "u"), (2, "u")))
    both, second, first = engine.partial_matches(0)
    assert both.bound == {"$1": position(1), "$2": position(2)}
    assert both.values == {"t1": 1, "u1": "u", "t2": 2, "u2": "u"}
    assert both.waits_for == "(event (time ?t3) (userid ?u3))"
    assert (both.expires_in, second.expires_in, first.expires_in) == (9, 10, 9)
    assert first.waits_for == "(event (time ?t2) (userid ?u2))"
    waiting = engine.waiting(0)
    assert waiting is not None
    assert [len(one.bound) for one in waiting.children] == [2, 1, 1]
    assert engine.waiting(5) is None
    assert engine.partial_matches(5) == []


def test_a_match_that_waits_for_an_excluded_event_to_be_forgotten_says_so() -> None:
    engine = engine_of(f"(memory 5) {OPEN}")
    fed(engine, typed("paid", "order", "tick"))
    blocked = engine.partial_matches(0)[0]
    assert blocked.bound == {"$1": position(2), "$2": position(3)}
    assert blocked.waits_for == '(not (event (id ?o) (where (= type "paid"))))'
    assert blocked.expires_in == 4


def test_what_is_shown_is_bounded() -> None:
    engine = engine_of(SEED)
    fed(engine, logins(*((n, "u") for n in range(150))))
    assert len(engine.partial_matches(0)) == limits.TEMPORAL_SHOWN_MAX


def test_the_enumeration_of_the_tests_knows_the_seeds_example() -> None:
    events = tuple(RuleEvent((("time", f"t{n}"), ("userid", f"u{n}"))) for n in (1, 2, 3))
    tests = (("<", "?t1", "?t2", "?t3"), ("eq", "?u1", "?u2", "?u3"))
    enumeration = Enumeration(Rule(10, events, tests, ()))
    stream = logins((1, "u"), (2, "v"), (3, "u"), (4, "u"))
    found = [enumeration.feed(number, one) for number, one in enumerate(stream, 1)]
    assert found == [[], [], [], [(1, 3, 4)]]
