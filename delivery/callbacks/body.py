"""The body of a callback, built once for all endpoints that receive an event in the same format.
Plain module.

Native: `{"stream", "segment", "sequence", "appended_at", "registrations": [ids], "event": {...}}`,
with the field names of a websocket frame; `bindings` after them if a registration has a variable. A
CloudEvent is the event alone; the rest are headers. An occurrence of MCP Events is the event with
its position as id and cursor. If all registrations that matched have a report, the event is the one
that the reports derive (OIF-06).
An endpoint whose event is no longer available receives a gap notice instead.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import orjson

from delivery.bindings import bindings_header, bindings_json
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.event import cloudevents
from eventhub.event.envelope import Event
from eventhub.event.json_codec import event_json, time_text
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.stored import Cursor
from registrations.endpoints.circuit import OPERATIONAL_TYPES
from registrations.endpoints.statements import Format
from registrations.filters.report import ReportTemplate

_time_text = lru_cache(maxsize=256)(time_text)  # events of one commit have the same time
_OWN_DOMAIN = "eventhub"  # of the hub's own events
EventKey = tuple[int, int, Format, ReportTemplate | None]  # segment id, sequence


class SegmentName(NamedTuple):
    """The UUID of a segment and the name of its stream."""

    segment: str  # UUID
    stream: str


class GapNotice(NamedTuple):
    """A range of events dropped before delivery. `resume`: the cursor to continue from."""

    first: int
    last: int
    resume: dict[str, str | int]
    why: str


class RequestContent(NamedTuple):
    """The part of a request that depends on the event. `headers`: whole lines, with
    Content-Type.
    """

    headers: str
    body: bytes
    answer_bytes_max: int = limits.CALLBACK_ANSWER_CHARS_STORED_MAX  # of the body of the answer
    message: str = ""  # the `webhook-id`, if it is not the id of the delivery


class BoundVariables(NamedTuple):
    """The variables that are bound to the event of a request, by registration, and its cursor."""

    variables: Mapping[int, str]
    cursor: Cursor


class EventFacts(NamedTuple):
    """The fields of an event that are looked at before every request."""

    expires_at_us: int = 0  # 0: never
    audience: tuple[str, ...] = ()
    appended_at_us: int = 0  # 0: not an event but a gap notice
    # the endpoint that an operational event is about; 0: none
    endpoint_id: int = 0


class Body(Protocol):
    """A body in which only the ids of the matching registrations, and the variables that they bind,
    are missing.
    """

    @property
    def size(self) -> int:
        """The size in bytes."""

    @property
    def facts(self) -> "EventFacts":
        """The fields of the event that decide whether it is sent."""

    def content(
        self, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> RequestContent:
        """Return headers and body with the matching registrations and the bound variables."""

    def element(
        self, message: str, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> bytes:
        """Return the JSON object for a batch, with the id of the delivery."""


class NativeBody(NamedTuple):
    """A native body: the bytes before and after the list of registration ids."""

    before: bytes
    after: bytes
    facts: EventFacts = EventFacts()

    @property
    def size(self) -> int:
        return len(self.before) + len(self.after)

    def content(
        self, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> RequestContent:
        body = b"%b%b%b" % (self.before, self._matched(registrations, bound), self.after)
        return RequestContent("content-type: application/json\r\n", body)

    def element(
        self, message: str, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> bytes:
        matched = self._matched(registrations, bound)
        return b'{"id":"%b",%b%b%b' % (message.encode(), self.before[1:], matched, self.after)

    def _matched(self, registrations: Sequence[int], bound: BoundVariables | None) -> bytes:
        """Return the list of registrations, and the bindings if there are any, as JSON."""
        matched = f"[{_registration_ids(registrations)}]"
        if bound is not None:
            matched += f',"bindings":{bindings_json(*bound)}'
        return matched.encode()


class CloudBody(NamedTuple):
    """A CloudEvent, with the stream, the cursor and the registrations in headers, or in a batch in
    extension attributes (`extensions`: stream and cursor, as JSON without braces).
    """

    headers: str
    body: bytes
    extensions: bytes
    facts: EventFacts = EventFacts()

    @property
    def size(self) -> int:
        return len(self.headers) + len(self.body)

    def content(
        self, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> RequestContent:
        if len(registrations) > limits.CALLBACK_HEADER_REGISTRATIONS_MAX:
            return RequestContent(self.headers, self.body)
        headers = f"{self.headers}eventhub-registrations: {_registration_ids(registrations)}\r\n"
        if bound is not None:
            headers += f"eventhub-bindings: {bindings_header(bound.variables)}\r\n"
        return RequestContent(headers, self.body)

    def element(
        self, message: str, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> bytes:
        own = b'"eventhubdelivery":"%b",%b' % (message.encode(), self.extensions)
        if len(registrations) <= limits.CALLBACK_HEADER_REGISTRATIONS_MAX:
            own += b',"eventhubmatched":"%b"' % _registration_ids(registrations).encode()
            if bound is not None:
                bindings = orjson.dumps(bindings_header(bound.variables))
                own += b',"eventhubbindings":%b' % bindings
        return b"{%b,%b" % (own, self.body[1:])


class McpBody(NamedTuple):
    """An occurrence of MCP Events, or its notice of a gap. `message`: the `webhook-id`."""

    message: str
    body: bytes
    facts: EventFacts = EventFacts()

    @property
    def size(self) -> int:
        return len(self.body)

    def content(
        self, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> RequestContent:
        return RequestContent("content-type: application/json\r\n", self.body, message=self.message)

    def element(
        self, message: str, registrations: Sequence[int], bound: BoundVariables | None = None
    ) -> bytes:
        return self.body


class LoggedEvent(NamedTuple):
    """An event of the log in its stored form."""

    segment: SegmentName
    sequence: int
    appended_at_us: int
    payload: bytes


def _facts(event: Event, appended_at_us: int) -> EventFacts:
    about = None
    if event.domain == _OWN_DOMAIN and event.type in OPERATIONAL_TYPES:
        about = event.attributes.get("endpoint")
    endpoint_id = about if isinstance(about, int) else 0
    return EventFacts(event.expires_at_us, tuple(event.audience), appended_at_us, endpoint_id)


def event_body(format: Format, logged: LoggedEvent, report: ReportTemplate | None = None) -> Body:
    """Return the body of an event, or of the event that a report derives from it."""
    segment, sequence = logged.segment, logged.sequence
    event = decode(logged.payload)
    facts = _facts(event, logged.appended_at_us)
    if report is not None:
        event = report.derive(event)
    if format == "mcp":
        return _mcp_body(event, logged)._replace(facts=facts)
    if format != "native":
        return _cloud_body(format, event, segment, sequence)._replace(facts=facts)
    at = _time_text(logged.appended_at_us)
    head = (
        f'{{"stream":{orjson.dumps(segment.stream).decode()},"segment":"{segment.segment}",'
        f'"sequence":{sequence},"appended_at":"{at}","registrations":'
    )
    return NativeBody(head.encode(), b',"event":%b}' % event_json(event), facts)


def gap_body(format: Format, segment: SegmentName, gap: GapNotice) -> Body:
    """Return the body of a gap notice; as a CloudEvent it is an event of the domain `eventhub`."""
    if format == "mcp":
        cursor = f"{gap.resume['segment']}:{gap.resume['sequence']}"
        return McpBody(f"msg_gap_{cursor}", orjson.dumps({"type": "gap", "cursor": cursor}))
    content = {"stream": segment.stream, "gap": gap._asdict()}
    if format != "native":
        event = Event(_OWN_DOMAIN, "delivery.gap", {}, node="hub", body=orjson.dumps(content),
                      content_type="application/json")  # fmt: skip
        return _cloud_body(format, event, segment, gap.last)
    return NativeBody(orjson.dumps(content)[:-1] + b',"registrations":', b"}")


def _mcp_body(event: Event, logged: LoggedEvent) -> McpBody:
    """Return an event as an occurrence. Its cursor is its own position, because the endpoint of a
    subscription is ordered: all before it were acknowledged or dead-lettered.
    """
    cursor = f"{logged.segment.segment}:{logged.sequence}"
    body = {
        "eventId": cursor,
        "name": f"{event.domain}::{event.type}",
        "timestamp": _time_text(logged.appended_at_us),
        "data": orjson.Fragment(event_json(event)),
        "cursor": cursor,
    }
    return McpBody(cursor, orjson.dumps(body))


def _cloud_body(format: Format, event: Event, segment: SegmentName, sequence: int) -> CloudBody:
    """Return a CloudEvent. Binary mode needs a body, because a CloudEvents request always has a
    Content-Type; an event without one becomes a structured CloudEvent.
    """
    cursor = f"{segment.segment}:{sequence}"
    if format == "cloudevents_binary" and event.body is not None:
        message = cloudevents.binary(event, cursor)
    else:
        content_type = [("Content-Type", cloudevents.STRUCTURED)]
        message = cloudevents.Message(content_type, cloudevents.structured(event, cursor))
    own = [("eventhub-stream", segment.stream), ("eventhub-cursor", cursor)]
    lines = [f"{name.lower()}: {value}\r\n" for name, value in (*message.headers, *own)]
    extensions = orjson.dumps({"eventhubstream": segment.stream, "eventhubcursor": cursor})[1:-1]
    return CloudBody("".join(lines), message.body, extensions)


def _registration_ids(registrations: Sequence[int]) -> str:
    if len(registrations) == 1:
        return str(registrations[0])
    return ",".join(map(str, registrations))


class EventCache:
    """A cache of recently used bodies: the deliveries of one event follow each other closely. It is
    bounded in bytes, and drops bodies unused for `unused_s_max` seconds; otherwise every busy
    worker would fill it with events that no delivery needs again.
    """

    def __init__(self, bytes_max: int, unused_s_max: float, clock: Clock) -> None:
        self._bytes_max = bytes_max
        self._unused_s_max = unused_s_max
        self._clock = clock
        self._bytes = 0
        self._bodies: OrderedDict[EventKey, tuple[Body, float]] = (
            OrderedDict()
        )  # least recently used first

    def __len__(self) -> int:
        """Return the number of cached bodies."""
        return len(self._bodies)

    def get_all(self, keys: Sequence[EventKey]) -> list[Body | None]:
        """Return the bodies of events, None for each that is not cached."""
        now_s, bodies = self._clock.monotonic_s(), self._bodies
        found: list[Body | None] = []
        for key in keys:
            cached = bodies.get(key)
            if cached is None:
                found.append(None)
            else:
                found.append(cached[0])
                bodies[key] = cached[0], now_s
                bodies.move_to_end(key)
        return found

    def put(self, key: EventKey, body: Body) -> None:
        now_s = self._clock.monotonic_s()
        previous = self._bodies.pop(key, None)
        if previous is not None:
            self._bytes -= _cached_bytes(previous[0])
        self._bodies[key] = body, now_s
        self._bytes += _cached_bytes(body)
        self._drop(now_s - self._unused_s_max)

    def _drop(self, before_s: float) -> None:
        """Drop bodies unused since the given time, and more while the cache is too large."""
        while len(self._bodies) > 1:
            oldest, (body, used_s) = next(iter(self._bodies.items()))
            if used_s >= before_s and self._bytes <= self._bytes_max:
                return
            del self._bodies[oldest]
            self._bytes -= _cached_bytes(body)


def _cached_bytes(body: Body) -> int:
    """Return the memory that a cached body takes; a small body is mostly object overhead."""
    return body.size + limits.CALLBACK_EVENT_CACHED_BYTES
