"""One consumer session while a connection serves it: readers of its streams fill its queue, and its
frames come from there in the order and the window of the session. Plain module.

Concurrency contract: one event loop, one user at a time.
"""

import asyncio
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

from delivery.listening.batch import DEFAULT_LIMITS, BatchLimits
from delivery.listening.frames import FrameFormat, T
from delivery.listening.listener import StreamListener
from delivery.listening.protocol import (
    NOTHING_MATCHED,
    ListenerFilter,
    ListenerState,
    MatchedRegistrations,
)
from delivery.listening.request import ListenRequest
from delivery.listening.restricted import is_restricted
from delivery.listening.services import ListenerServices
from delivery.ordering.held import HeldEvent
from delivery.ordering.options import order_settings
from delivery.ordering.queue import DeliveryQueue
from delivery.sessions.attachments import PositionToSave, SessionPosition, SessionSettings
from delivery.sessions.errors import SessionNotConnected
from delivery.sessions.matchers import SessionMatcher, SharedMatchers
from delivery.sessions.sharing_member import SharingMember
from eventhub.access.principal import Principal
from eventhub.access.sessions import GROUP
from eventhub.base import limits
from eventhub.base.errors import Gone, SegmentMismatch
from eventhub.eventlog.read import Start
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from registrations.catalog import SessionOwner

CHANGED = "changed"  # the reason to connect again, with other settings
_UNLIMITED = 1 << 62  # a window without acknowledgements
_REQUEST = ListenRequest("", passes_gaps=True, state="never", transport="session")


