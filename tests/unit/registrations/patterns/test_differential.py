"""The engine returns what docs/patterns.md says: it is compared with an oracle that lists all
possible matches, on random patterns and events, also when its state is saved in between.
"""

import pytest
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from eventhub.base.errors import EventHubError
from registrations.patterns.ast import Pattern
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.parser import parse_pattern
from registrations.patterns.pattern_engine import Match
from registrations.patterns.printed import print_pattern
from tests.unit.registrations.patterns.oracle import Oracle
from tests.unit.registrations.patterns.programs import (
    SECOND,
    Timed,
    events,
    outputs_of,
    patterns,
    position_of,
)

DAY_US = 24 * 3600 * SECOND
MATCHED_SHARE_MIN = 0.2  # of the cases; a comparison of nothing proves nothing


def parsed(text: str) -> Pattern:
    try:
        return parse_pattern(text)
    except EventHubError:
        assume(False)
        raise


def engine_of(pattern: Pattern) -> ReadyEngine:
    return engine_of_all({1: pattern})


def compare(text: str, given: list[Timed], saved_at: int) -> int:
    """Compare the outputs; return how many matches there are."""
    pattern = parsed(text)
    assert parse_pattern(print_pattern(pattern)) == pattern
    oracle = Oracle(pattern, pattern.within_us or DAY_US, pattern.last or 100)
    engine = engine_of(pattern)
    matches = 0
    for order, timed in enumerate(given, 1):
        if order == saved_at:
            state = engine.state()
            engine = engine_of(pattern)
            engine.restore(state)
        expected = oracle.feed(order, timed.time * SECOND, timed.event)
        assert outputs_of(engine, order, timed) == expected, (print_pattern(pattern), order)
        matches += sum(one[0] == "match" for one in expected)
    return matches


def run(examples: int, number: int) -> list[int]:
    """Compare random cases; return the matches of each."""
    counts: list[int] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(text=patterns(), given=events(), saved_at=st.integers(1, 16))
    def agree(text: str, given: list[Timed], saved_at: int) -> None:
        counts.append(compare(text, given, saved_at))

    agree()
    return counts


@pytest.mark.parametrize("number", [1, 2])
def test_engine_agrees_with_the_oracle(number: int) -> None:
    counts = run(200, number)
    matched = sum(count > 0 for count in counts)
    assert matched / len(counts) >= MATCHED_SHARE_MIN, (matched, len(counts))


@pytest.mark.slow
def test_engine_agrees_with_the_oracle_on_many_cases() -> None:
    counts = run(300, 10)
    assert sum(count > 0 for count in counts) / len(counts) >= MATCHED_SHARE_MIN


def test_restoring_a_state_gives_the_same_state() -> None:
    pattern = parse_pattern("({a: A} && {v[1..3]: B}); {c: C} per $u within 5s last 9")

    @settings(max_examples=50, deadline=None, database=None)
    @given(given=events())
    def same(given: list[Timed]) -> None:
        engine = engine_of(pattern)
        for order, timed in enumerate(given, 1):
            engine.feed(position_of(order, timed), timed.event)
        other = engine_of(pattern)
        other.restore(engine.state())
        assert other.state() == engine.state()
        assert other.memory_bytes == engine.memory_bytes

    same()


def test_many_patterns_in_one_engine_have_the_outputs_of_each_alone() -> None:
    """They share filters and lists of what has begun; a state is saved and restored in between."""
    matched: list[bool] = []

    @settings(max_examples=40, deadline=None, database=None)
    @given(
        texts=st.lists(patterns(), min_size=2, max_size=8),
        given=events(),
        saved_at=st.integers(1, 16),
    )
    def agree(texts: list[str], given: list[Timed], saved_at: int) -> None:
        parsed_ones = dict(enumerate(map(parsed, texts), 1))
        together = engine_of_all(parsed_ones)
        alone = {number: engine_of_all({number: one}) for number, one in parsed_ones.items()}
        matched.append(False)
        for order, timed in enumerate(given, 1):
            if order == saved_at:
                state = together.state()
                together = engine_of_all(parsed_ones)
                together.restore(state)
            position = position_of(order, timed)
            each = [output for one in alone.values() for output in one.feed(position, timed.event)]
            assert together.feed(position, timed.event) == each, texts
            matched[-1] |= any(isinstance(output, Match) for output in each)

    agree()
    assert sum(matched) / len(matched) >= MATCHED_SHARE_MIN


def engine_of_all(parsed_ones: dict[int, Pattern]) -> ReadyEngine:
    engine = ReadyEngine()
    for number, pattern in parsed_ones.items():
        engine.add(number, pattern)
    return engine
