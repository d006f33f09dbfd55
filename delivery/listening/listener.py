"""One listener over any transport: its request, its position, and the frames that come next. Plain
module.

Websockets, server-sent events, long polls, pages and streams of history, and the hub inside a
process use it the same way: `fill`, then `next_frames` until nothing is left, then wait for the
ring.

Concurrency contract: one event loop, one user at a time; only a read ahead is a task of its own.
"""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Self

from delivery.listening import batch
from delivery.listening.audit_trail import AuditTrail, new_listener
from delivery.listening.batch import DEFAULT_LIMITS, BatchLimits
from delivery.listening.catchup import PageMemory, PageReader, TimeSlices, page_bytes
from delivery.listening.fan_out import HeadReader, Place
from delivery.listening.filtering import compile_filter
from delivery.listening.frames import FrameFormat, T
from delivery.listening.protocol import ListenerFilter, ListenerState, refusal, resume_cursor
from delivery.listening.registration_matcher import (
    ListenerMatcher,
    RegistrationMatcher,
    require_own,
)
from delivery.listening.request import ListenRequest
from delivery.listening.services import ListenerServices
from delivery.listening.version_loader import RegistrationSet
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import EventHubError, Gone
from eventhub.base.event_loop import Waker
from eventhub.base.fair_queue import HUB_WORK
from eventhub.eventlog.keyed_state import KeyState, StatePage, read_state
from eventhub.eventlog.log import Follower
from eventhub.eventlog.packed import PackedPage, Page, cursor_at
from eventhub.eventlog.read import Start
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.postgresql.connections import reading
from eventhub.types.registry import ZoneHierarchy
from registrations.interest.listeners import interest_text

_NEVER_LIVE = 1 << 63  # above every sequence


