"""The engine of a group: three languages over one index, and a state that loses nothing."""

import random

import pytest

from eventhub.event.envelope import Event
from registrations.agents.run import AgentOutput
from registrations.pattern_groups.consumed import ConsumedRun, ConsumedRuns
from registrations.pattern_groups.definition import parse_text
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.patterns.pattern_engine import Dropped, Ended, EventPosition, Match, Notify
from tests.unit.registrations.temporal import rules

READY = "{a: A}; {b: B} per $u"
TEMPORAL = (
    "(event (n ?t1) (u ?u) (where (= @type 'A))) (event (n ?t2) (u ?v)) (test (< ?t1 ?t2))"
    " (test (eq ?u ?v))"
)
AGENT = "(remember 'n (+ 1 (recall 'n 0))) (if (= 0 (mod (recall 'n) 3)) (notify) null)"


def position(order: int) -> EventPosition:
    return EventPosition(order, 1, "segment", order, order * 1_000)


def engine() -> HubEngine:
    found = HubEngine()
    for number, (language, text) in enumerate(
        (("ready", READY), ("temporal", TEMPORAL), ("agent", AGENT)), 1
    ):
        found.add(HubPattern(number, parse_text(language, text)))
    return found


def stream(count: int) -> list[Event]:
    dice = random.Random(7)
    return [Event("d", dice.choice("AB"), {"n": n, "u": dice.randrange(3)}) for n in range(count)]


def fed(found: HubEngine, events: list[Event], first: int = 1) -> list[AgentOutput]:
    return [
        output
        for order, event in enumerate(events, first)
        for output in found.feed(position(order), event)
    ]


def test_outputs_of_an_event_come_language_by_language() -> None:
    outputs = fed(engine(), stream(60))
    by_event: dict[int, list[int]] = {}
    for output in outputs:
        by_event.setdefault(output.position.order, []).append(output.pattern)
    assert all(numbers == sorted(numbers) for numbers in by_event.values())
    assert {output.pattern for output in outputs} == {1, 2, 3}
    assert sum(isinstance(output, Notify) and output.pattern == 3 for output in outputs) == 20


@pytest.mark.parametrize("cut", [0, 1, 17, 59])
def test_a_restored_engine_goes_on_as_if_nothing_had_happened(cut: int) -> None:
    events, whole = stream(60), engine()
    before = fed(whole, events[:cut])
    state = whole.state()
    restored = engine()
    restored.restore(state)
    after = fed(restored, events[cut:], cut + 1)
    assert [*before, *after] == fed(engine(), events)
    assert restored.consumed.saved() == (60, [ConsumedRun(1, "segment", 1, 60)])


@pytest.mark.req("OIF-29")
def test_temporal_patterns_match_as_an_enumeration_does_on_200_random_streams() -> None:
    """In the engine of a group, beside other languages, and restored in the middle."""
    matching = 0
    for seed in range(200):
        dice = random.Random(seed)
        written = [rules.random_rule(dice) for _ in range(2)]
        given = rules.random_stream(dice, dice.randint(3, 14))
        restart = dice.randrange(len(given))
        expected = [rules.Enumeration(rule) for rule in written]
        found = beside(written)
        count = 0
        for number, attributes in enumerate(given, 1):
            if number == restart:
                state = found.state()
                found = beside(written)
                found.restore(state)
            outputs = found.feed(rules.position(number), rules.event(attributes))
            matches = [
                (one.pattern, tuple(bound[0].sequence for _, bound in sorted(one.bindings.items())))
                for one in outputs
                if isinstance(one, Match) and one.pattern >= 10
            ]
            enumerated = [
                (pattern, numbers)
                for pattern, one in enumerate(expected, 10)
                for numbers in one.feed(number, attributes)
            ]
            assert matches == enumerated, (seed, number, [one.text() for one in written])
            count += len(matches)
        matching += count > 0
    assert matching >= 80


def beside(written: list[rules.Rule]) -> HubEngine:
    """Return an engine with temporal patterns, from 10 on, beside those of all languages."""
    found = engine()
    for number, rule in enumerate(written, 10):
        found.add(HubPattern(number, parse_text("temporal", rule.text())))
    return found


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown format"):
        engine().restore(b"\x09")
    with pytest.raises(ValueError, match="cannot be read"):
        engine().restore(b"\x01junk")


