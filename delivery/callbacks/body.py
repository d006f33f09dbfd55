"""The body of a callback: the event as JSON, made once for all endpoints that it is owed to. Plain.

`{"stream", "segment", "sequence", "appended_at", "registrations": [ids], "event": {...}}`: the
names are those of a websocket's frames.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from eventhub.event.json_codec import event_json, time_text
from eventhub.event.protobuf_codec import decode

EventKey = tuple[int, int]  # segment's number, sequence


class Place(NamedTuple):
    """What a segment's number stands for."""

    segment: str  # UUID
    stream: str


class EventBody(NamedTuple):
    """The two parts of the body between which the registrations stand."""

    before: bytes
    after: bytes

    def with_registrations(self, registrations: Sequence[int]) -> bytes:
        """The whole body."""
        tickets = ",".join(map(str, registrations)).encode()
        return b"%b%b%b" % (self.before, tickets, self.after)


def event_body(place: Place, sequence: int, appended_at_us: int, payload: bytes) -> EventBody:
    """The parts of the body of one event, from its stored bytes."""
    head = (
        f'{{"stream":{orjson.dumps(place.stream).decode()},"segment":"{place.segment}",'
        f'"sequence":{sequence},"appended_at":"{time_text(appended_at_us)}","registrations":['
    )
    return EventBody(head.encode(), b'],"event":%b}' % event_json(decode(payload)))


class EventCache:
    """The bodies used last, bounded by their bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._found: OrderedDict[EventKey, EventBody] = OrderedDict()

    def get(self, key: EventKey) -> EventBody | None:
        body = self._found.get(key)
        if body is not None:
            self._found.move_to_end(key)
        return body

    def put(self, key: EventKey, body: EventBody) -> None:
        old = self._found.pop(key, None)
        if old is not None:
            self._bytes -= len(old.before) + len(old.after)
        self._found[key] = body
        self._bytes += len(body.before) + len(body.after)
        while self._bytes > self._bytes_max and len(self._found) > 1:
            _, dropped = self._found.popitem(last=False)
            self._bytes -= len(dropped.before) + len(dropped.after)
