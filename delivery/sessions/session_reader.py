"""The reader of one stream of a connected session: it puts the events that match the registrations
of the session, or of its group, into the session's queue. Plain module.

Concurrency contract: one event loop, one user at a time.
"""

from collections.abc import Iterable
from time import monotonic

from delivery.listening.batch import DEFAULT_LIMITS, BatchLimits
from delivery.listening.fan_out import HeadReader
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
from delivery.sessions.attachments import SessionPosition
from delivery.sessions.connected import ConnectedSession
from delivery.sessions.event_routing import RoutedEvent
from delivery.sessions.matchers import SessionMatcher, SharedMatchers
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import Gone, SegmentMismatch
from eventhub.base.event_loop import Waker
from eventhub.eventlog.packed import Page
from eventhub.eventlog.read import ReadLimits, Start
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo

_REQUEST = ListenRequest("", passes_gaps=True, state="never", transport="session")


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
        self._mismatched: Cursor | None = None  # a position of a history that the stream has lost
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

    def acknowledge_elsewhere(self, position: SessionPosition) -> None:
        """Apply a position as it is stored, with what others acknowledged."""
        if self._is_queued and position.cursor != self._mismatched:
            queue, name = self.session.queue, self.info.name
            queue.acknowledge_elsewhere(name, position.cursor, position.acknowledged)

    def watch(self, waker: Waker, to: HeadReader | None = None) -> None:
        """Have the waker set when the stream has new events that the session may match."""
        self._waker = self._matcher.route.waker = waker

    def unwatch(self) -> None:
        super().unwatch()
        self._matcher.route.waker = None

    def may_continue(self) -> bool:
        """Return whether there are more events to put into the queue, or messages."""
        idle = self._at == len(self._page) and self._matcher.follower.idle
        return bool(self._notices) or not idle

    async def page_completed(self, within_s: float) -> bool:
        """Wait for the page that is being read; return whether the next events can be fetched."""
        return await self._pages.completed(within_s) and self.due()

    def put_routed(self, now_us: int) -> bool | None:
        """Put the next events of the route into the queue, if it takes some; return whether there
        were any. None: they do not come from the route, but with `fill` and `next_frames`.
        """
        follower, queue = self._matcher.follower, self.session.queue
        if self._notices or self._page or self._pages.under_way or not follower.serves:
            return None
        found = follower.next_routed() if queue.wants_events else []
        for routed in found:
            if queue.full:
                break
            self._put_one(routed, now_us)
        if found:
            queue.set_behind(self.info.name, behind=follower.has_more())
        return bool(found)

    def _put_one(self, routed: RoutedEvent, now_us: int) -> None:
        queue, stored = self.session.queue, routed.stored
        visible = routed.versions and self.state.filter.matches(stored, now_us)
        matched = self._matcher.holding(routed) if visible else NOTHING_MATCHED
        self._matcher.follower.advance_to(stored)
        self.cursor = self._matcher.follower.cursor
        if matched.ids:
            queue.put(self.info.name, stored, now_us, matched)
        else:
            queue.skip(self.info.name, self.cursor)

    def _put(self, page: Page, *, read: bool) -> None:
        """Set the page; one from blocks counts as read, because it outlives them."""
        super()._put(page, read=read or self._matcher.follower.shares_blocks)

    def _catches_up(self) -> bool:
        """Return whether it passes stored events, also from blocks."""
        return self._counted > 0 or not self._matcher.follower.at_head

    def due(self) -> bool:
        """Return whether events can be put into the queue, or messages wait."""
        if not self._notices and not (self.may_continue() and self.session.queue.wants_events):
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
        await self._matcher.catch_up(stored.sequence - 1, stored.sequence)
        await self._learn_types([stored])
        await self._matcher.settled()
        return self._matching(stored, self._services.clock.now_us())

    async def read_again(self, sequence: int) -> StoredEvent | None:
        """Read an event that was delivered before; None if it is no longer stored. Raises
        DatabaseUnavailable.
        """
        log = self._services.log
        try:
            before = await log.cursor_before(self.info.id, sequence)
            found = await log.reader(self.info.id)(before, ReadLimits(1))
        except (Gone, SegmentMismatch):
            return None
        return found[0] if found and found[0].sequence == sequence else None

    async def close(self) -> None:
        """Release everything, and remove the stream from the session: what is not acknowledged
        comes again on the next connection.
        """
        self.session.readers.pop(self.info.name, None)
        self.session.ready.pop(self, None)
        if self._is_queued:
            self._is_queued = False
            self.session.queue.remove_stream(self.info.name)
        await super().close()

    async def _select(self, principal: Principal) -> None:
        session, info = self.session, self.info
        self.state.filter = self.state.filter._replace(session=session.name)
        about = session.owners, info, lambda: self.cursor.sequence
        self._matcher = await self._matchers.open(self._interest, *about)
        if isinstance(self._request.start, Cursor):
            self._matcher.load_ahead(self._request.start.sequence)

    async def _start(self, principal: Principal) -> None:
        try:
            await super()._start(principal)
        except SegmentMismatch as error:
            await self._follow_current(error)
        self._add_to_queue(self._acknowledged)

    async def _follow(self, start: Start) -> None:
        await super()._follow(start)
        self._follower = self._matcher.follow(self._follower, self.session.queue)
        if not self._follower.live:
            self._pages.start(self._follower)  # while the session is announced

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
        self._mismatched = self.cursor
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
