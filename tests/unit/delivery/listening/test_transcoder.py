"""Frames from stored bytes by the compiled transcoder equal those that Python writes. Where it was
not built, Python writes both.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.listening import frames
from delivery.listening.frames import (
    EventHeader,
    FrameSubject,
    JsonFrames,
    Liveness,
    ProtobufFrames,
)
from eventhub.event import event_pb2
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.stored import StoredEvent
from tests.unit.eventhub.event.strategies import INT64, TIMES_US, events

SEGMENT = "0b0e8b5e-3f0a-4f57-b1f2-5c65cbb4ad2a"
LIVENESS: list[Liveness] = ["live", "recovery", "playback"]


def both(stored: StoredEvent, header: EventHeader) -> list[tuple[str, bytes]]:
    """Return the event's frames of the transcoder and of Python."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            stored.frame_json = None
            json, binary = JsonFrames(), ProtobufFrames()
            found.append((json.event(header, stored), binary.event(header, stored)))
            patch.setattr(frames, "transcoder", None)
    return found


@given(events(), INT64, TIMES_US, st.sampled_from(LIVENESS))
def test_frames_equal_those_of_python(
    event: Event, sequence: int, appended_at_us: int, liveness: Liveness
) -> None:
    stored = StoredEvent(SEGMENT, sequence, event.mask, appended_at_us, encode(event))
    header = EventHeader(FrameSubject("mine").json, max(sequence - 1, 0), liveness)
    transcoded, written = both(stored, header)
    assert transcoded == written


@pytest.mark.parametrize("code", range(0x20))
def test_control_characters_are_escaped_as_python_does(code: int) -> None:
    event = Event("a", f"<{chr(code)}>", {chr(code): '"\\'}, summary='"\\/\x7f\u2028é😀')
    stored = StoredEvent(SEGMENT, 1, event.mask, 0, encode(event))
    transcoded, written = both(stored, EventHeader("", 0, "live"))
    assert transcoded == written


@pytest.mark.parametrize("body", [b'{\n "a": [1,\r\n 2]\n}', b"0", b'"\\n"', b""])
@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_bodies_are_on_one_line_as_python_writes_them(body: bytes, content_type: str) -> None:
    event = Event("a", "b", {}, body=body or b"1", content_type=content_type)
    stored = StoredEvent(SEGMENT, 1, event.mask, 0, encode(event))
    transcoded, written = both(stored, EventHeader("", 0, "live"))
    assert transcoded == written
    assert "\n" not in transcoded[0]


@pytest.mark.parametrize(
    "more",
    [
        event_pb2.Event(expires_at_us=2**62).SerializeToString(),  # after the year 9999
        b"\x98\x06\x01",  # a field 99 of a later release
        event_pb2.Event(producer_id=event_pb2.EventId(client="c")).SerializeToString() * 2,
        b"\x0a",  # cut off
    ],
)
def test_what_it_cannot_write_is_left_to_python(more: bytes) -> None:
    stored = StoredEvent(SEGMENT, 1, 1, 0, encode(Event("a", "b", {"x": 1})) + more)

    def written() -> str:
        stored.frame_json = None
        try:
            return frames.shared_json(stored)
        except Exception as error:
            return repr(error)

    first = written()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "transcoder", None)
        assert first == written()


def test_events_of_several_subjects_and_segments_alternate() -> None:
    stored = [
        StoredEvent(segment, at, 1, at, encode(Event("a", "b", {})))
        for at, segment in enumerate([SEGMENT, SEGMENT[::-1], SEGMENT], 1)
    ]
    subjects = [
        FrameSubject("x"),
        FrameSubject("", "s", "orders"),
        FrameSubject("x"),
        FrameSubject(),
    ]
    form = ProtobufFrames()
    for subject in subjects:
        for one in stored:
            header = EventHeader(subject.json, one.sequence - 1, "live")
            frame = event_pb2.ServerFrame.FromString(form.event(header, one)).event
            assert (frame.segment, frame.sequence, frame.event) == (
                one.segment,
                one.sequence,
                one.payload,
            )
            assert (frame.listener, frame.session, frame.stream) == subject
