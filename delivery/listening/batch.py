"""The size of a batch of frames, and the loops for listeners whose mask alone decides and for
snapshots. Plain module.
"""

from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

from delivery.listening.frames import LIVENESS, CompiledForm, EventHeader, FrameFormat, T
from delivery.listening.protocol import NOTHING_MATCHED, ListenerState
from delivery.listening.registration_matcher import ListenerMatcher
from delivery.listening.restricted import is_restricted
from eventhub.base import limits
from eventhub.event.compiled import transcoder
from eventhub.eventlog.keyed_state import KeyState
from eventhub.eventlog.packed import PackedPage, Page
from eventhub.eventlog.stored import StoredEvent
from eventhub.types.registry import ZoneTypes


@dataclass(slots=True)
class BatchLimits:
    """The largest batch of frames; its owner may change it between two batches."""

    events_max: int = limits.FRAMES_PER_SLICE_MAX
    bytes_max: int = limits.SOCKET_WRITE_BYTES_MAX


DEFAULT_LIMITS = BatchLimits()
_SEQUENCE_MAX = (1 << 63) - 1
# None: not built, or before this version
_packed_frames = getattr(transcoder, "packed_frames", None)
_plain_frames = transcoder.plain_frames if _packed_frames else None


class Matching(NamedTuple):
    """A listener's state, the matcher of the registrations that it names, and the types of its
    zone if one has several versions.
    """

    state: ListenerState
    matcher: ListenerMatcher | None
    types: ZoneTypes | None

    @property
    def mask_decides(self) -> bool:
        """Whether the mask alone decides for events without restrictions, and no window ends."""
        state = self.state
        return state.filter.plain and state.window is None and not (self.matcher or self.types)


class PageRun(NamedTuple):
    """Events of a page: the positions where they begin and end, and the time. `read`: no other
    listener shares it.
    """

    page: Page
    at: int
    end: int
    now_us: int
    read: bool


def takes_packed(matching: Matching, form: FrameFormat[T], page: Page) -> bool:
    """Return whether packed pages after this one can be framed without an object for an event."""
    state = matching.state
    if not page or state.signature or not matching.mask_decides:
        return False
    return (
        isinstance(page, PackedPage)
        or form.compiled(state.subject_json, page[0].segment) is not None
    )


def frame_events(
    matching: Matching, form: FrameFormat[T], run: PageRun, size: BatchLimits, frames: list[T]
) -> int:
    """Append the frames of the matching events of a run, in the fastest way; return the position in
    the page after the last event evaluated.
    """
    page, at, end, now_us, read = run
    if isinstance(page, PackedPage) and matching.mask_decides:
        return frame_packed_events(matching.state, form, (page, at, end, now_us), size, frames)
    events = page.events(at, end) if isinstance(page, PackedPage) else page[at:end]
    if not matching.mask_decides:
        return frame_matching_events(matching, form, (events, at, now_us), size, frames)
    frame = frame_read_events if read else frame_plain_events
    return frame(matching.state, form, (events, at, now_us), size, frames)


def frame_matching_events(
    matching: Matching,
    form: FrameFormat[T],
    run: tuple[list[StoredEvent], int, int],
    size: BatchLimits,
    frames: list[T],
) -> int:
    """Append the frames of the matching events of a run, within the window and a time slice; return
    the position in the page after the last event evaluated. At least one is evaluated, if the
    window has room. `run`: events, their position in the page, the time.
    """
    until_s = monotonic() + limits.TIME_SLICE_S
    events, at, now_us = run
    state, matcher, types = matching
    written = 0
    for stored in events:
        if state.full or len(frames) >= size.events_max or written > size.bytes_max:
            break
        at += 1
        if state.filter.matches(stored, now_us):
            matched = NOTHING_MATCHED if matcher is None else matcher.matching(stored)
            if matcher is None or matched.ids:
                latest = types.newest_for(stored.event) if types else ""
                shaped = stored if matcher is None else matcher.shaped(stored, matched.ids)
                frames.append(state.event(shaped, form, matched, latest))
                written += len(stored.payload)
        if monotonic() > until_s:
            break
    return at


