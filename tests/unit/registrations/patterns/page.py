"""The notations of docs/patterns.md: time lines, rows of events and rows of matches."""

import json
import re
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.parser import parse_pattern
from registrations.patterns.pattern_engine import EventPosition, Match, Output
from tests.tidy.source import HOME
from tests.unit.registrations.patterns.programs import SECOND, SEGMENT

PAGE = (HOME / "docs" / "patterns.md").read_text()
_EVENT = re.compile(r"(?:(\w+)::)?(\w+)(?:\(([^)]*)\))?")
_MATCH = re.compile(r"(\d+):((?: \w+=[\d,]*)+)")


class PageMatch(NamedTuple):
    """A match: the number of the event that completes it, and of those that it binds."""

    end: int
    bound: dict[str, list[int]]


def event_of(text: str) -> Event:
    """Return the event that a word such as `Time::Tick(handle="h")` names."""
    found = _EVENT.fullmatch(text)
    assert found, text
    pairs = (pair.split("=") for pair in (found[3] or "").split(",") if pair)
    return Event(found[1] or "test", found[2], {name: json.loads(value) for name, value in pairs})


def events_of(text: str) -> list[tuple[int, Event]]:
    """Return the events of a row with their times in seconds."""
    time, found = 100, []
    for word in text.split():
        if word.startswith("+"):
            time += int(word[1:-1])
        else:
            found.append((time, event_of(word)))
    return found


def fed(pattern: str, events: list[tuple[int, Event]]) -> list[Output]:
    """Return the outputs of a pattern for events."""
    engine = ReadyEngine()
    engine.add(1, parse_pattern(pattern))
    outputs: list[Output] = []
    for order, (time, event) in enumerate(events, 1):
        outputs += engine.feed(EventPosition(order, 1, SEGMENT, order, time * SECOND), event)
    return outputs


def matches_of(outputs: list[Output]) -> list[PageMatch]:
    """Return the matches among outputs."""
    return [
        PageMatch(
            one.position.order, {name: _orders(value) for name, value in one.bindings.items()}
        )
        for one in outputs
        if isinstance(one, Match)
    ]


def expected_of(text: str) -> list[PageMatch]:
    """Return the matches of a row: `3: a=2 v=1,3; 5: a=4 v=`."""
    if text.startswith("none"):
        return []
    found = []
    for part in text.split("; "):
        match = _MATCH.fullmatch(part)
        assert match, part
        pairs = (pair.split("=") for pair in match[2].split())
        found.append(PageMatch(int(match[1]), {name: _numbers(value) for name, value in pairs}))
    return found


def rows() -> list[tuple[str, str, str]]:
    """Return the table: pattern, events, matches."""
    found = re.findall(r"^\| `(.+?)` \| `(.+?)` \| ((?:none|\d+:).*?) \|$", PAGE, re.M)
    return [(pattern.replace("\\|", "|"), events, matches) for pattern, events, matches in found]


def blocks(kind: str) -> list[str]:
    """Return the code blocks of a kind."""
    return [text.strip("\n") for text in re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S)]


def timeline(block: str) -> tuple[str, list[tuple[int, Event]], list[list[str]]]:
    """Return a time line: its pattern, its events, and what is below each of them."""
    pattern, above, below = [*block.split("\n"), ""][:3]
    columns = [match.start() for match in re.finditer(r"\S+", above)]
    ends = [*columns[1:], max(len(above), len(below))]
    marks = [below[start:end].split() for start, end in zip(columns, ends, strict=True)]
    return pattern, events_of(above), marks


def drawn(matches: list[PageMatch], count: int) -> list[list[str]]:
    """Return what a time line has below each of its events."""
    found: list[list[str]] = [[] for _ in range(count)]
    for match in matches:
        for name, orders in match.bound.items():
            for order in orders:
                found[order - 1].append(f"{name}*" if order == match.end else name)
    return found


def _orders(value: Any) -> list[int]:
    return [one.order for one in value]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]