class StreamListener:
    """An open listener. Create it with `open`; `close` it."""

    def __init__(
        self,
        services: ListenerServices,
        info: StreamInfo,
        request: ListenRequest,
        state: ListenerState,
    ) -> None:
        self.info = info
        self.state = state
        self.cursor = Cursor("", 0)  # the last event evaluated
        self.end_reason = "disconnected"  # for the record
        self._services = services
        self._request = request
        self._follower: Follower
        self._hierarchy: ZoneHierarchy
        self._matcher: ListenerMatcher | None = None
        self._interest = AsyncExitStack()
        self._following: AbstractAsyncContextManager[Follower] | None = None
        self._page: Page = []
        self._keys: list[KeyState] = []  # of a page of the snapshot
        self._at = 0  # position in the page after the last event evaluated
        self._counted = 0  # bytes of the page that are counted in PageMemory
        self._pages: PageReader
        self._snapshot: StatePage | None = None  # the next page of the snapshot being sent
        self._notices: list[dict[str, Any]] = []  # messages to send before the next events
        self._predicate = ""  # its filter in predicate form
        self._trail = AuditTrail()
        self._waker: Waker | None = None
        self._place: Place | None = None  # in the fan-out of its stream
        self._owner = HUB_WORK  # the client that it works for
        self._slices: TimeSlices

    @classmethod
    async def open(
        cls,
        services: ListenerServices,
        principal: Principal,
        request: ListenRequest,
        state: ListenerState | None = None,
    ) -> Self:
        """Start a listener of a client.

        `state` carries its name and window; its filter is set here. Raises Forbidden,
        StreamDeleting, UnknownStream, UnknownChannel, UnknownRegistration, and those of Log.follow.
        """
        principal.require_listen(request.stream)
        info = await services.authorizer.stream(principal, request.stream)
        request.require_events(info)
        state = state or ListenerState("", request.stream, ListenerFilter())
        hierarchy = ZoneHierarchy(services.types, info.zone_id)
        filter = await compile_filter(services.authorizer, principal, request)
        state.filter, state.signature = filter._replace(hierarchy=hierarchy), request.signature
        resumes = isinstance(request.start, Cursor) and not request.history
        if info.zone_id is not None:
            await services.types.zone(info.zone_id)
        state.missed = "recovery" if resumes else "playback"
        listener = cls(services, info, request, state)
        listener._hierarchy = hierarchy
        listener._owner = principal.queue_owner
        listener._slices = TimeSlices(services.catch_up.slices, listener._owner)
        listener._pages = PageReader(services.catch_up.reads, listener._owner)
        metrics.LISTENERS.inc()
        try:
            await listener._start(principal)
            await listener._record(principal)
        except BaseException:
            await listener.close()
            raise
        return listener

    async def _select(self, principal: Principal) -> None:
        """Set up the matcher of the registrations, or announce the filter as interest."""
        ids = self._request.registrations
        services, info = self._services, self.info
        if ids:
            await require_own(services.log, principal, ids, info.id)
            about = RegistrationSet(ids), info.id, self._hierarchy
            matcher = RegistrationMatcher.open(services.versions, services.feed, *about)
            self._matcher = await self._interest.enter_async_context(matcher)
            return
        self._predicate = interest_text(self.state.filter.pairs, self.state.filter.tree)
        present = services.closures.listeners.present(info, principal.client_id, self._predicate)
        await self._interest.enter_async_context(present)

    async def _start(self, principal: Principal) -> None:
        await self._select(principal)
        if self._request.state == "always" and self._has_snapshot():
            await self._follow_snapshot()
            return
        try:
            await self._follow(self._request.start)
        except Gone as error:
            await self._pass_gap(error)

    async def _record(self, principal: Principal) -> None:
        """Record the listener; wait for the commit, except for pages of history."""
        new = new_listener(principal, self.info, self._request, self.state, self._predicate)
        if new is not None:
            new = new._replace(start=self._actual_start(new.start), after=self.cursor)
            await self._trail.start(self._services.recorder, new, waits=not self._request.history)

    def _actual_start(self, start: str) -> str:
        return "state" if self._snapshot else "gap" if self._notices else start

    async def close(self) -> None:
        """Release everything; call `unwatch` before if it was watched."""
        self._pages.close()
        self._slices.drop()
        self._trail.end(self.end_reason)
        self._drop_page()
        metrics.LISTENERS.dec()
        await _leave(self._following)
        await self._interest.aclose()

    def mark_started(self) -> dict[str, Any]:
        """Mark the start at the follower's position, and return the message that says so."""
        message = self.state.start(self._follower.position)
        if self._request.history:
            self.state.started_head = _NEVER_LIVE
        return message

    @property
    def is_expensive(self) -> bool:
        """Whether a batch may take long, though it has few frames."""
        return self._matcher is not None or self.state.filter.cost > 0

    def _takes_turns(self, to: HeadReader) -> bool:
        """Return whether it evaluates each event by itself: it would delay the fan-out."""
        costly = self.state.filter.cost > limits.FAN_OUT_FILTER_COST_MAX
        return costly or to.every_event or self._matcher is not None

    def watch(self, waker: Waker, to: HeadReader | None = None) -> None:
        """Have the waker set when the stream has new events. `to`: what gets them from the fan-out
        instead, while the listener is at the head; None for a listener of a session.
        """
        self.unwatch()
        self._waker = waker
        if to is not None:
            self._place = Place(self, to, waker)
            self._services.fan_outs.add(self._follower.ring, self.info.zone_id, self._place)

    @property
    def at_head(self) -> bool:
        """Whether the fan-out sends it the next event."""
        return self._place is not None and self._place.at_head

    def pass_to(self, cursor: Cursor, delivered_events: int) -> None:
        """Continue after a cursor: the fan-out has sent the matching events up to it."""
        self.cursor = self._follower.cursor = cursor
        self._trail.advance(cursor, delivered_events)

    async def authenticate(self, principal: Principal) -> None:
        """Apply the current rights of the principal. Raises Forbidden, StreamDeleted."""
        principal.require_listen(self.info.name)
        await self._services.authorizer.require_present(principal, self.info)
        self.state.filter = self.state.filter.for_principal(principal)

    def unwatch(self) -> None:
        """Remove the waker, which may refer to this listener."""
        self._waker = None
        if self._place is not None:
            self._services.fan_outs.remove(self._place)
            self._place = None

    def may_continue(self) -> bool:
        """Return whether `next_frames` may have left something to send at once."""
        return True

    def due(self) -> bool:
        """Return whether `fill` and `next_frames` may run now. If not, the waker is set when they
        may: this listener, catching up, has a time slice, or its page is complete.
        """
        if not self._notices and self._at == len(self._page) and self._snapshot is None:
            if not self._follower.live:
                self._pages.start(self._follower)
            if not self._pages.ready(self._waker):
                return False
        return not self._catches_up() or self._slices.due(self._waker)

    async def wait_for_slice(self) -> None:
        """Wait for a time slice while it catches up."""
        if self._catches_up():
            await self._slices.wait()

    def _catches_up(self) -> bool:
        """Return whether it sends stored pages, not events of the ring."""
        return self._counted > 0 or bool(self._keys) or not self._follower.live

    async def fill(self) -> bool:
        """Fetch the next events or notices; return False if there are none yet.

        Raises DatabaseUnavailable, LogHole, SegmentMismatch, UnknownRegistration, and Gone when the
        reader has to decide.
        """
        if self._place is not None:
            self._place.at_head = False
        if self._notices or self._at < len(self._page):
            return True
        try:
            if self._snapshot is not None:
                return await self._fill_snapshot(self._snapshot)
            return await self._fill_events()
        except Gone as error:
            await self._pass_gap(error)
            return True

    async def _fill_events(self) -> bool:
        pages, follower = self._pages, self._follower
        found = None if pages.under_way else follower.next_in_ring(limits.FRAMES_PER_SLICE_MAX)
        page: Page = await pages.take(follower) if found is None else found
        if not page:
            if self._place is not None and not self._takes_turns(self._place.to):
                self._place.at_head = follower.live
            return False
        if not isinstance(page, PackedPage):
            if self._matcher is not None:
                await self._matcher.catch_up(self.cursor.sequence, page[-1].sequence)
                page = await self._matcher.narrowed(page)
            await self._learn_types(page)
        follower.cursor = cursor_at(page, len(page) - 1)
        self._put(page, read=found is None)
        return True

    async def _learn_types(self, page: Iterable[StoredEvent]) -> None:
        """Load the declared types of the events, if a filter may test them."""
        if self._matcher is not None:
            through = self._services.feed.applied.sequence
            await self._matcher.learn([stored.event for stored in page], through=through)
        elif self.state.filter.tree is not None:
            await self._hierarchy.learn([stored.event for stored in page])

    def _put(self, page: Page, *, read: bool) -> None:
        """Set the page to send. A page that was read is counted in PageMemory: above the bound, the
        part that is not sent at once is dropped and read again.
        """
        self._drop_page()
        self._page = page
        if read:
            self._counted = page_bytes(page)
            PageMemory.bytes += self._counted

    def _drop_page(self) -> None:
        PageMemory.bytes -= self._counted
        self._page, self._keys, self._at, self._counted = [], [], 0, 0

    async def _fill_snapshot(self, page: StatePage) -> bool:
        reads = self._services.catch_up.reads
        async with reads.hold(self._owner), reading(self._services.log.pool) as connection:
            keys = await read_state(connection, self.info.id, page)
        if keys:
            await self._learn_types(state.stored for state in keys)
            self._snapshot = page._replace(after=keys[-1].digest)
            self._put([state.stored for state in keys], read=True)
            self._keys = keys
            return True
        self._snapshot = None
        cursor = self._follower.position.cursor._asdict()
        self._notices.append({"op": "state_end", **self.state.subject.fields, "cursor": cursor})
        return True

    def next_frames(self, form: FrameFormat[T], size: BatchLimits = DEFAULT_LIMITS) -> list[T]:
        """Return the next frames of what was fetched, within the batch limits, the window and the
        time slice.
        """
        frames = self.notices(form)
        notices = len(frames)
        now_us = self._services.clock.now_us()
        if self._keys:
            snapshot = self._keys, self._at, now_us
            self._at = batch.frame_snapshot(self.state, form, snapshot, size, frames)
            if self._at == len(self._keys):
                self._drop_page()
            return frames
        types = self._services.types.evolved(self.info.zone_id)
        state, page, at = self.state, self._page, self._at
        end = min(len(page), at + state.filter.events_per_slice)
        matching = batch.Matching(state, self._matcher, types)
        run = batch.PageRun(page, at, end, now_us, bool(self._counted))
        at = batch.frame_events(matching, form, run, size, frames)
        self._pages.packs = run.read and batch.takes_packed(matching, form, page)
        if at > self._at:
            self.cursor = cursor_at(page, at - 1)
            self._trail.advance(self.cursor, len(frames) - notices)
        self._advance_page(at)
        return frames

    def _advance_page(self, at: int) -> None:
        """Advance in the page; read ahead meanwhile, and drop it at its end."""
        page, self._at = self._page, at
        if at == len(page):
            self._drop_page()
        elif self._counted and PageMemory.bytes > limits.LISTEN_PAGES_BYTES_TOTAL_MAX:
            self._drop_page()
            self._pages.forget()
            self._follower.cursor = self.cursor
            return
        if len(page) > limits.FRAMES_PER_SLICE_MAX and not self._follower.live:
            self._pages.start(self._follower)

    async def _follow(self, start: Start) -> None:
        """Continue from a start."""
        following, old = self._services.log.follow(self.info, start), self._following
        async with self._services.catch_up.opens.hold(self._owner):
            self._follower = await following.__aenter__()
        self._following = following
        if self._waker is not None:
            self.watch(self._waker, None if self._place is None else self._place.to)
        await _leave(old)
        if self._matcher is not None:
            self._matcher.confirm_ahead(self._follower.position.head)
        self.cursor = self._follower.position.cursor
        self.mark_started()

    async def _pass_gap(self, error: Gone) -> None:
        """Report missing events and continue after them, if so requested; else raise the error."""
        self._drop_page()
        resume = resume_cursor(error)
        if self._request.state != "never" and self._has_snapshot():
            await self._follow_snapshot()
            self._report_gap(error, "state", {})
        elif self._request.passes_gaps and resume is not None:
            await self._follow(resume)
            self._report_gap(error, "events", {"cursor": resume._asdict()})
        else:
            raise error
        self._trail.skip_gap(self._actual_start("gap"), self.cursor)

    def _report_gap(self, error: EventHubError, then: str, more: dict[str, Any]) -> None:
        self._notices.append({**refusal(error, self.state.subject), "then": then, **more})

    def _has_snapshot(self) -> bool:
        return self.info.keyed and not self._request.registrations

    async def _follow_snapshot(self) -> None:
        """Send the snapshot at the head first, then the events after it (SUN-29)."""
        await self._follow("now")
        self._snapshot = StatePage(b"", self.cursor.sequence)

    def notices(self, form: FrameFormat[T]) -> list[T]:
        """Return the messages to send before the next events."""
        notices, self._notices = self._notices, []
        return [form.message(message) for message in notices]


async def _leave(following: AbstractAsyncContextManager[Follower] | None) -> None:
    if following is not None:
        await following.__aexit__(None, None, None)
