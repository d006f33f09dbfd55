"""The rules of the listening protocol, without I/O."""

from typing import Any

import orjson
import pytest

from delivery.listening.frames import EventHeader, FrameSubject, JsonFrames, ProtobufFrames, varint
from delivery.listening.protocol import ListenerFilter, ListenerState, SocketListeners, refusal
from eventhub.base import errors, limits
from eventhub.event import event_pb2
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.read import Position
from eventhub.eventlog.stored import Cursor, StoredEvent
from registrations.filters.pairs import parse_pairs

SEGMENT = "5a4f0c0e-0000-4000-8000-000000000001"


def stored(sequence: int = 1, **fields: Any) -> StoredEvent:
    event = Event("d", "t", fields.pop("attributes", {}), **{"mask": 1, **fields})
    return StoredEvent(SEGMENT, sequence, event.mask, 0, encode(event))


def listener(window: int | None = None, *, after: int = 0, head: int = 0) -> ListenerState:
    state = ListenerState("a", "orders", ListenerFilter(), window)
    state.start(Position(Cursor(SEGMENT, after), head))
    return state


def test_prev_is_the_last_sequence_reported_to_the_reader() -> None:
    state, frames = listener(after=4, head=6), JsonFrames()
    sent = [orjson.loads(state.event(stored(n), frames)) for n in (5, 8, 9)]
    assert [(f["prev"], f["sequence"], f["liveness"]) for f in sent] == [
        (4, 5, "recovery"),
        (5, 8, "live"),
        (8, 9, "live"),
    ]


def test_a_position_is_reported_once_and_is_the_next_prev() -> None:
    state = listener()
    assert state.position(Cursor(SEGMENT, 0)) is None
    assert state.position(Cursor(SEGMENT, 7)) == {"segment": SEGMENT, "sequence": 7, "prev": 0}
    assert state.position(Cursor(SEGMENT, 7)) is None
    assert orjson.loads(state.event(stored(9), JsonFrames()))["prev"] == 7


def test_a_window_is_full_until_an_ack_and_acks_are_cumulative() -> None:
    state, frames = listener(window=3), JsonFrames()
    for sequence in (2, 4, 6):
        assert not state.full
        state.event(stored(sequence), frames)
    assert state.full
    state.acknowledge(1)
    assert state.full
    state.acknowledge(4)
    state.event(stored(7), frames)
    assert not state.full
    state.acknowledge(100)
    assert not state.full


def test_a_listener_without_a_window_is_never_full() -> None:
    state = listener()
    for sequence in range(1, 200):
        state.event(stored(sequence), JsonFrames())
    assert not state.full


@pytest.mark.parametrize(
    ("filter", "fields", "now_us", "matches"),
    [
        (ListenerFilter(), {}, 0, True),
        (ListenerFilter(mask=4), {"mask": 5}, 0, True),
        (ListenerFilter(mask=4), {"mask": 3}, 0, False),
        (ListenerFilter(mask=1 << 63), {"mask": 1 << 63}, 0, True),
        (ListenerFilter(), {"expires_at_us": 10}, 9, True),
        (ListenerFilter(), {"expires_at_us": 10}, 10, False),
        (ListenerFilter(zone="z"), {"attributes": {"zone": "z"}}, 0, True),
        (ListenerFilter(zone="z"), {"attributes": {"zone": "y"}}, 0, False),
        (ListenerFilter(zone="z"), {}, 0, True),  # of the whole hub
        (ListenerFilter(pairs=parse_pairs({"type": "t"})), {}, 0, True),
        (ListenerFilter(pairs=parse_pairs({"type": "u"})), {}, 0, False),
        (ListenerFilter(mask=2, pairs=parse_pairs({"type": "t"})), {}, 0, False),
    ],
)
def test_a_filter_tests_mask_zone_pairs_and_expiry(
    filter: ListenerFilter, fields: dict[str, Any], now_us: int, matches: bool
) -> None:
    assert filter.matches(stored(**fields), now_us) == matches


def test_names_of_a_socket_are_unique_and_bounded() -> None:
    socket = SocketListeners()
    socket.listeners["a"] = listener()
    with pytest.raises(errors.ListenerExists):
        socket.require_new("a")
    with pytest.raises(errors.UnknownListener):
        socket.find("b")
    for number in range(limits.LISTENERS_PER_SOCKET_MAX - 1):
        socket.require_new(str(number))
        socket.listeners[str(number)] = listener()
    with pytest.raises(errors.TooManyRequests):
        socket.require_new("one more")


@pytest.mark.parametrize(
    ("error", "op"),
    [
        (errors.Gone(), "gap"),
        (errors.SegmentMismatch(), "segment_mismatch"),
        (errors.LogHole(), "error"),
        (errors.Forbidden(), "error"),
    ],
)
def test_gaps_have_message_types_of_their_own(error: errors.EventHubError, op: str) -> None:
    message = refusal(error, FrameSubject("a"))
    assert (message["op"], message["code"], message["listener"]) == (op, error.code, "a")
    assert "listener" not in refusal(error)


@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 20_000, 300_000])
def test_a_binary_frame_is_a_server_frame_that_ends_with_the_stored_bytes(size: int) -> None:
    one = stored(3, body=b"x" * size, content_type="x/y")
    frame = ProtobufFrames().event(
        EventHeader(FrameSubject('quo"ted').json, 2, "live", [7, 12]), one
    )
    assert isinstance(frame, bytes)
    assert frame.endswith(one.payload)
    event = event_pb2.ServerFrame.FromString(frame).event
    assert list(event.registrations) == [7, 12]
    assert (event.listener, event.segment, event.sequence, event.prev) == (
        'quo"ted',
        SEGMENT,
        3,
        2,
    )
    assert (event.liveness, event.event) == (event_pb2.LIVE, one.payload)


def test_frames_of_a_session_name_it_and_the_stream() -> None:
    one, subject = stored(3), FrameSubject("", 'my "session"', "orders")
    header = EventHeader(subject.json, 2, "live")
    text = orjson.loads(JsonFrames().event(header, one))
    frames = ProtobufFrames()
    frames.event(EventHeader(FrameSubject("a").json, 1, "live"), one)
    event = event_pb2.ServerFrame.FromString(frames.event(header, one)).event
    assert (text["session"], text["stream"]) == (subject.session, subject.stream)
    assert (event.session, event.stream, event.listener) == (subject.session, "orders", "")
    assert "listener" not in text
    assert FrameSubject().json == ""


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 16_383, 16_384, 2**32])
def test_varint_equals_protobufs(number: int) -> None:
    message = event_pb2.EventId(sequence=number).SerializeToString()
    assert message[1:] == (varint(number) if number else b"")


def test_the_json_of_an_event_is_built_once_for_all_readers() -> None:
    one, frames = stored(3), JsonFrames()
    first = orjson.loads(frames.event(EventHeader(FrameSubject("a").json, 0, "live"), one))
    built = one.frame_json
    second = orjson.loads(frames.event(EventHeader(FrameSubject("b").json, 2, "recovery"), one))
    assert one.frame_json is built
    assert (first["listener"], second["listener"]) == ("a", "b")
    assert first["event"] == second["event"]
