"""One stream as its tables have it, read from outside the hub with plain SQL: every sequence, every
segment, every event's name. It shares no code with the hub's own reader.
"""

import asyncio
import itertools
from collections import Counter
from typing import Any, LiteralString

import orjson

from eventhub.event import event_pb2
from tests.chaos.events import Name, mask_of
from tests.chaos.hub import HubUnderTest

STREAM: LiteralString = "SELECT id, segment_events_max FROM streams WHERE name = %s"
SEGMENTS: LiteralString = """
    SELECT id, uuid::text, first, last FROM segments WHERE stream_id = %s ORDER BY first, id"""
HEAD: LiteralString = """
    SELECT h.segment::text, h.first, h.sequence,
           (SELECT count(*) FROM events e JOIN segments s ON s.id = e.segment_id
             WHERE s.stream_id = h.stream_id)
      FROM heads h WHERE h.stream_id = %s"""
EVENTS: LiteralString = """
    SELECT e.sequence, s.uuid::text, e.mask, e.payload
      FROM events e JOIN segments s ON s.id = e.segment_id
     WHERE s.stream_id = %s AND e.sequence > %s
     ORDER BY e.sequence, e.segment_id LIMIT 20000"""
STRAYS: LiteralString = """
    SELECT count(*) FROM events e
     WHERE NOT EXISTS (SELECT FROM segments s WHERE s.id = e.segment_id
                          AND s.partition_id = e.partition_id AND e.sequence >= s.first
                          AND (s.last IS NULL OR e.sequence <= s.last))"""


class StoredStream:
    """The events of a stream by sequence, as far as they were read. Sequence n is at n - 1."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: list[str] = []
        self.segments: list[str] = []
        self.segment_count = 0

    @property
    def head(self) -> int:
        return len(self.names)

    async def read_on(self, hub: HubUnderTest) -> list[str]:
        """Read new rows, while nothing is emitted; return the problems."""
        [(stream_id, events_max)] = await hub.rows(STREAM, self.name)
        segments = await hub.rows(SEGMENTS, stream_id)
        [head] = await hub.rows(HEAD, stream_id)
        self.segment_count = len(segments)
        problems = [*segments_wrong(segments, events_max), *_head_wrong(segments, head)]
        spans = {uuid: (first, last) for _, uuid, first, last in segments}
        while rows := await hub.rows(EVENTS, stream_id, self.head):
            problems += await asyncio.to_thread(self._take, rows, spans)
            if problems:
                break
        if not problems and self.head != head[2]:
            problems.append(f"the head is {head[2]}, but the last event is {self.head}")
        if not problems and self.head != head[3]:
            problems.append(f"{head[3]} rows for {self.head} numbers")
        return [f"{self.name}: {problem}" for problem in problems]

    def _take(
        self, rows: list[tuple[Any, ...]], spans: dict[str, tuple[int, int | None]]
    ) -> list[str]:
        for sequence, segment, mask, payload in rows:
            if sequence != self.head + 1:
                return [f"{sequence} comes after {self.head}"]
            first, last = spans[segment]
            if sequence < first or (last is not None and sequence > last):
                return [f"{sequence} lies in {segment}, which holds {first} to {last}"]
            event = event_pb2.Event.FromString(payload)
            name = orjson.loads(event.attributes)["name"]
            wrong = _event_wrong(event, mask, Name.parse(name))
            if wrong:
                return [f"{sequence}: {wrong}"]
            self.names.append(name)
            self.segments.append(segment)
        return []


def _event_wrong(event: event_pb2.Event, mask: int, name: Name) -> str:
    if mask != mask_of(name.number) or event.mask != mask:
        return f"the mask of {name} is {mask}"
    if event.HasField("producer_id"):
        found = (event.producer_id.incarnation, event.producer_id.sequence)
        if found != (name.incarnation, name.number):
            return f"{name} has the producer id {found}"
    return ""


def segments_wrong(segments: list[tuple[Any, ...]], events_max: int) -> list[str]:
    """Return where the rows (id, uuid, first, last) of a stream are not contiguous."""
    problems = []
    for (_, uuid, first, last), following in itertools.pairwise(segments):
        if last is None:
            problems.append(f"segment {uuid} from {first} is open, but not the last")
        elif last + 1 != following[2]:
            problems.append(f"segment {following[1]} begins at {following[2]} after {last}")
        elif last - first + 1 > events_max:
            problems.append(f"segment {uuid} holds {first} to {last}, more than {events_max}")
    if segments[0][2] != 1:
        problems.append(f"the first segment begins at {segments[0][2]}")
    if segments[-1][3] is not None:
        problems.append("no segment is open")
    return problems


def _head_wrong(segments: list[tuple[Any, ...]], head: tuple[Any, ...]) -> list[str]:
    _, uuid, first, _ = segments[-1]
    if (uuid, first) != (head[0], head[1]):
        return [f"the head names {head[0]} from {head[1]}, the last segment is {uuid} from {first}"]
    return []


def doubled(names: list[str]) -> list[str]:
    """Return names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]
