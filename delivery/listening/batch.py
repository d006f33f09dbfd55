"""The size of a batch of frames, and the loops for listeners whose mask alone decides and for
snapshots. Plain module.
"""

from dataclasses import dataclass

from delivery.listening.frames import EventHeader, FrameFormat, T
from delivery.listening.protocol import ListenerState
from delivery.listening.restricted import is_restricted
from eventhub.base import limits
from eventhub.eventlog.keyed_state import KeyState
from eventhub.eventlog.stored import StoredEvent


@dataclass(slots=True)
class BatchLimits:
    """The largest batch of frames; its owner may change it between two batches."""

    events_max: int = limits.FRAMES_PER_SLICE_MAX
    bytes_max: int = limits.SOCKET_WRITE_BYTES_MAX


DEFAULT_LIMITS = BatchLimits()


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
