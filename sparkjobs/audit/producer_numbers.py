"""The numbers that producers gave their events, in one segment, as runs. Plain module.

A number counts within its client, incarnation and timestamp (FOX-07), which is what the hub looks
for repeats in. Producers may leave numbers out; none may be stored twice.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from eventhub.event.identity import stored_incarnation


class NumberedEvent(NamedTuple):
    """An event that has a producer's number."""

    number: int
    sequence: int
    appended_at_us: int


class NumberRange(NamedTuple):
    """Numbers without a hole, each once. A repeat within the segment is a run of its own."""

    client: str
    incarnation: int
    window: int  # what the hub calls client's incarnation and timestamp
    timed: bool  # the ids have timestamps, so windows are many and short
    low: int
    high: int
    first: int  # lowest and highest sequence, and time of append
    last: int
    from_us: int
    to_us: int


class ProducerNumbers:
    """Of one segment."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int], list[NumberedEvent]] = {}

    def add(self, made: Any, sequence: int, appended_at_us: int) -> None:
        """`made`: client, timestamp_us, sequence and incarnation of a producer's id."""
        key = made.client, made.incarnation, made.timestamp_us
        one = NumberedEvent(made.sequence, sequence, appended_at_us)
        self._found.setdefault(key, []).append(one)

    def runs(self) -> Iterator[NumberRange]:
        for (client, incarnation, timestamp_us), found in self._found.items():
            window = stored_incarnation(incarnation, timestamp_us)
            for run in _split(sorted(found)):
                yield NumberRange(
                    client,
                    incarnation,
                    window,
                    timestamp_us != 0,
                    run[0].number,
                    run[-1].number,
                    min(one.sequence for one in run),
                    max(one.sequence for one in run),
                    min(one.appended_at_us for one in run),
                    max(one.appended_at_us for one in run),
                )


def _split(found: list[NumberedEvent]) -> Iterator[list[NumberedEvent]]:
    run = [found[0]]
    repeats: list[NumberedEvent] = []
    for one in found[1:]:
        if one.number == run[-1].number:
            repeats.append(one)
        elif one.number == run[-1].number + 1:
            run.append(one)
        else:
            yield run
            run = [one]
    yield run
    for one in repeats:
        yield [one]