def frame_plain_events(
    state: ListenerState,
    form: FrameFormat[T],
    run: tuple[list[StoredEvent], int, int],
    size: BatchLimits,
    frames: list[T],
) -> int:
    """Append the frames of a run of events that the mask alone selects; return the position in the
    page after the last event evaluated. An event is decoded only if something in it may restrict
    its audience. `run`: events, their position in the page, the time.
    """
    events, at, now_us = run
    filter, missed = state.filter, state.missed
    mask, head = filter.mask, state.started_head
    header = EventHeader(state.subject_json, state.last_reported, missed, signature=state.signature)
    written = 0
    for stored in events:
        if len(frames) >= size.events_max or written > size.bytes_max:
            break
        at += 1
        if not stored.mask & mask:
            continue
        restricted = stored.restricted
        if restricted is None:
            restricted = is_restricted(stored)
        if restricted and not filter.matches(stored, now_us):
            continue
        sequence = stored.sequence
        header.liveness = "live" if sequence > head else missed
        frames.append(form.event(header, stored))
        header.prev = sequence
        written += len(stored.payload)
    state.last_reported = header.prev
    return at


def frame_read_events(
    state: ListenerState,
    form: FrameFormat[T],
    run: tuple[list[StoredEvent], int, int],
    size: BatchLimits,
    frames: list[T],
) -> int:
    """Do the same for a page that no other listener shares, in the transcoder: Python evaluates and
    frames only the events that the transcoder leaves to it.
    """
    events, at, now_us = run
    if _plain_frames is None or state.signature:
        return frame_plain_events(state, form, run, size, frames)
    done = written = 0
    while done < len(events) and len(frames) < size.events_max and written <= size.bytes_max:
        compiled = form.compiled(state.subject_json, events[done].segment)
        if compiled is None:
            return frame_plain_events(state, form, (events[done:], at + done, now_us), size, frames)
        options = _options(state, compiled, size, written)
        before = done
        done, state.last_reported, framed = _plain_frames(frames, events, done, options)
        written += framed
        if done == before:
            count = len(frames)
            frame_plain_events(state, form, ([events[done]], 0, now_us), size, frames)
            written += len(events[done].payload) * (len(frames) - count)
            done += 1
    return at + done


def frame_packed_events(
    state: ListenerState,
    form: FrameFormat[T],
    run: tuple[PackedPage, int, int, int],
    size: BatchLimits,
    frames: list[T],
) -> int:
    """Do the same for a packed page: only events that are left to Python become objects. `run`: the
    page, the positions where its events begin and end, the time.
    """
    page, at, end, now_us = run
    compiled = None if state.signature else form.compiled(state.subject_json, page.segment)
    if compiled is None or _packed_frames is None:
        return frame_plain_events(state, form, (page.events(at, end), at, now_us), size, frames)
    written = 0
    while at < end and len(frames) < size.events_max and written <= size.bytes_max:
        options = _options(state, compiled, size, written)
        place = page.offset(at), end - at
        evaluated, offset, state.last_reported, framed = _packed_frames(
            frames, page.packed, page.segment, place, options
        )
        written += framed
        if evaluated == 0:
            count = len(frames)
            left = page.events(at, at + 1)
            frame_plain_events(state, form, (left, 0, now_us), size, frames)
            written += len(left[0].payload) * (len(frames) - count)
            at += 1
        else:
            at += evaluated
            page.keep(at, offset)
    return at


def _options(state: ListenerState, form: CompiledForm, size: BatchLimits, written: int) -> Any:
    """Return how the transcoder frames events: `Run` there."""
    head = min(state.started_head, _SEQUENCE_MAX)
    numbers = (state.filter.mask, state.last_reported, head, LIVENESS[state.missed])
    return form.kind, form[1:], numbers, (size.events_max, size.bytes_max - written)


def frame_snapshot(
    state: ListenerState,
    form: FrameFormat[T],
    run: tuple[list[KeyState], int, int],
    size: BatchLimits,
    frames: list[T],
) -> int:
    """Append the frames of matching keys of a page of a snapshot; return the position in the page
    after the last key evaluated. `run`: the keys, the position to start from, the time.
    """
    keys, at, now_us = run
    written = 0
    end = min(len(keys), at + state.filter.events_per_slice)
    while at < end and len(frames) < size.events_max and written < size.bytes_max:
        _, key, stored = keys[at]
        at += 1
        if state.filter.matches(stored, now_us):
            frames.append(form.state(state.subject_json, key, stored))
            written += len(stored.payload)
    return at
