"""The network against enumeration, on random patterns and streams (OIF-29)."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registrations.patterns.pattern_engine import Match, Output
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.language import parse_temporal
from tests.unit.registrations.temporal.rules import (
    Enumeration,
    Rule,
    event,
    position,
    random_rule,
    random_stream,
)

STREAMS = 220
MATCHED_SHARE_MIN = 0.1  # of unseeded streams; a comparison of nothing proves nothing
Found = dict[int, list[tuple[int, ...]]]


def found_in(outputs: list[Output]) -> Found:
    """Return the matches of each pattern, as numbers of their events in the order of the text."""
    found: Found = {}
    for output in outputs:
        assert isinstance(output, Match), output
        names = [f"${number}" for number in range(1, len(output.bindings) + 1)]
        bound = [output.bindings[name] for name in names]
        numbers = tuple(one.sequence for (one,) in bound)  # type: ignore[union-attr]
        found.setdefault(output.pattern, []).append(numbers)
    return found


class World:
    """Patterns that are added while events come, in an engine and by enumeration."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.engine = TemporalEngine()
        self.enumerations: dict[int, Enumeration] = {}
        self.past: list[dict[str, Any]] = []

    def add(self, number: int, *, recalls: bool) -> None:
        rule = self.rules[number]
        enumeration = self.enumerations[number] = Enumeration(rule)
        recent = []
        if recalls:
            numbered = list(enumerate(self.past, 1))[-rule.memory :]
            enumeration.window = numbered
            recent = [(position(sequence), event(one)) for sequence, one in numbered]
        outputs = self.engine.add(number, parse_temporal(rule.text()), recent=recent)
        expected = enumeration.new() if recalls else []
        assert found_in(outputs) == ({number: expected} if expected else {}), rule.text()

    def feed(self, attributes: dict[str, Any]) -> int:
        """Feed both one event; return the number of matches."""
        self.past.append(attributes)
        sequence = len(self.past)
        found = found_in(self.engine.feed(position(sequence), event(attributes)))
        expected = {
            number: matches
            for number, one in self.enumerations.items()
            if (matches := one.feed(sequence, attributes))
        }
        texts = "\n\n".join(one.rule.text() for one in self.enumerations.values())
        assert found == expected, f"{texts}\n{self.past}"
        return sum(map(len, found.values()))

    def restart(self) -> None:
        """Continue with a new engine and the state of the old one."""
        state = self.engine.state()
        self.engine = TemporalEngine()
        for number in self.enumerations:
            self.engine.add(number, parse_temporal(self.rules[number].text()))
        self.engine.restore(state)
        assert self.engine.state() == state


def run(seed: int) -> tuple[int, int, int]:
    """Run one world; return its matches, and the examined combinations of engine and
    enumeration.
    """
    random = Random(seed)
    world = World([random_rule(random, 4) for _ in range(3)])
    world.add(0, recalls=False)
    stream = random_stream(random, random.randint(3, 14))
    added = {1: random.randrange(len(stream)), 2: random.randrange(len(stream))}
    restarts = {random.randrange(len(stream)) for _ in range(2)}
    matches = examined = 0
    for number, attributes in enumerate(stream):
        for one, at in added.items():
            if at == number:
                world.add(one, recalls=random.random() < 0.5)
        if number in restarts:
            examined += world.engine.counters.examined
            world.restart()
        matches += world.feed(attributes)
    examined += world.engine.counters.examined
    return matches, examined, sum(one.examined for one in world.enumerations.values())


@pytest.mark.req("OIF-20")
@pytest.mark.req("OIF-29")
def test_random_streams_have_the_matches_of_enumeration_for_less_work() -> None:
    results = [run(seed) for seed in range(STREAMS)]
    matching = sum(1 for matches, _, _ in results if matches)
    assert matching >= STREAMS // 2
    joined = sum(examined for _, examined, _ in results)
    enumerated = sum(all_of_them for _, _, all_of_them in results)
    assert joined < enumerated / 5, f"{joined} of {enumerated}"


def test_any_stream_has_the_matches_of_enumeration() -> None:
    found: list[int] = []

    @settings(max_examples=30, deadline=None)
    @given(st.integers(STREAMS, 2**48))
    def agree(seed: int) -> None:
        found.append(run(seed)[0])

    agree()
    assert sum(matches > 0 for matches in found) / len(found) >= MATCHED_SHARE_MIN