class ConnectedSession:
    """A session on one connection. `waker` is set when there may be work for it."""

    def __init__(self, settings: SessionSettings, attachment: UUID, waker: asyncio.Event) -> None:
        self.settings = settings
        self.attachment = attachment
        self.waker = waker
        self.readers: dict[str, SessionReader] = {}
        self.known_streams: set[int] = set()  # that were started, or refused
        self.may_have_new_streams = False
        self.end_reason = ""  # why the connection must end it; CHANGED: and connect again
        self.messages: list[dict[str, Any]] = []  # to send before the next events
        self.acks: list[dict[str, Any]] = []  # answers to send when the positions are saved
        self.member: SharingMember | None = None  # of a group that shares: events come from there
        self.reliable = settings.reliable  # for as long as it is connected
        window = settings.window_events if self.reliable else _UNLIMITED
        self.queue = DeliveryQueue(order_settings(*settings.ordering), window)
        self._acknowledges = self.reliable  # else an event counts as delivered when it is sent
        self._has_own_window = False  # set for this connection
        self._timer: asyncio.TimerHandle | None = None
        self._saved_s = 0.0
        self._renewed_s = monotonic()  # when all positions were saved, or read

    @classmethod
    def new(cls, settings: SessionSettings, waker: asyncio.Event) -> "ConnectedSession":
        """Return a session for a connection that has yet to attach to it."""
        return cls(settings, uuid4(), waker)

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
        if through is not None:
            self.queue.acknowledge(stream, through)
        self.queue.acknowledge_each(stream, sequences)
        self.waker.set()

    def next_frames(
        self, form: FrameFormat[T], now_us: int, size: BatchLimits = DEFAULT_LIMITS
    ) -> list[T]:
        """Return the next frames of events, within the batch limits and the window."""
        frames: list[T] = []
        written = 0
        until_s = monotonic() + limits.TIME_SLICE_S
        while len(frames) < size.events_max and written <= size.bytes_max:
            held = self.queue.pop(now_us)
            if held is None:
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
        id, attachment = self.settings.id, self.attachment
        return [
            PositionToSave(id, reader.info.id, attachment, *self.queue.position(name))
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


class SessionStreamState(ListenerState):
    """The state of a session's reader: with the session, and what it acknowledged before."""

    __slots__ = ("acknowledged", "matchers", "session")

    def __init__(
        self, session: ConnectedSession, matchers: SharedMatchers, position: SessionPosition
    ) -> None:
        super().__init__("", position.stream, ListenerFilter(), session=session.name)
        self.session = session
        self.matchers = matchers
        self.acknowledged: Iterable[int] = position.acknowledged


class SessionReader(StreamListener):
    """The reader of one stream of a session. Its `next_frames` puts events into the session's queue
    and returns only messages; the events come from ConnectedSession.next_frames.
    """

    _matcher: SessionMatcher

    def __init__(
        self,
        services: ListenerServices,
        info: StreamInfo,
        request: ListenRequest,
        state: SessionStreamState,
    ) -> None:
        super().__init__(services, info, request, state)
        self.session = state.session
        self._matchers = state.matchers
        self._acknowledged = state.acknowledged
        self._is_queued = False
        if isinstance(request.start, Cursor):
            self.cursor = request.start

    @classmethod
    async def start(
        cls, services: ListenerServices, principal: Principal, state: SessionStreamState, at: Cursor
    ) -> "SessionReader":
        """Start the reader of a stream after a saved position; at the end of the stream for a
        best-effort session. It is one of the session's readers until it is closed.

        Raises what StreamListener.open raises, but for gaps, which are reported and passed.
        """
        start: Start = at if state.session.reliable else "now"
        request = _REQUEST._replace(stream=state.stream, start=start)
        reader = await cls.open(services, principal, request, state)
        state.session.readers[state.stream] = reader
        return reader

    def watch(self, waker: asyncio.Event) -> None:
        """Have the waker set when the stream has new events that the session may match."""
        self._waker = self._matcher.route.waker = waker

    def due(self) -> bool:
        """Return whether events can be put into the queue, or messages wait."""
        idle = self._at == len(self._page) and self._matcher.follower.idle
        if not self._notices and (idle or not self.session.queue.wants_events):
            return False
        return super().due()

    async def fill(self) -> bool:
        """Fetch the next events, as StreamListener.fill; a position that is not of this stream's
        history any more is reported and passed.
        """
        try:
            filled = await super().fill()
        except SegmentMismatch as error:
            await self._pass_mismatch(error)
            return True
        if not filled:
            self.session.queue.set_behind(self.info.name, behind=False)
        await self._matcher.settled()
        return filled

    def next_frames(self, form: FrameFormat[T], size: BatchLimits = DEFAULT_LIMITS) -> list[T]:
        """Put the fetched events that match into the queue; return the messages that wait."""
        frames = self.notices(form)
        at = self._put_matching(self._services.clock.now_us())
        if at > self._at:
            self.cursor = self._page[at - 1].cursor
        self._advance_page(at)
        self.session.queue.set_behind(self.info.name, behind=self._has_more())
        return frames

    def frame(self, held: HeldEvent, form: FrameFormat[T], now_us: int) -> T | None:
        """Return the frame of an event from the queue; None if the client may not see it any
        more.
        """
        stored, matched = held.stored, held.item
        if is_restricted(stored) and not self.state.filter.matches(stored, now_us):
            return None
        types = self._services.types.evolved(self.info.zone_id)
        latest = types.newest_for(stored.event) if types else ""
        shaped = self.shaped(stored, matched)
        return self.state.event(shaped, form, matched, latest, held.disorder)

    def shaped(self, stored: StoredEvent, matched: MatchedRegistrations) -> StoredEvent:
        """Return what is delivered of an event (OIF-06)."""
        return self._matcher.shaped(stored, matched.ids)

    async def matched_again(self, stored: StoredEvent) -> MatchedRegistrations:
        """Return the registrations that an event matches that was delivered before; none if it has
        expired or the client may not see it any more. Raises DatabaseUnavailable.
        """
        await self._matcher.catch_up(stored.sequence - 1)
        await self._learn_types([stored])
        await self._matcher.settled()
        return self._matching(stored, self._services.clock.now_us())

    async def close(self) -> None:
        """Release everything, and remove the stream from the session: what is not acknowledged
        comes again on the next connection.
        """
        self.session.readers.pop(self.info.name, None)
        if self._is_queued:
            self._is_queued = False
            self.session.queue.remove_stream(self.info.name)
        await super().close()

    async def _select(self, principal: Principal) -> None:
        session, info = self.session, self.info
        self.state.filter = self.state.filter._replace(session=session.name)
        matchers = self._matchers.of(session.owners, info, lambda: self.cursor.sequence)
        self._matcher = await self._interest.enter_async_context(matchers)

    async def _start(self, principal: Principal) -> None:
        try:
            await super()._start(principal)
        except SegmentMismatch as error:
            await self._follow_current(error)
        self._add_to_queue(self._acknowledged)

    async def _follow(self, start: Start) -> None:
        await super()._follow(start)
        self._follower = self._matcher.follow(self._follower, self.session.queue)

    async def _record(self, principal: Principal) -> None:
        """Record nothing: the session's positions are its record."""

    async def _pass_gap(self, error: Gone) -> None:
        await super()._pass_gap(error)
        if self._is_queued:
            self.session.queue.skip(self.info.name, self.cursor)

    async def _pass_mismatch(self, error: SegmentMismatch) -> None:
        self._drop_page()
        await self._follow_current(error)
        if self._is_queued:  # else it was closed meanwhile
            self.session.queue.remove_stream(self.info.name)
            self._add_to_queue()

    async def _follow_current(self, error: SegmentMismatch) -> None:
        """Continue with the first event of the segment that is being written: those before belong
        to a history that the stream has lost. Raises the error if there is no such segment.
        """
        current = error.details.get("current")
        if current is None:
            raise error
        cursor = Cursor(current["segment"], current["first"] - 1)
        await self._follow(cursor)
        self._report_gap(error, "events", {"cursor": cursor._asdict()})

    def _add_to_queue(self, acknowledged: Iterable[int] = ()) -> None:
        behind = self.cursor.sequence < self._follower.position.head
        self.session.queue.add_stream(self.info.name, self.cursor, acknowledged, behind=behind)
        self._is_queued = True

    def _put_matching(self, now_us: int) -> int:
        """Put matching events of the page into the queue, as many as are sent in one round, while
        it takes more, within the time slice; return the position after the last event evaluated.
        """
        queue, stream, page = self.session.queue, self.info.name, self._page
        until_s = monotonic() + limits.TIME_SLICE_S
        at, skipped = self._at, None
        end = min(len(page), at + self.state.filter.events_per_slice)
        left = limits.FRAMES_PER_SLICE_MAX
        while at < end and left and not queue.full:
            stored = page[at]
            at += 1
            if monotonic() > until_s:
                end = at
            matched = self._matching(stored, now_us)
            if not matched.ids and not queue.needs_all:
                skipped = stored.cursor
                continue
            if skipped is not None:
                queue.skip(stream, skipped)
                skipped = None
            queue.put(stream, stored, now_us, matched, matches=bool(matched.ids))
            left -= 1
        if skipped is not None:
            queue.skip(stream, skipped)
        return at

    def _matching(self, stored: StoredEvent, now_us: int) -> MatchedRegistrations:
        if not self.state.filter.matches(stored, now_us):
            return NOTHING_MATCHED
        return self._matcher.matching(stored)

    def _has_more(self) -> bool:
        """Return whether more of the stream is stored than was put into the queue."""
        return self._at < len(self._page) or self._matcher.follower.has_more()