def test_a_removed_pattern_is_silent_and_leaves_no_filter() -> None:
    found = engine()
    for number in (1, 2, 3):
        found.remove(number)
    assert (fed(found, stream(20)), len(found.leaves), found.patterns) == ([], 0, {})


def test_a_pattern_that_recalls_finds_matches_of_earlier_events() -> None:
    found, events = HubEngine(), stream(20)
    fed(found, events)
    recent = [(position(order), event) for order, event in enumerate(events, 1)]
    pattern = HubPattern(5, parse_text("temporal", TEMPORAL), recent=True)
    matches = found.add(pattern, recent[-pattern.recalled :])
    twin = HubEngine()
    twin.add(HubPattern(5, parse_text("temporal", TEMPORAL)))
    expected = [one.bindings for one in fed(twin, events) if isinstance(one, Match)]
    found_now = [one.bindings for one in matches if isinstance(one, Match)]
    assert sorted(map(repr, found_now)) == sorted(map(repr, expected))
    assert expected


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        ("{a: A}", True),
        ("{v[2..2]: A} do assign s = S{n = count(v)}", True),
        ("{a: A} do notify(a)", False),
        ("({a: A} do increment n); {b: B}", False),
    ],
)
def test_a_pattern_with_actions_says_itself_what_happens(text: str, reports: bool) -> None:
    assert HubPattern(1, parse_text("ready", text)).reports_matches is reports


def test_the_consumed_events_are_runs_of_the_last_ones() -> None:
    consumed = ConsumedRuns(5)
    order = 0
    for stream_id, segment, sequences in (
        (1, "a", range(1, 9)),
        (2, "b", range(1, 3)),
        (1, "a", (9, 11)),
        (1, "c", (12,)),
    ):
        for sequence in sequences:
            order += 1
            consumed.add(EventPosition(order, stream_id, segment, sequence, order))
    expected = [
        ConsumedRun(2, "b", 1, 2),
        ConsumedRun(1, "a", 9, 9),
        ConsumedRun(1, "a", 11, 11),
        ConsumedRun(1, "c", 12, 12),
    ]
    assert consumed.last(5) == expected
    assert consumed.last(4) == [ConsumedRun(2, "b", 2, 2), *expected[1:]]
    assert (consumed.order, consumed.first_of(2), consumed.first_of(3)) == (13, 1, None)


@pytest.mark.parametrize(
    ("language", "text"), [("ready", "{a: A}"), ("temporal", "(event (n ?n))")]
)
def test_a_pattern_that_matches_once_ends(language: str, text: str) -> None:
    found = HubEngine()
    found.add(HubPattern(1, parse_text(language, text), once=True))
    outputs = fed(found, [Event("d", "A", {"n": n}) for n in range(3)])
    matches = [one for one in outputs if isinstance(one, Match)]
    assert [one.position.order for one in matches] == [1]
    assert Ended(1, position(1)) in outputs


def test_half_of_what_a_group_holds_is_discarded_and_reported() -> None:
    """The memory of a process is shared by groups, each of which may be within its own limit."""
    found = HubEngine()
    for number, (language, text) in enumerate((("ready", READY), ("temporal", TEMPORAL)), 1):
        found.add(HubPattern(number, parse_text(language, text)))
    events = [Event("d", "A", {"n": n, "u": n}) for n in range(100)]
    fed(found, events)
    before = found.memory_bytes
    outputs = found.shed_half(position(100), events[-1])
    assert 0.3 * before < found.memory_bytes < 0.7 * before
    assert {output.pattern for output in outputs} == {1, 2}
    for output in outputs:
        assert isinstance(output, Dropped)
        assert output.reason == "process_bytes_max"
    again = HubEngine()
    for one in found.patterns.values():
        again.add(one)
    again.restore(found.state())
    completing = [Event("d", "B", {"n": 1_000 + n, "u": n}) for n in range(100)]
    matches = fed(found, completing, 101)
    assert matches == fed(again, completing, 101)
    keys = {output.key for output in matches if isinstance(output, Match) and output.pattern == 1}
    assert keys == set(range(50, 100))  # those without an event for longest were discarded
