"""One listen, whatever the door: what is wanted, where the reader stands, what it was told, and
what comes next. Plain module.

The websocket, server-sent events, long polls, pages and streams of history, and the hub inside a
process all go on alike: `fill`, then `tell` until nothing is left, then wait for the ring.

Concurrency contract: one event loop, one user at a time; a read ahead is the only task of its own.
"""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any, Literal, NamedTuple

from delivery.listening.batch import TURN, Turn, tell_plain
from delivery.listening.catchup import CatchUp, Held, Pages, Ticket, bytes_of
from delivery.listening.filtering import filter_of
from delivery.listening.frames import Form, T
from delivery.listening.interest import Interest, require_own
from delivery.listening.protocol import Filter, Listen, refusal
from delivery.listening.record import Record
from delivery.listening.recorded import Trail, recorded
from delivery.listening.request import Wish
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import Gone
from eventhub.base.fair_queue import HUB
from eventhub.eventlog.keyed_state import KeyState, StatePage, read_state
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.read import Start
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.postgresql.connections import reading
from eventhub.types.registry import TypeRegistry, ZoneHierarchy
from registrations.feed import Feed
from registrations.interest.listeners import interest_text
from registrations.interest.live import Closures

_NEVER_LIVE = 1 << 63  # above every sequence


class Sources(NamedTuple):
    """What listens need of their process."""

    log: Log
    authorizer: Authorizer
    feed: Feed
    clock: Clock
    types: TypeRegistry
    closures: Closures
    record: Record
    catch_up: CatchUp


