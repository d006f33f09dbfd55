"""A stream of events for one engine, with a clock in seconds."""

from typing import Any

from eventhub.event.envelope import Event
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.parser import parse_pattern
from registrations.patterns.pattern_engine import Dropped, EventPosition, Match, Output
from tests.unit.registrations.patterns.programs import SECOND, SEGMENT


class Stream:
    """An engine and the events that it is fed, one after the other."""

    def __init__(self, *patterns: str, engine: ReadyEngine | None = None) -> None:
        self.engine = ReadyEngine() if engine is None else engine
        self.order = 0
        self.time = 1_000
        for number, text in enumerate(patterns, 1):
            self.engine.add(number, parse_pattern(text))

    def emit(self, type: str, *, after: int = 0, **attributes: Any) -> list[Output]:
        """Feed one event, some seconds after the last; return the outputs."""
        self.order += 1
        self.time += after
        position = EventPosition(self.order, 1, SEGMENT, self.order, self.time * SECOND)
        return self.engine.feed(position, Event("test", type, attributes))

    def emit_all(self, types: str) -> list[Output]:
        """Feed an event of each type; return all outputs."""
        return [output for type in types for output in self.emit(type)]


def ends(outputs: list[Output]) -> list[int]:
    """Return the orders of the events with which patterns matched."""
    return [one.position.order for one in outputs if isinstance(one, Match)]


def bound(outputs: list[Output]) -> list[dict[str, list[int]]]:
    """Return what matches bind, as orders."""
    return [
        {name: [one.order for one in value] for name, value in found.bindings.items()}
        for found in outputs
        if isinstance(found, Match)
    ]


def dropped(outputs: list[Output]) -> list[tuple[str, int]]:
    """Return what was discarded: reasons and counts."""
    return [(one.reason, one.count) for one in outputs if isinstance(one, Dropped)]
