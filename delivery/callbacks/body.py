"""The body of a callback, made once for all endpoints that want an event in one format. Plain.

Native: `{"stream", "segment", "sequence", "appended_at", "registrations": [ids], "event": {...}}`,
the names of a websocket's frames. As a CloudEvent it is the event alone, and the rest are headers.
Where all registrations that matched have a report, the event is the one that it derives (OIF-06).
Who cannot be told an event is told of the gap.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import orjson

from eventhub import limits
from eventhub.event import cloudevents
from eventhub.event.envelope import Event
from eventhub.event.json_codec import event_json, time_text
from eventhub.event.protobuf_codec import decode
from registrations.endpoints.rows import Format
from registrations.lang.report import Report

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

    def content(self, registrations: Sequence[int]) -> Content:
        """The whole of it."""


class NativeBody(NamedTuple):
    """The two parts between which the registrations stand."""

    before: bytes
    after: bytes

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
    if report is not None:
        event = report.derive(event)
    if format != "native":
        return _cloud_body(format, event, place, sequence)
    at = time_text(whole.appended_at_us)
    head = (
        f'{{"stream":{orjson.dumps(place.stream).decode()},"segment":"{place.segment}",'
        f'"sequence":{sequence},"appended_at":"{at}","registrations":['
    )
    return NativeBody(head.encode(), b'],"event":%b}' % event_json(event))


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
    """The bodies used last, bounded by their bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._found: OrderedDict[EventKey, Body] = OrderedDict()

    def get(self, key: EventKey) -> Body | None:
        body = self._found.get(key)
        if body is not None:
            self._found.move_to_end(key)
        return body

    def put(self, key: EventKey, body: Body) -> None:
        old = self._found.pop(key, None)
        if old is not None:
            self._bytes -= old.size
        self._found[key] = body
        self._bytes += body.size
        while self._bytes > self._bytes_max and len(self._found) > 1:
            _, dropped = self._found.popitem(last=False)
            self._bytes -= dropped.size
