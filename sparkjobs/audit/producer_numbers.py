"""The producer numbers of one segment, as contiguous ranges. Plain module.

A number is unique within its client, incarnation and timestamp (FOX-07), the scope in which the hub
finds duplicates. Producers may skip numbers; no number may be stored twice.
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
    """Contiguous numbers, each once. A repeat within the segment is a range of its own."""

    client: str
    incarnation: int
    window: int  # stored_incarnation of incarnation and timestamp
    timed: bool  # the ids have timestamps, so windows are many and short
    low: int
    high: int
    first: int  # lowest and highest sequence and append time
    last: int
    from_us: int
    to_us: int


class ProducerNumbers:
    """The producer numbers of one segment."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, int, int], list[NumberedEvent]] = {}

    def add(self, producer_id: Any, sequence: int, appended_at_us: int) -> None:
        """Add an event. `producer_id`: client, timestamp_us, sequence, incarnation."""
        key = producer_id.client, producer_id.incarnation, producer_id.timestamp_us
        event = NumberedEvent(producer_id.sequence, sequence, appended_at_us)
        self._events.setdefault(key, []).append(event)

    def ranges(self) -> Iterator[NumberRange]:
        for (client, incarnation, timestamp_us), events in self._events.items():
            window = stored_incarnation(incarnation, timestamp_us)
            for run in _split(sorted(events)):
                yield NumberRange(
                    client,
                    incarnation,
                    window,
                    timestamp_us != 0,
                    run[0].number,
                    run[-1].number,
                    min(event.sequence for event in run),
                    max(event.sequence for event in run),
                    min(event.appended_at_us for event in run),
                    max(event.appended_at_us for event in run),
                )


def _split(events: list[NumberedEvent]) -> Iterator[list[NumberedEvent]]:
    run = [events[0]]
    repeats: list[NumberedEvent] = []
    for event in events[1:]:
        if event.number == run[-1].number:
            repeats.append(event)
        elif event.number == run[-1].number + 1:
            run.append(event)
        else:
            yield run
            run = [event]
    yield run
    for event in repeats:
        yield [event]
