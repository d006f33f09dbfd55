"""Pages that were read from the log are framed by the compiled transcoder as Python frames them.
Where it was not built, Python frames both.
"""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.listening.batch import (
    BatchLimits,
    frame_packed_events,
    frame_plain_events,
    frame_read_events,
)
from delivery.listening.frames import (
    CloudEventFrames,
    DelimitedFrames,
    FrameFormat,
    ItemFrames,
    JsonFrames,
    LineFrames,
    ProtobufFrames,
    SseFrames,
)
from delivery.listening.protocol import ListenerFilter, ListenerState
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.packed import PackedPage
from eventhub.eventlog.stored import Cursor, StoredEvent
from tests.unit.eventhub.event.strategies import TIMES_US, events

SEGMENTS = ["0b0e8b5e-3f0a-4f57-b1f2-5c65cbb4ad2a", "2b0e8b5e-3f0a-4f57-b1f2-5c65cbb4ad2b"]
FORMS = [
    CloudEventFrames,
    DelimitedFrames,
    ItemFrames,
    JsonFrames,
    LineFrames,
    ProtobufFrames,
    SseFrames,
]
NOW_US = 1_700_000_000_000_000
Y2000 = 946_684_800_000_000  # in microseconds since 1970


@st.composite
def pages(draw: st.DrawFn) -> list[StoredEvent]:
    """Draw consecutive events of one segment or two, some of which only Python can evaluate."""
    page = []
    segment = 0
    for sequence in range(draw(st.integers(1, 1 << 40)), 1 << 62):
        if len(page) == 12 or (page and not draw(st.integers(0, 7))):
            return page
        event = draw(events())
        segment = min(1, segment + draw(st.sampled_from([0, 0, 0, 1])))
        at_us = draw(TIMES_US)
        page.append(StoredEvent(SEGMENTS[segment], sequence, event.mask, at_us, encode(event)))
    raise AssertionError


def framed(
    frame: Any, form: FrameFormat[Any], page: list[StoredEvent], state: tuple[int, int, str]
) -> tuple[list[Any], int, int]:
    mask, head, subject = state
    listener = ListenerState(subject, "orders", ListenerFilter(mask=mask))
    listener.missed, listener.last_reported = "playback", page[0].sequence - 1
    listener.started_head = head
    frames: list[Any] = ["before"]
    at = frame(listener, form, (page, 5, NOW_US), BatchLimits(6, 900), frames)
    return frames, at, listener.last_reported


def packed(page: list[StoredEvent]) -> PackedPage:
    """Pack a page of one segment as the database does."""
    after = Cursor(page[0].segment, page[0].sequence - 1)
    parts = []
    for each in page:
        at_us, size = each.appended_at_us - Y2000, len(each.payload)
        parts += [struct.pack(">qQqi", each.sequence, each.mask, at_us, size), each.payload]
    return PackedPage(after, len(page), b"".join(parts))


def frame_packed(
    state: ListenerState,
    form: FrameFormat[Any],
    run: tuple[list[StoredEvent], int, int],
    size: BatchLimits,
    frames: list[Any],
) -> int:
    """Pack the events that are of the first one's segment, and frame them."""
    events, at, now_us = run
    page = packed([each for each in events if each.segment == events[0].segment])
    return at + frame_packed_events(state, form, (page, 0, len(page), now_us), size, frames)


@given(
    pages(), st.sampled_from([(1 << 64) - 1, 1, 3]), st.integers(0, 1 << 63), st.sampled_from("ax")
)
def test_a_page_is_framed_as_python_frames_it(
    page: list[StoredEvent], mask: int, head: int, subject: str
) -> None:
    state = (mask, head, subject.replace("x", ""))
    for kind in FORMS:
        found = []
        for frame in (frame_read_events, frame_plain_events):
            for stored in page:
                stored.restricted = stored.frame_json = None
            found.append(framed(frame, kind(), page, state))
        assert found[0] == found[1], kind
        segment = [stored for stored in page if stored.segment == page[0].segment]
        python = framed(frame_plain_events, kind(), segment, state)
        assert framed(frame_packed, kind(), segment, state) == python, kind


@given(pages(), st.data())
def test_a_packed_page_is_framed_from_any_position(
    page: list[StoredEvent], data: st.DataObject
) -> None:
    page = [stored for stored in page if stored.segment == page[0].segment]
    found = packed(page)
    assert [stored.payload for stored in found.events(0, len(found))] == [
        stored.payload for stored in page
    ]
    size = BatchLimits(2, 1 << 20)
    for at in data.draw(st.lists(st.integers(0, len(page) - 1), min_size=3, max_size=6)):
        frames: list[str] = []
        state = ListenerState("", "orders", ListenerFilter())
        run = (found, at, len(page), NOW_US)
        end = frame_packed_events(state, JsonFrames(), run, size, frames)
        expected: list[str] = []
        state = ListenerState("", "orders", ListenerFilter())
        rest = (page[at:], at, NOW_US)
        assert end == frame_plain_events(state, JsonFrames(), rest, size, expected)
        assert frames == expected
        assert found.cursor(at) == page[at].cursor == found[at].cursor


def test_a_damaged_event_is_left_to_python() -> None:
    payload = encode(Event("a", "b", {"x": 1}))
    page = [
        StoredEvent(SEGMENTS[0], at, 1, NOW_US, payload + b"\x0a" * (at == 2)) for at in (1, 2, 3)
    ]
    with pytest.raises(Exception, match=r"[Tt]runcated|DecodeError|parsing"):
        framed(frame_read_events, JsonFrames(), page, (1, 0, ""))
    frames, at, last = framed(frame_read_events, ProtobufFrames(), page[:1], (1, 0, ""))
    assert (len(frames), at, last) == (2, 6, 1)


@pytest.mark.parametrize("form", [ItemFrames, LineFrames, JsonFrames])
@pytest.mark.parametrize("frame", [frame_read_events, frame_packed])
def test_a_text_that_is_not_utf_8_is_left_to_python(form: Any, frame: Any) -> None:
    """Lines and pages had the damaged bytes, which no reader of JSON accepts."""
    payload = encode(Event("a", "b", {"x": 1}, summary="a long text"))
    damaged = payload.replace(b"long", b"l\xffng")
    page = [StoredEvent(SEGMENTS[0], at, 1, NOW_US, damaged) for at in (1, 2)]
    with pytest.raises(Exception, match=r"DecodeError|parsing|utf-8|UTF-8"):
        framed(frame, form(), page, (1, 0, ""))
