"""The rules of a session, without I/O."""

from typing import Any

import orjson
import pytest

from delivery.listening.frames import Heading, JsonFrames, ProtobufFrames, varint
from delivery.listening.protocol import Filter, Listen, Session, refusal
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


def listen(window: int | None = None, *, told: int = 0, head: int = 0) -> Listen:
    made = Listen("a", "orders", Filter(), window)
    made.began(Position(Cursor(SEGMENT, told), head))
    return made


def test_prev_is_the_last_number_that_the_reader_was_told() -> None:
    made, frames = listen(told=4, head=6), JsonFrames()
    shown = [orjson.loads(made.event(stored(n), frames)) for n in (5, 8, 9)]
    assert [(f["prev"], f["sequence"], f["liveness"]) for f in shown] == [
        (4, 5, "recovery"),
        (5, 8, "live"),
        (8, 9, "live"),
    ]


def test_a_position_is_told_once_and_prev_goes_on_from_it() -> None:
    made = listen()
    assert made.position(Cursor(SEGMENT, 0)) is None
    assert made.position(Cursor(SEGMENT, 7)) == {"segment": SEGMENT, "sequence": 7, "prev": 0}
    assert made.position(Cursor(SEGMENT, 7)) is None
    assert orjson.loads(made.event(stored(9), JsonFrames()))["prev"] == 7


def test_a_window_is_full_until_an_ack_and_acks_are_cumulative() -> None:
    made, frames = listen(window=3), JsonFrames()
    for sequence in (2, 4, 6):
        assert not made.full
        made.event(stored(sequence), frames)
    assert made.full
    made.acked(1)
    assert made.full
    made.acked(4)
    made.event(stored(7), frames)
    assert not made.full
    made.acked(100)
    assert not made.full


def test_without_a_window_nothing_is_ever_full() -> None:
    made = listen()
    for sequence in range(1, 200):
        made.event(stored(sequence), JsonFrames())
    assert not made.full


@pytest.mark.parametrize(
    ("wanted", "fields", "now_us", "wants"),
    [
        (Filter(), {}, 0, True),
        (Filter(mask=4), {"mask": 5}, 0, True),
        (Filter(mask=4), {"mask": 3}, 0, False),
        (Filter(mask=1 << 63), {"mask": 1 << 63}, 0, True),
        (Filter(), {"expires_at_us": 10}, 9, True),
        (Filter(), {"expires_at_us": 10}, 10, False),
        (Filter(zone="z"), {"attributes": {"zone": "z"}}, 0, True),
        (Filter(zone="z"), {"attributes": {"zone": "y"}}, 0, False),
        (Filter(zone="z"), {}, 0, True),  # of the whole hub
        (Filter(pairs=parse_pairs({"type": "t"})), {}, 0, True),
        (Filter(pairs=parse_pairs({"type": "u"})), {}, 0, False),
        (Filter(mask=2, pairs=parse_pairs({"type": "t"})), {}, 0, False),
    ],
)
def test_a_filter_is_mask_and_zone_and_pairs_and_life(
    wanted: Filter, fields: dict[str, Any], now_us: int, wants: bool
) -> None:
    assert wanted.wants(stored(**fields), now_us) == wants


def test_a_session_has_each_name_once_and_not_too_many() -> None:
    session = Session()
    session.listens["a"] = listen()
    with pytest.raises(errors.ListenerExists):
        session.may_add("a")
    with pytest.raises(errors.UnknownListener):
        session.find("b")
    for number in range(limits.LISTENERS_PER_SOCKET_MAX - 1):
        session.may_add(str(number))
        session.listens[str(number)] = listen()
    with pytest.raises(errors.TooManyRequests):
        session.may_add("one more")


@pytest.mark.parametrize(
    ("error", "op"),
    [
        (errors.Gone(), "gap"),
        (errors.SegmentMismatch(), "segment_mismatch"),
        (errors.LogHole(), "error"),
        (errors.Forbidden(), "error"),
    ],
)
def test_gaps_are_answers_of_their_own_name(error: errors.EventHubError, op: str) -> None:
    message = refusal(error, "a")
    assert (message["op"], message["code"], message["listener"]) == (op, error.code, "a")
    assert "listener" not in refusal(error)


@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 20_000, 300_000])
def test_a_binary_frame_is_a_server_frame_that_ends_with_the_stored_bytes(size: int) -> None:
    one = stored(3, body=b"x" * size, content_type="x/y")
    frame = ProtobufFrames().event(Heading('"quo\\"ted"', 2, "live", [7, 12]), one)
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


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 16_383, 16_384, 2**32])
def test_varint_is_protobufs(number: int) -> None:
    message = event_pb2.EventId(sequence=number).SerializeToString()
    assert message[1:] == (varint(number) if number else b"")


def test_the_json_of_an_event_is_made_once_for_all_readers() -> None:
    one, frames = stored(3), JsonFrames()
    first = orjson.loads(frames.event(Heading('"a"', 0, "live"), one))
    made = one.frame_json
    second = orjson.loads(frames.event(Heading('"b"', 2, "recovery"), one))
    assert one.frame_json is made
    assert (first["listener"], second["listener"]) == ("a", "b")
    assert first["event"] == second["event"]
