"""Events by the compiled decoder equal those that Python makes of protobuf's objects. Where it was
not built, Python makes both.
"""

import contextlib
import pickle
import sys
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given

from eventhub.event import event_pb2
from eventhub.event.compiled import decoder
from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.protobuf_codec import decode, decode_message, encode
from tests.unit.eventhub.event.strategies import events

PLAIN = encode(Event("a", "b", {"x": [1, 2.5, None, {"y": True}]}))


@given(events())
def test_events_equal_those_of_python(event: Event) -> None:
    found, expected = decode(encode(event)), decode_message(encode(event))
    assert found == expected == event
    assert [type(value) for value in found] == [type(value) for value in expected]
    assert type(found) is Event
    assert type(found.id) is type(event.id)
    assert pickle.loads(pickle.dumps(found)) == event


@pytest.mark.skipif(decoder is None, reason="the decoder was not built")
def test_it_decodes_every_field_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventhub.event.protobuf_codec.decode_message", refuse)
    made = Event(
        *("d", "t", {}, EventId("c", -1, 2, 3), "s", "n", "v", b"", "text/plain", "n", ("a", "é")),
        *({"e": "f"}, 2**64 - 1, -5, 1, -(2**62), "k", "b", ("d",), "co", "ca", "tr", ("x", "y")),
        *(("g",), "high", "su", 7, 8, "m", True, "causal", True),
    )
    assert decode(encode(made)) == made


def refuse(payload: bytes) -> Event:
    raise AssertionError(payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        PLAIN + b"\x98\x06\x01",  # a field 99 of a later release
        PLAIN + event_pb2.Event(producer_id=event_pb2.EventId(client="c")).SerializeToString() * 2,
        PLAIN + event_pb2.Event(text_id="1").SerializeToString(),
        PLAIN + b"\x12\x00",  # an empty id is one
        PLAIN
        + event_pb2.Event(text_id="1").SerializeToString()
        + event_pb2.Event(producer_id=event_pb2.EventId(client="c")).SerializeToString(),
        PLAIN + b"\x42\x00",  # empty attributes
        PLAIN + b"\x42\x01{",
        PLAIN + b"\x6a\x01[",  # an environment
        PLAIN + b"\xc8\x01\x07",  # a security level of a later release
        PLAIN + b"\x1a\x02\xff\xfe",  # no UTF-8
        PLAIN + b"\x62\x01a\x62\x02\xff\xfe",  # nor in a list
        PLAIN + b"\x7a\x01a",  # a text where a number belongs
        PLAIN + b"\x0a",  # cut off
        PLAIN[:-1],
    ],
)
def test_what_it_cannot_decode_is_left_to_python(payload: bytes) -> None:
    def outcome(by: Callable[[bytes], Event]) -> str:
        try:
            return repr(by(payload))
        except Exception as error:
            return repr(error)

    assert outcome(decode) == outcome(decode_message)


@pytest.mark.skipif(decoder is None, reason="the decoder was not built")
@pytest.mark.parametrize("payload", [PLAIN, PLAIN + b"\x42\x01{", PLAIN + b"\x62\x02\xff\xfe"])
def test_it_leaks_no_memory(payload: bytes) -> None:
    def blocks(count: int) -> int:
        for _ in range(count):
            with contextlib.suppress(orjson.JSONDecodeError):
                decoder.decode(payload, Event, EventId, orjson.loads)
        return sys.getallocatedblocks()

    before = blocks(1_000)
    assert blocks(20_000) - before < 1_000