class Listening:
    """A listen under way. Make it with `open`, and `close` it."""

    def __init__(self, sources: Sources, info: StreamInfo, wish: Wish, listen: Listen) -> None:
        self.info = info
        self.listen = listen
        self.cursor = Cursor("", 0)  # the last event looked at
        self.why = "disconnected"  # its recorded end reason
        self._sources = sources
        self._wish = wish
        self._follower: Follower
        self._hierarchy: ZoneHierarchy
        self._interest: Interest | None = None
        self._interested = AsyncExitStack()
        self._following = AsyncExitStack()
        self._page: list[StoredEvent] = []
        self._keys: list[KeyState] = []  # of a page of state
        self._at = 0  # how far the page was looked at
        self._held = 0  # bytes of the page that are counted in Held
        self._pages: Pages
        self._state: StatePage | None = None  # the next page of the snapshot that is being told
        self._news: list[dict[str, Any]] = []  # messages that come before what follows
        self._text = ""  # what its filter lets through, in predicate form
        self._trail = Trail()
        self._waker: asyncio.Event | None = None
        self._party = HUB  # the client that it works for
        self._ticket: Ticket

    @classmethod
    async def open(
        cls, sources: Sources, principal: Principal, wish: Wish, listen: Listen | None = None
    ) -> "Listening":
        """Begin a listen of a caller.

        `listen` carries its name and window; its filter is set here. Raises Forbidden,
        UnknownStream, UnknownChannel, UnknownRegistration, and what Log.follow raises.
        """
        principal.require_listen(wish.stream)
        info = await sources.authorizer.stream(principal, wish.stream)
        listen = listen or Listen("", wish.stream, Filter())
        hierarchy = ZoneHierarchy(sources.types, info.zone_id)
        listen.filter = (await filter_of(sources.authorizer, principal, wish))._replace(
            hierarchy=hierarchy
        )
        known = isinstance(wish.start, Cursor) and not wish.history
        if info.zone_id is not None:
            await sources.types.zone(info.zone_id)
        listen.missed = "recovery" if known else "playback"
        made = cls(sources, info, wish, listen)
        made._hierarchy = hierarchy
        made._party = principal.party
        made._ticket = Ticket(sources.catch_up.turns, made._party)
        made._pages = Pages(sources.catch_up.reads, made._party)
        metrics.LISTENERS.inc()
        try:
            await made._begin(principal)
            await made._go_on_record(principal)
        except BaseException:
            await made.close()
            raise
        return made

    async def _begin(self, principal: Principal) -> None:
        ids = self._wish.registrations
        if ids:
            await require_own(self._sources.log, principal, ids, self.info.id)
            interest = Interest.open(
                self._sources.log, self._sources.feed, ids, self.info.id, self._hierarchy
            )
            self._interest = await self._interested.enter_async_context(interest)
        else:
            self._text = interest_text(self.listen.filter.pairs, self.listen.filter.tree)
            listens = self._sources.closures.listeners
            present = listens.present(self.info, principal.client_id, self._text)
            await self._interested.enter_async_context(present)
        if self._wish.state == "always" and self._restates():
            await self._from_state()
            return
        try:
            await self._follow(self._wish.start)
        except Gone as error:
            await self._pass(error)

    async def _go_on_record(self, principal: Principal) -> None:
        """Before anything is told, unless it is asked for page by page."""
        begun = recorded(principal, self.info, self._wish, self.listen, self._text)
        if begun is not None:
            begun = begun._replace(start=self._kind(begun.start), after=self.cursor)
            waits = not self._wish.history
            await self._trail.begin(self._sources.record, begun, waits=waits)

    def _kind(self, start: str) -> str:
        """Of its beginning, for the record: it may be another than was asked for."""
        return "state" if self._state else "gap" if self._news else start

    async def close(self) -> None:
        """Let go of everything; call `unwatch` before if it was watched."""
        self._pages.close()
        self._ticket.drop()
        self._trail.end(self.why)
        self._drop_page()
        metrics.LISTENERS.dec()
        await self._following.aclose()
        await self._interested.aclose()

    def began(self) -> dict[str, Any]:
        """The message that the listen has begun, and where."""
        message = self.listen.began(self._follower.position)
        if self._wish.history:
            self.listen.started_head = _NEVER_LIVE
        return message

    @property
    def is_expensive(self) -> bool:
        """Whether a turn may take long, though little is told."""
        return self._interest is not None or self.listen.filter.cost > 0

    def watch(self, waker: asyncio.Event) -> None:
        """Have it set when the stream goes on."""
        self._waker = waker
        self._follower.ring.wakers.add(waker)

    def seen_by(self, principal: Principal) -> None:
        """Tell what the reader may see as it is now. Raises Forbidden if it may not listen."""
        principal.require_listen(self.info.name)
        self.listen.filter = self.listen.filter.seen_by(principal)

    def unwatch(self) -> None:
        """The opposite; a waker that others share must be given to `watch` again."""
        if self._waker is not None:
            self._follower.ring.wakers.discard(self._waker)

    def due(self) -> bool:
        """True if `fill` and `tell` may go on now. If not, the waker is set when they may: it is
        this listen's turn among those that catch up, or its page is there.
        """
        if not self._news and self._at == len(self._page) and self._state is None:
            if not self._follower.live:
                self._pages.begin(self._follower)
            if not self._pages.there(self._waker):
                return False
        return not self._behind() or self._ticket.due(self._waker)

    async def its_turn(self) -> None:
        """Wait until it is this listen's turn, if it catches up."""
        if self._behind():
            await self._ticket.wait()

    def _behind(self) -> bool:
        """True while it tells what it has read; what the ring holds is live."""
        return self._held > 0 or bool(self._keys) or not self._follower.live

    async def fill(self) -> bool:
        """Have something at hand to be told; False when there is nothing yet.

        Raises DatabaseUnavailable and its kin, LogHole, SegmentMismatch, UnknownRegistration, and
        Gone when the reader has to decide.
        """
        if self._news or self._at < len(self._page):
            return True
        try:
            if self._state is not None:
                return await self._fill_state(self._state)
            return await self._fill_events()
        except Gone as error:
            await self._pass(error)
            return True

    async def _fill_events(self) -> bool:
        pages, follower = self._pages, self._follower
        page = None if pages.under_way else follower.ready(limits.FRAMES_PER_SLICE_MAX)
        read = page is None
        if page is None:
            page = await pages.take(follower)
        if not page:
            return False
        if self._interest is not None:
            await self._interest.catch_up(self.cursor.sequence)
        await self._learn(page)
        follower.took(page[-1])
        self._put(page, read=read)
        return True

    async def _learn(self, page: Iterable[StoredEvent]) -> None:
        """Know what types the events are of, if that may decide."""
        if self._interest is None and self.listen.filter.tree is None:
            return
        through = None if self._interest is None else self._sources.feed.applied
        await self._hierarchy.learn([stored.event for stored in page], through=through)

    def _put(self, page: list[StoredEvent], *, read: bool) -> None:
        """A page to be told. One that was read is held while all that are held stay within bounds;
        what of it is not told at once is read again otherwise.
        """
        self._drop_page()
        self._page = page
        if read:
            self._held = bytes_of(page)
            Held.bytes += self._held

    def _drop_page(self) -> None:
        Held.bytes -= self._held
        self._page, self._keys, self._at, self._held = [], [], 0, 0

    async def _fill_state(self, wanted: StatePage) -> bool:
        reads = self._sources.catch_up.reads
        async with reads.hold(self._party), reading(self._sources.log.pool) as connection:
            keys = await read_state(connection, self.info.id, wanted)
        if keys:
            await self._learn(state.stored for state in keys)
            self._state = wanted._replace(after=keys[-1].digest)
            self._put([state.stored for state in keys], read=True)
            self._keys = keys
            return True
        self._state = None
        cursor = self._follower.position.cursor
        self._news.append({"op": "state_end", **self.listen.named, "cursor": cursor._asdict()})
        return True

    def tell(self, form: Form[T], turn: Turn = TURN) -> list[T]:
        """What comes next of what is at hand, as far as a turn, the window and time allow."""
        told = self.news(form)
        news = len(told)
        now_us = self._sources.clock.now_us()
        if self._keys:
            self._tell_state(form, turn, told, now_us)
            return told
        types = self._sources.types.evolved(self.info.zone_id)
        listen, page, at = self.listen, self._page, self._at
        end = min(len(page), at + listen.filter.looks)
        if listen.filter.plain and listen.window is None and not (self._interest or types):
            at = tell_plain(listen, form, (page[at:end], at, now_us), turn, told)
        else:
            at = self._tell_wanted(form, (end, now_us), turn, told)
        if at > self._at:
            self.cursor = page[at - 1].cursor
            self._trail.moved(self.cursor, len(told) - news)
        self._looked(at)
        return told

    def _tell_wanted(
        self, form: Form[T], bounds: tuple[int, int], turn: Turn, told: list[T]
    ) -> int:
        """What is wanted of the page up to an end, at a time; how far it was looked at. At least
        one event is, and no more than that if it took long.
        """
        until_s = monotonic() + limits.TIME_SLICE_S
        end, now_us = bounds
        listen, interest, page = self.listen, self._interest, self._page
        types = self._sources.types.evolved(self.info.zone_id)
        size, at = 0, self._at
        while at < end and len(told) < turn.events_max and size <= turn.bytes_max:
            if listen.full:
                break
            stored = page[at]
            at += 1
            if monotonic() > until_s:
                end = at
            if not listen.filter.wants(stored, now_us):
                continue
            named = () if interest is None else interest.matching(stored)
            if interest is None or named:
                latest = types.newest_for(stored.event) if types else ""
                shown = stored if interest is None else interest.shaped(stored, named)
                told.append(listen.event(shown, form, named, latest))
                size += len(stored.payload)
        return at

    def _tell_state(self, form: Form[T], turn: Turn, told: list[T], now_us: int) -> None:
        size = 0
        end = min(len(self._keys), self._at + self.listen.filter.looks)
        while self._at < end and len(told) < turn.events_max and size < turn.bytes_max:
            _, key, stored = self._keys[self._at]
            self._at += 1
            if self.listen.filter.wants(stored, now_us):
                told.append(form.state(self.listen.name_json, key, stored))
                size += len(stored.payload)
        if self._at == len(self._keys):
            self._drop_page()

    def _looked(self, at: int) -> None:
        """So far of the page; read ahead at its middle, and let go of it at its end."""
        page, self._at = self._page, at
        if at == len(page):
            self._drop_page()
        elif self._held and Held.bytes > limits.LISTEN_PAGES_BYTES_TOTAL_MAX:
            self._drop_page()
            self._pages.forget()
            self._follower.cursor = self.cursor
            return
        behind = len(page) > limits.FRAMES_PER_SLICE_MAX and not self._follower.live
        if behind and 2 * at >= len(page) and page:
            self._pages.begin(self._follower)

    async def _follow(self, start: Start) -> None:
        """Go on from a start."""
        following = AsyncExitStack()
        follower = self._sources.log.follow(self.info, start)
        old = self._following
        async with self._sources.catch_up.opens.hold(self._party):
            self._follower = await following.enter_async_context(follower)
        self._following = following
        if self._waker is not None:
            self._follower.ring.wakers.add(self._waker)
        await old.aclose()
        position = self._follower.position
        self.cursor = position.cursor
        self.began()

    async def _pass(self, error: Gone) -> None:
        """Say what is missing and go on behind it, if that is wanted. Raises the error if not."""
        self._drop_page()
        resume = _resume(error)
        if self._wish.state != "never" and self._restates():
            await self._from_state()
            self._missed(error, "state", {})
        elif self._wish.passes_gaps and resume is not None:
            await self._follow(resume)
            self._missed(error, "events", {"cursor": resume._asdict()})
        else:
            raise error
        self._trail.jumped(self._kind("gap"), self.cursor)

    def _missed(self, error: Gone, then: Literal["state", "events"], more: dict[str, Any]) -> None:
        message = refusal(error, self.listen.name or None)
        self._news.append({**message, "then": then, **more})

    def _restates(self) -> bool:
        return self.info.keyed and not self._wish.registrations

    async def _from_state(self) -> None:
        """The snapshot at the head first, then what follows it (SUN-29)."""
        await self._follow("now")
        self._state = StatePage(b"", self.cursor.sequence)

    def news(self, form: Form[T]) -> list[T]:
        """The messages alone that come before what follows."""
        news, self._news = self._news, []
        return [form.message(message) for message in news]


def _resume(error: Gone) -> Cursor | None:
    found = error.details.get("resume")
    return None if found is None else Cursor(found["segment"], found["sequence"])
