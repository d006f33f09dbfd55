"""Nothing stays in an engine of patterns, keys and components that are gone."""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from registrations.patterns.parser import parse_pattern
from tests.unit.registrations.patterns.stream import Stream

WARMUP, ROUNDS = 400, 2_000  # the index merges for the first time in the warm-up
BYTES_MAX = 100  # a round, which the free lists of Python take; an entry that stays takes more


def removed(stream: Stream, number: int) -> None:
    text = f"{{a: A | $x > {number}}}; {{b: B}} per $u{number}"
    stream.engine.add(1, parse_pattern(text))
    stream.emit("A", **{f"u{number}": 1, "x": number + 1})
    stream.engine.remove(1)


def matched(stream: Stream, number: int) -> None:
    stream.emit("A", u=number)
    assert stream.emit("B", u=number)


def expired(stream: Stream, number: int) -> None:
    stream.emit("A", u=number, after=6)


def restored(stream: Stream, number: int) -> None:
    stream.emit("A", u=number, v=f"{number}")
    stream.engine.restore(EMPTY)


PATTERNS = ("{a: A}; {b: B} per $u within 5s", "{a: A}; {b: B} per $v within 5s")
EMPTY = Stream().engine.state()


@pytest.mark.parametrize("round", [removed, matched, expired, restored])
def test_nothing_stays_of_keys_and_components(round: Callable[[Stream, int], None]) -> None:
    stream = Stream(*PATTERNS)
    for number in range(WARMUP):
        round(stream, number)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(WARMUP, WARMUP + ROUNDS):
            round(stream, number)
        gc.collect()
        stayed, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert stayed / ROUNDS < BYTES_MAX
