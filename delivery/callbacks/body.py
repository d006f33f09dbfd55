"""The body of a callback, made once for all endpoints that want an event in one format.
Plain module.

Native: `{"stream", "segment", "sequence", "appended_at", "registrations": [ids], "event": {...}}`,
the names of a websocket's frames. As a CloudEvent it is the event alone, and the rest are headers.
Where all registrations that matched have a report, the event is the one that it derives (OIF-06).
Who cannot be told an event is told of the gap.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import orjson

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.event import cloudevents
from eventhub.event.envelope import Event
from eventhub.event.json_codec import event_json, time_text
from eventhub.event.protobuf_codec import decode
from registrations.endpoints.rows import Format
from registrations.filters.report import Report

EventKey = tuple[int, int, Format, Report | None]  # segment's number, sequence


class Place(NamedTuple):
    """What a segment's number stands for."""

    segment: str  # UUID
    stream: str


class Gap(NamedTuple):
    """Events that were dropped before they were told. `resume`: the cursor to go on from."""

    first: int
    last: int
    resume: dict[str, str | int]
    why: str


class Content(NamedTuple):
    """What is posted. `headers`: whole lines, with Content-Type."""

    headers: str
    body: bytes


class Body(Protocol):
    """A body but for the registrations that matched."""

    @property
    def size(self) -> int:
        """Bytes held."""

    @property
    def expires_at_us(self) -> int:
        """When the event's time is over; 0: never."""

    def content(self, registrations: Sequence[int]) -> Content:
        """The whole of it."""


class NativeBody(NamedTuple):
    """The two parts between which the registrations stand."""

    before: bytes
    after: bytes
    expires_at_us: int = 0

    @property
    def size(self) -> int:
        return len(self.before) + len(self.after)

    def content(self, registrations: Sequence[int]) -> Content:
        body = b"%b%b%b" % (self.before, _tickets(registrations).encode(), self.after)
        return Content("content-type: application/json\r\n", body)


class CloudBody(NamedTuple):
    """A CloudEvent, whose headers say where it is from."""

    headers: str
    body: bytes
    expires_at_us: int = 0

    @property
    def size(self) -> int:
        return len(self.headers) + len(self.body)

    def content(self, registrations: Sequence[int]) -> Content:
        if len(registrations) > limits.CALLBACK_HEADER_REGISTRATIONS_MAX:
            return Content(self.headers, self.body)
        tickets = f"eventhub-registrations: {_tickets(registrations)}\r\n"
        return Content(self.headers + tickets, self.body)


class Whole(NamedTuple):
    """An event of the log."""

    place: Place
    sequence: int
    appended_at_us: int
    payload: bytes


def event_body(format: Format, whole: Whole, report: Report | None = None) -> Body:
    """The body of one event, or of the event that a report derives from it."""
    place, sequence = whole.place, whole.sequence
    event = decode(whole.payload)
    expires_at_us = event.expires_at_us
    if report is not None:
        event = report.derive(event)
    if format != "native":
        return _cloud_body(format, event, place, sequence)._replace(expires_at_us=expires_at_us)
    at = time_text(whole.appended_at_us)
    head = (
        f'{{"stream":{orjson.dumps(place.stream).decode()},"segment":"{place.segment}",'
        f'"sequence":{sequence},"appended_at":"{at}","registrations":['
    )
    return NativeBody(head.encode(), b'],"event":%b}' % event_json(event), expires_at_us)


def gap_body(format: Format, place: Place, gap: Gap) -> Body:
    """What an endpoint is told instead of events; as a CloudEvent, an event of the hub's own."""
    told = {"stream": place.stream, "gap": gap._asdict()}
    if format != "native":
        event = Event("eventhub", "delivery.gap", {}, node="hub", body=orjson.dumps(told),
                      content_type="application/json")  # fmt: skip
        return _cloud_body(format, event, place, gap.last)
    return NativeBody(orjson.dumps(told)[:-1] + b',"registrations":[', b"]}")


def _cloud_body(format: Format, event: Event, place: Place, sequence: int) -> CloudBody:
    """In binary mode only what has a body: a request of CloudEvents always has a Content-Type."""
    cursor = f"{place.segment}:{sequence}"
    if format == "cloudevents_binary" and event.body is not None:
        message = cloudevents.binary(event, cursor)
    else:
        content_type = [("Content-Type", cloudevents.STRUCTURED)]
        message = cloudevents.Message(content_type, cloudevents.structured(event, cursor))
    own = [("eventhub-stream", place.stream), ("eventhub-cursor", cursor)]
    lines = [f"{name.lower()}: {value}\r\n" for name, value in (*message.headers, *own)]
    return CloudBody("".join(lines), message.body)


def _tickets(registrations: Sequence[int]) -> str:
    return ",".join(map(str, registrations))


class EventCache:
    """The bodies used lately: those of one event are asked for soon after each other. Bounded by
    the memory that they take, and by the seconds since their last use, or every busy worker would
    fill it with events that nobody asks for again.
    """

    def __init__(self, bytes_max: int, unused_s_max: float, clock: Clock) -> None:
        self._bytes_max = bytes_max
        self._unused_s_max = unused_s_max
        self._clock = clock
        self._bytes = 0
        self._found: OrderedDict[EventKey, tuple[Body, float]] = OrderedDict()  # oldest use first

    def __len__(self) -> int:
        """How many there are."""
        return len(self._found)

    def get(self, key: EventKey) -> Body | None:
        found = self._found.pop(key, None)
        if found is None:
            return None
        self._found[key] = found[0], self._clock.monotonic_s()
        return found[0]

    def put(self, key: EventKey, body: Body) -> None:
        now_s = self._clock.monotonic_s()
        old = self._found.pop(key, None)
        if old is not None:
            self._bytes -= _held(old[0])
        self._found[key] = body, now_s
        self._bytes += _held(body)
        self._drop(now_s - self._unused_s_max)

    def _drop(self, before_s: float) -> None:
        """What was last used before then, and more while there are too many bytes; one is kept."""
        while len(self._found) > 1:
            oldest, (body, used_s) = next(iter(self._found.items()))
            if used_s >= before_s and self._bytes <= self._bytes_max:
                return
            del self._found[oldest]
            self._bytes -= _held(body)


def _held(body: Body) -> int:
    """What a body takes in the cache: a small one is mostly objects."""
    return body.size + limits.CALLBACK_EVENT_CACHED_BYTES
