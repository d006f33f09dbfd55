"""Engines of temporal patterns for tests, streams of events and what they match."""

from typing import Any

from registrations.patterns.pattern_engine import Dropped, Match, Output, PatternEngine
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.language import parse_temporal
from tests.unit.registrations.temporal.rules import event, position

SEED = """
(event (time ?t1) (userid ?u1))
(event (time ?t2) (userid ?u2))
(event (time ?t3) (userid ?u3))
(test (< ?t1 ?t2 ?t3))
(test (eq ?u1 ?u2 ?u3))
"""
OPEN = "(event (type 'order) (id ?o)) (event (type 'tick)) (not (event (type 'paid) (id ?o)))"
FREE = "(event (n ?a)) (event (n ?b)) (event (n ?c)) (test (< ?a ?b ?c))"
Fields = dict[str, Any]


def engine_of(*texts: str, once: bool = False) -> TemporalEngine:
    engine = TemporalEngine()
    for number, text in enumerate(texts):
        engine.add(number, parse_temporal(text), once=once)
    return engine


def matches(outputs: list[Output]) -> list[tuple[int, ...]]:
    """Return the numbers of the events of each match, in the order of the text."""
    found = [output for output in outputs if isinstance(output, Match)]
    return [
        tuple(one.bindings[f"${n + 1}"][0].sequence for n in range(len(one.bindings)))  # type: ignore[union-attr]
        for one in found
    ]


def fed(engine: PatternEngine, stream: list[Fields], first: int = 1) -> list[list[tuple[int, ...]]]:
    """Feed events, and return the matches at each."""
    return [
        matches(engine.feed(position(number), event(one)))
        for number, one in enumerate(stream, first)
    ]


def logins(*found: tuple[Any, str]) -> list[Fields]:
    return [{"time": at, "userid": user} for at, user in found]


def typed(*types: str) -> list[Fields]:
    return [{"type": one, "id": 1} for one in types]


def numbered(count: int) -> list[Fields]:
    return [{"n": n} for n in range(count)]


def dropped(outputs: list[Output]) -> dict[str, int]:
    return {one.reason: one.count for one in outputs if isinstance(one, Dropped)}
