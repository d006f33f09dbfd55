"""The judges of a run: records against events, and events against the records of the sink."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from tests.chaos.kafka.writers import Place, Written

Where = tuple[int, int]  # partition, offset
SHOWN = 5


class ReadRecord(NamedTuple):
    """A record that readers of committed records see."""

    where: Where
    key: str | None
    place: Place


class StoredEvent(NamedTuple):
    """An event of the stream: where its record was, and its content."""

    sequence: int
    where: Where
    key: str
    place: Place


class Copy(NamedTuple):
    """A record of the sink's topic, as its headers and its value say."""

    partition: int
    delivery: str
    sequence: int
    place: Place


def records_wrong(records: Sequence[ReadRecord], written: Iterable[Written]) -> list[str]:
    """Compare a topic with the journals of the writers: what Kafka itself promises."""
    counts = Counter(record.place for record in records)
    problems = [f"{place} is in the topic {n} times" for place, n in counts.items() if n > 1]
    for one in written:
        problems += [f"{place} was stored, and is gone" for place in one.stored - counts.keys()]
        problems += [f"{place} was aborted, and is read" for place in one.aborted & counts.keys()]
    return shortened(problems)


def events_wrong(records: Sequence[ReadRecord], events: Sequence[StoredEvent]) -> list[str]:
    """Compare a topic with the events in their order: each record once, by partition and key."""
    expected = {record.where: (record.key, record.place) for record in records}
    counts = Counter(event.where for event in events)
    problems = [f"the record at {where} has no event" for where in expected.keys() - counts.keys()]
    problems += [f"{where} is the record of {n} events" for where, n in counts.items() if n > 1]
    for event in events:
        if expected.get(event.where) != (event.key, event.place):
            problems.append(f"event {event.sequence} is not the record at {event.where}")
    problems += _out_of_order((event.where[0], event.where[1]) for event in events)
    problems += _out_of_order((event.key, event.place.number) for event in events)
    return shortened(problems)


def copies_wrong(events: Sequence[StoredEvent], copies: Sequence[Copy]) -> list[str]:
    """Compare events with the records of the sink, in the order of each partition."""
    expected = {event.sequence: event.place for event in events}
    first: dict[str, Copy] = {}
    for copy in copies:
        first.setdefault(copy.delivery, copy)
    unique = [*first.values()]
    counts = Counter(copy.sequence for copy in unique)
    problems = [f"event {number} did not arrive" for number in expected.keys() - counts.keys()]
    problems += [f"event {number} has {n} deliveries" for number, n in counts.items() if n > 1]
    for copy in copies:
        if expected.get(copy.sequence) != copy.place:
            problems.append(f"delivery {copy.delivery} is not event {copy.sequence}")
    problems += _out_of_order((copy.partition, copy.sequence) for copy in unique)
    return shortened(problems)


def repeats(copies: Sequence[Copy]) -> int:
    """Return how many records repeat a delivery."""
    return len(copies) - len({copy.delivery for copy in copies})


def shortened(problems: Sequence[str]) -> list[str]:
    left = len(problems) - SHOWN
    return [*problems[:SHOWN], *([f"and {left} more of these"] if left > 0 else [])]


def _out_of_order(found: Iterable[tuple[Hashable, int]]) -> list[str]:
    """Return where a number is not above that before it, of those with the same first part."""
    last: dict[Hashable, int] = defaultdict(lambda: -1)
    problems = []
    for group, number in found:
        if number < last[group]:
            problems.append(f"{number} of {group!r} comes after {last[group]}")
        last[group] = max(last[group], number)
    return problems
