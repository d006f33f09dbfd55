"""The answer to an emit: the positions of its events. Plain module."""

from typing import Annotated, NamedTuple, NotRequired, TypedDict

import orjson
from msgspec import Meta

from eventhub.base import metrics
from eventhub.event.json_codec import time_text
from eventhub.event.json_types import Int64, Time, Uuid
from eventhub.eventlog.delayed import WaitingEvent
from eventhub.eventlog.drafts import Appended
from eventhub.eventlog.stored import Cursor
from eventhub.http.messages import Headers, Response


class RangeJson(TypedDict):
    """Events stored with consecutive sequence numbers."""

    segment: Uuid
    first: Int64
    last: Int64


class DuplicateJson(TypedDict):
    """An event that was stored before."""

    index: Annotated[int, Meta(description="Position in the request.")]
    segment: Uuid
    sequence: Int64


class DelayedJson(TypedDict):
    """An event that is appended when it is due, unless its timer is deleted before."""

    index: Annotated[int, Meta(description="Position in the request.")]
    timer: Annotated[Int64, Meta(description="See `/v1/timers/{timer}`.")]
    due_at: Time


class EmittedJson(TypedDict):
    """The positions of the events of a request."""

    stream: str
    ranges: list[RangeJson]
    duplicates: list[DuplicateJson]
    delayed: NotRequired[list[DelayedJson]]


_ONE_RANGE = b'{"stream":%b,"ranges":[{"segment":"%b","first":%d,"last":%d}],"duplicates":[]}'


class Emitted(NamedTuple):
    """The positions of the events of one request: ranges of new sequence numbers, and the events
    that were stored before.
    """

    stream: str
    ranges: list[tuple[str, int, int]]  # segment, first, last
    duplicates: list[tuple[int, str, int]]  # index in the request, segment, sequence
    head: Cursor | None  # the last event of the stream, as of this request; None: it was not read
    delayed: tuple[WaitingEvent, ...] = ()

    def json(self) -> EmittedJson:
        found: EmittedJson = {
            "stream": self.stream,
            "ranges": [{"segment": s, "first": f, "last": e} for s, f, e in self.ranges],
            "duplicates": [
                {"index": i, "segment": s, "sequence": n} for i, s, n in self.duplicates
            ],
        }
        if self.delayed:
            found["delayed"] = [
                {"index": i, "timer": t, "due_at": time_text(at)} for i, t, at in self.delayed
            ]
        return found

    def response(self) -> Response:
        """Return the answer, with the numbers that the request added as a header."""
        headers: Headers = []
        if self.ranges:
            headers.append((b"eventhub-caused", b"%d-%d" % (self.ranges[0][1], self.ranges[-1][2])))
        return Response(200, self._body(), headers, position=self.head)

    def _body(self) -> bytes:
        """Return the answer as JSON; the most frequent one is formatted without objects."""
        if self.duplicates or self.delayed or len(self.ranges) != 1:
            return orjson.dumps(self.json())
        [(segment, first, last)] = self.ranges
        values = (orjson.dumps(self.stream), segment.encode(), first, last)
        return _ONE_RANGE % values


def emitted(stream: str, appended: list[Appended]) -> Emitted:
    ranges: list[tuple[str, int, int]] = []
    duplicates: list[tuple[int, str, int]] = []
    known: Cursor | None = None
    for index, (_, segment, sequence, duplicate, head) in enumerate(appended):
        if duplicate:
            duplicates.append((index, segment, sequence))
            known = head
        elif ranges and ranges[-1][0] == segment and ranges[-1][2] == sequence - 1:
            ranges[-1] = (segment, ranges[-1][1], sequence)
        else:
            ranges.append((segment, sequence, sequence))
    if duplicates:
        metrics.DUPLICATES.inc(len(duplicates))
    if known is None and ranges:
        segment, _, sequence = ranges[-1]
        known = Cursor(segment, sequence)
    return Emitted(stream, ranges, duplicates, known)
