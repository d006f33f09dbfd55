"""One consumer session while a connection serves it: readers of its streams fill its queue, and its
frames come from there in the order and the window of the session. Plain module.

Concurrency contract: one event loop, one user at a time.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any
from uuid import UUID

from delivery.listening.batch import DEFAULT_LIMITS, BatchLimits
from delivery.listening.frames import FrameFormat, T
from delivery.ordering.held import Tracked
from delivery.ordering.options import order_settings
from delivery.ordering.queue import DeliveryQueue
from delivery.sessions.attachments import Attached, PositionToSave, SessionPosition, SessionSettings
from delivery.sessions.errors import SessionNotConnected
from delivery.sessions.sharing_member import SharingMember
from eventhub.access.sessions import GROUP
from eventhub.base import limits
from eventhub.base.event_loop import Waker
from registrations.catalog import SessionOwner

CHANGED = "changed"  # the reason to connect again, with other settings
_UNLIMITED = 1 << 62  # a window without acknowledgements


class ConnectedSession:
    """A session on one connection. `waker` is set when there may be work for it."""

    def __init__(self, settings: SessionSettings, attachment: UUID, waker: Waker) -> None:
        self.settings = settings
        self.attachment = attachment
        self.waker = waker
        self.transport = ""  # of its connection
        self.acknowledgements = 0  # over HTTP: so many are known here
        self.readers: dict[str, Any] = {}  # by stream; each is a SessionReader (session_reader.py)
        self.ready: dict[Any, None] = {}  # readers with events to put into the queue
        self.known_streams: set[int] = set()  # that were started, or refused
        self.may_have_new_streams = False
        self.end_reason = ""  # why the connection must end it; CHANGED: and connect again
        self.messages: list[dict[str, Any]] = []  # to send before the next events
        self.acks: list[dict[str, Any]] = []  # answers to send when the positions are saved
        self.again: dict[Tracked, None] = {}  # delivered events to deliver again, in this order
        self.member: SharingMember | None = None  # of a group that shares: events come from there
        self.reliable = settings.reliable  # for as long as it is connected
        window = settings.window_events if self.reliable else _UNLIMITED
        self.queue = DeliveryQueue(order_settings(*settings.ordering), window)
        self._acknowledges = self.reliable  # else an event counts as delivered when it is sent
        self._has_own_window = False  # set for this connection
        self._timer: asyncio.TimerHandle | None = None
        self._saved_s = 0.0
        self._is_cut = False  # whether the last frames were as many as one round sends
        self._renewed_s = monotonic()  # when all positions were saved, or read

    @classmethod
    def attached(
        cls, found: Attached, attachment: UUID, waker: Waker, transport: str
    ) -> "ConnectedSession":
        """Return a session that a connection has attached to."""
        session = cls(found.settings, attachment, waker)
        session.transport = transport
        session.acknowledgements = found.acknowledgements or 0
        return session

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def window(self) -> int | None:
        """The events that may be unacknowledged; None: events are not acknowledged."""
        return self.queue.window if self._acknowledges else None

    @property
    def owners(self) -> list[SessionOwner]:
        """The owners of its registrations: itself, and its group."""
        group, own = self.settings.session_group, SessionOwner(self.settings.id)
        shared = [] if group is None else [SessionOwner(None, group)]
        return shared if self.settings.kind == GROUP else [own, *shared]

    def set_window(self, events: int) -> None:
        """Set the window of this connection; a best-effort session acknowledges from now on."""
        self.queue.window = events
        self._has_own_window = self._acknowledges = True
        self.waker.set()

    def change(self, settings: SessionSettings, now_us: int) -> None:
        """Apply changed settings. The connection must connect again for another quality or group:
        what is sent and not acknowledged comes again.
        """
        before, self.settings = self.settings, settings
        if (before.quality, before.session_group) != (settings.quality, settings.session_group):
            self.end(CHANGED)
            return
        if before.ordering != settings.ordering:
            self.queue.set_order(order_settings(*settings.ordering), now_us)
        if self.reliable and not self._has_own_window:
            self.queue.window = settings.window_events
        self.messages.append({"op": "changed", "session": self.name, **self.described})
        self.waker.set()

    @property
    def described(self) -> dict[str, Any]:
        """The settings as messages show them."""
        settings = self.settings
        order, quality = settings.delivery_order, settings.quality
        return {"window": self.window, "order": order, "quality": quality}

    def acknowledge(self, stream: str, through: int | None, sequences: Sequence[int]) -> None:
        """Acknowledge the events up to a sequence that were sent, and single ones.

        Raises SessionNotConnected if the session does not read the stream.
        """
        if stream not in self.readers:
            raise SessionNotConnected(field="stream")
        if self.queue.held or self.ready:  # they may have waited for that
            self.waker.set()
        if through is not None:
            self.queue.acknowledge(stream, through)
        self.queue.acknowledge_each(stream, sequences)

    def redeliver(self, stream: str, sequences: Sequence[int]) -> None:
        """Have events delivered again at once that were delivered and are not acknowledged: each
        has its place in the window already.

        Raises SessionNotConnected if the session does not read the stream.
        """
        if stream not in self.readers:
            raise SessionNotConnected(field="stream")
        self.again |= dict.fromkeys(self.queue.unsettled(stream, sequences))
        self.waker.set()

    def acknowledge_elsewhere(
        self, found: Sequence[SessionPosition], acknowledgements: int
    ) -> list[SessionPosition]:
        """Apply positions as they are stored, with what others acknowledged: they know at least so
        many acknowledgements over HTTP. Return the positions that were applied.

        The number becomes known only if no stream is still to be started: its reader has an older
        position.
        """
        applied = [one for one in found if one.stream in self.readers]
        for position in applied:
            self.readers[position.stream].acknowledge_elsewhere(position)
        started = {one.stream_id for one in applied} | self.known_streams
        if all(one.stream_id in started for one in found):
            self.acknowledgements = acknowledgements
        self.waker.set()
        return applied

    def next_frames(
        self, form: FrameFormat[T], now_us: int, size: BatchLimits = DEFAULT_LIMITS
    ) -> list[T]:
        """Return the next frames of events, within the batch limits and the window."""
        frames: list[T] = []
        written, self._is_cut = 0, True
        until_s = monotonic() + limits.TIME_SLICE_S
        while len(frames) < size.events_max and written <= size.bytes_max:
            held = self.queue.pop(now_us) if self.queue.held or self.queue.needs_all else None
            if held is None:
                self._is_cut = False
                break
            frame = self.readers[held.stream].frame(held, form, now_us)
            if frame is not None:
                frames.append(frame)
                written += len(held.stored.payload)
            if frame is None or not self._acknowledges:
                self.queue.discard(held)
            if monotonic() > until_s:
                break
        self.set_timer(now_us)
        return frames

    @property
    def may_have_more(self) -> bool:
        """Whether `next_frames` may return more at once, or readers have more for the queue."""
        return self._is_cut or (bool(self.ready) and self.queue.wants_events)

    def take_positions(self, *, unchanged: bool = False) -> list[PositionToSave]:
        """Return the positions that changed since the last call, or all of them, as now and then:
        retention counts from when they were saved. A best-effort session has none.
        """
        if not self.reliable:
            return []
        self._saved_s = monotonic()
        if self._saved_s >= self._renewed_s + limits.SESSION_POSITIONS_RENEW_S:
            unchanged = True
        if unchanged:
            self._renewed_s = self._saved_s
        changed = self.queue.take_changes()
        own = self.settings.id, self.attachment, self.acknowledgements
        return [
            PositionToSave(*own, reader.info.id, *(changed.get(name) or self.queue.position(name)))
            for name, reader in self.readers.items()
            if unchanged or name in changed
        ]

    def positions_due(self) -> bool:
        """Return whether positions that advanced without acknowledgements should be saved."""
        due_s = self._saved_s + limits.SESSION_POSITIONS_INTERVAL_S
        return self.reliable and monotonic() >= due_s

    def end(self, reason: str) -> None:
        """Have the connection end the session."""
        self.end_reason = self.end_reason or reason
        self.waker.set()

    def finish(self, waker: Waker) -> None:
        """Stop the timer. `waker`: what is set from now on, since its own refers to the session."""
        self.stop_timer()
        self.waker = waker

    def stop_timer(self) -> None:
        """Wake the connection no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def set_timer(self, now_us: int) -> None:
        """Wake the connection when an event that waits for its time may be sent."""
        self.stop_timer()
        at_us = self.queue.wake_at_us()
        if at_us is not None and at_us > now_us:
            wait_s = (at_us - now_us) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self.waker.set)
