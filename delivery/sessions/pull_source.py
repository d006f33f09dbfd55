"""The events of one session as its pulls in this process get them: readers of its streams fill its
queue, and what comes from there is claimed, so that no other pull gets it meanwhile, in any
process. SQL module.

Concurrency contract: one event loop. One pull at a time takes events; the others wait.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import Any, NamedTuple

from psycopg_pool import AsyncConnectionPool

from delivery.listening.frames import FrameSubject
from delivery.listening.protocol import refusal
from delivery.listening.restricted import is_restricted
from delivery.listening.services import ListenerServices
from delivery.ordering.held import HeldEvent
from delivery.sessions import claims
from delivery.sessions.attachments import SessionPosition, SessionSettings
from delivery.sessions.claims import ClaimCandidate, ClaimTerms, Holder, RenewedClaim
from delivery.sessions.connected import ConnectedSession
from delivery.sessions.matchers import SharedMatchers
from delivery.sessions.pulled_events import MESSAGES, PulledEvent, PulledQueue, SharedWaker
from delivery.sessions.session_reader import SessionReader, SessionStreamState
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import (
    DatabaseUnavailable,
    EventHubError,
    Gone,
    LimitReached,
    SegmentMismatch,
)
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql.connections import Connection, reading
from registrations.endpoints.order_key import lane_number, order_path
from registrations.feed import CatalogChange

_UNLIMITED = 1 << 62  # the window counts claims, not what the queue gave


class PullServices(NamedTuple):
    """What the pulls of a process share."""

    listening: ListenerServices
    matchers: SharedMatchers
    pool: AsyncConnectionPool[Connection]


class PullSource:
    """The pulls of one session by one key in one process. Create it with `open`; `close` it."""

    def __init__(self, services: PullServices, queue: PulledQueue) -> None:
        self.waker = SharedWaker()
        settings = queue.settings._replace(quality="reliable")
        self.session = ConnectedSession(settings, queue.attachment, self.waker)
        self._path = order_path(queue.share_by) if queue.share_by else None
        self.session.queue.window = _UNLIMITED
        self.messages: list[dict[str, Any]] = []  # for the next answer
        self.refused: dict[str, dict[str, Any]] = {}  # by stream: why it is not read
        self.due_s: float | None = None  # until an event may be handed out again
        self.used_s = monotonic()
        self.users = 0  # pulls under way
        self.broken = False  # its state is not that of the database: a new one must be opened
        self._services = services
        self._principal: Principal
        self._offered: list[HeldEvent] = []  # from the queue, and not claimed
        self._taking = asyncio.Lock()
        self._saved_s = monotonic()
        self._subscriptions = ExitStack()

    @classmethod
    async def open(
        cls, services: PullServices, principal: Principal, queue: PulledQueue
    ) -> "PullSource":
        """Start to read the streams of a session. Raises DatabaseUnavailable, LimitReached."""
        source = cls(services, queue)
        source._principal = principal
        feed, owners = services.listening.feed, source.session.owners
        source._subscriptions.enter_context(feed.owner_subscription(owners, source._note))
        try:
            await source._add_streams()
        except BaseException:
            await source.close()
            raise
        return source

    @property
    def behind(self) -> bool:
        """Whether more is stored than was read."""
        return self.session.queue.behind

    @property
    def settings(self) -> SessionSettings:
        return self.session.settings

    def change(self, settings: SessionSettings) -> bool:
        """Apply the present settings; return False if another source must be opened for them."""
        before = self.settings
        if before.session_group != settings.session_group:
            return False
        if before._replace(quality="") != settings._replace(quality=""):
            now_us = self._services.listening.clock.now_us()
            self.session.change(settings._replace(quality="reliable"), now_us)
            self.session.queue.window = _UNLIMITED
            self.session.messages.clear()
        return True

    async def close(self) -> None:
        """Release everything; what was claimed remains so."""
        self.broken = True
        self._subscriptions.close()
        self.session.stop_timer()
        for reader in list(self.session.readers.values()):
            reader.unwatch()
            await reader.close()

    async def authenticate(self, principal: Principal) -> None:
        """Apply the present rights of the key."""
        self._principal = principal
        for reader in list(self.session.readers.values()):
            try:
                await reader.authenticate(principal)
            except DatabaseUnavailable:
                raise
            except EventHubError as error:
                await self._refuse(reader, error)

    async def take(
        self, holder: Holder, events: int, visibility_s: float, window: int | None = None
    ) -> list[PulledEvent]:
        """Claim the next events, at most so many, for some seconds: those whose time is over
        first, then new ones in the session's order. None if there are none at the moment. `window`:
        what the holder may have, instead of the session's setting.

        Raises SessionReplaced, SessionDisconnected, UnknownSession, DatabaseUnavailable.
        """
        async with self._taking:
            if self.session.may_have_new_streams:
                await self._add_streams()
            await self._read(self._requested(events))
            async with reading(self._services.pool) as connection:
                state = await claims.due(connection, holder)
            self.due_s = state.due_s
            is_due = state.due_s is not None and state.due_s <= 0
            if window is not None:
                state = state._replace(window_events=window)
            if state.room <= 0 or not (self._offered or is_due or self._save_due()):
                return []
            streams = {reader.info.id: reader for reader in self.session.readers.values()}
            bounds = state.window_events, visibility_s, state.attempts_max
            terms = ClaimTerms([*streams], events, *bounds)
            try:
                renewed, new = await self._claim(holder, terms)
            except BaseException:
                self.broken = True
                raise
            metrics.PULLED.inc(len(renewed) + len(new))
            if renewed:
                metrics.REDELIVERED.inc(len(renewed))
                return [*await self._read_again(holder, renewed, streams), *new]
            return new

    async def _claim(
        self, holder: Holder, terms: ClaimTerms
    ) -> tuple[list[RenewedClaim], list[PulledEvent]]:
        """Claim events in one transaction, with the position that they are claimed through. Those
        that were handed out as often as they may be are skipped.
        """
        new: list[PulledEvent] = []
        async with reading(self._services.pool) as connection, claims.changing(connection, holder):
            skipped = await claims.skip(connection, holder, terms)
            renewed = await claims.renew(connection, holder, terms)
            terms = terms._replace(events=terms.events - len(renewed))
            if terms.events and self._offered:
                found = [self._candidate(held) for held in self._offered]
                places = await claims.claim(connection, holder, terms, found)
                new = self._settle_offered(places)
            reached: dict[int, Cursor | None] = {
                **dict.fromkeys(skipped),
                **{
                    self.session.readers[name].info.id: position.cursor
                    for name, position in self.session.queue.take_changes().items()
                },
            }
            if reached:
                await claims.advance(connection, holder.session_id, reached)
            self._saved_s = monotonic()
        metrics.SKIPPED.inc(sum(skipped.values()))
        return renewed, new

    def _settle_offered(self, places: claims.ClaimedPlaces) -> list[PulledEvent]:
        """Return the offered events that were claimed, and retain those that wait."""
        offered, waiting = self._offered, set(places.waiting)
        new = []
        for place in places.claimed:
            held = offered[place]
            reader = self.session.readers[held.stream]
            new.append(PulledEvent(reader, held.stored, held.item, 1, held.disorder))
        self._offered = [held for place, held in enumerate(offered) if place in waiting]
        for place, held in enumerate(offered):
            if place not in waiting:
                self.session.queue.discard(held)
        return new

    def _candidate(self, held: HeldEvent) -> ClaimCandidate:
        stored = held.stored
        stream_id = self.session.readers[held.stream].info.id
        key = None if self._path is None else lane_number(stream_id, held.event, self._path)
        return ClaimCandidate(stream_id, stored.segment, stored.sequence, key)

    def _requested(self, events: int) -> int:
        """Return how many events to offer: by key many, because some may wait for their key."""
        return events if self._path is None else limits.PULL_KEYED_OFFERS_MAX

    def _save_due(self) -> bool:
        """Return whether positions that advanced without events should be saved."""
        return monotonic() >= self._saved_s + limits.SESSION_POSITIONS_INTERVAL_S

    # --- reading ---

    async def _read(self, requested: int) -> None:
        """Read until so many events are offered, or there are no more at the moment."""
        queue, clock = self.session.queue, self._services.listening.clock
        self._offered = [held for held in self._offered if not held.tracked.settled]
        until_s = monotonic() + limits.HISTORY_S_MAX
        while True:
            now_us = clock.now_us()
            while len(self._offered) < requested and (held := queue.pop(now_us)) is not None:
                if self._is_visible(held, now_us):
                    self._offered.append(held)
                else:
                    queue.discard(held)
            if len(self._offered) >= requested or monotonic() > until_s:
                break
            if not await self._fill(until_s):
                break
        self.session.set_timer(clock.now_us())

    def _is_visible(self, held: HeldEvent, now_us: int) -> bool:
        reader = self.session.readers[held.stream]
        return not is_restricted(held.stored) or reader.state.filter.matches(held.stored, now_us)

    async def _fill(self, until_s: float) -> bool:
        """Put the next events of each stream into the queue, those of pages too that are read until
        then; return False if there are none.
        """
        busy = False
        now_us = self._services.listening.clock.now_us()
        for reader in list(self.session.readers.values()):
            routed = reader.put_routed(now_us)
            if routed is not None:
                busy = busy or bool(routed)
                continue
            if not reader.due() and not await reader.page_completed(until_s - monotonic()):
                continue
            try:
                if await reader.fill():
                    busy = True
                    await self._report(reader, reader.next_frames(MESSAGES))
            except DatabaseUnavailable:
                raise
            except EventHubError as error:
                await self._refuse(reader, error)
        return busy

    async def _report(self, reader: SessionReader, found: Iterable[dict[str, Any]]) -> None:
        """Report gaps. In another history of the stream, its claims end."""
        for message in found:
            self.messages.append(message)
            if message["op"] == "segment_mismatch":
                at = Cursor(**message["cursor"])
                async with reading(self._services.pool) as connection:
                    await claims.restart(connection, self.settings.id, reader.info.id, at)

    async def _refuse(self, reader: SessionReader, error: EventHubError) -> None:
        """End the reader of a stream."""
        reader.unwatch()
        await reader.close()
        self.refused[reader.info.name] = refusal(error, reader.state.subject)

    async def _add_streams(self) -> None:
        """Start the streams that the session has got. Raises DatabaseUnavailable, LimitReached."""
        session = self.session
        session.may_have_new_streams = False
        async with reading(self._services.pool) as connection:
            found = await claims.start_positions(connection, session.settings.id)
        if len(found) > limits.SESSION_STREAMS_MAX:
            raise LimitReached(
                "The session has registrations on too many streams; delete some of them.",
                limit=limits.SESSION_STREAMS_MAX,
            )
        for position in found:
            if position.stream_id not in session.known_streams:
                await self._add_stream(position)

    async def _add_stream(self, position: SessionPosition) -> None:
        services, session = self._services, self.session
        state = SessionStreamState(session, services.matchers, position)
        state.subject = FrameSubject(stream=position.stream)
        try:
            reader = await SessionReader.start(
                services.listening, self._principal, state, position.cursor
            )
        except DatabaseUnavailable:
            session.may_have_new_streams = True
            raise
        except EventHubError as error:
            self.refused[position.stream] = refusal(error, state.subject)
        else:
            reader.mark_started()
            reader.watch(self.waker)
            await self._report(reader, reader.notices(MESSAGES))
        session.known_streams.add(position.stream_id)

    def _note(self, change: CatalogChange | None) -> None:
        """Note that the session may have got new streams."""
        if change is None or change.owner in self.session.owners:
            self.session.may_have_new_streams = True
            self.waker.set()

    # --- events that are handed out again ---

    async def _read_again(
        self, holder: Holder, renewed: Sequence[RenewedClaim], streams: dict[int, SessionReader]
    ) -> list[PulledEvent]:
        """Read events from the log that are handed out again. Those that are gone, have expired or
        may not be seen any more are settled.
        """
        found: list[PulledEvent] = []
        ended: list[tuple[int, int]] = []
        for one in renewed:
            reader = streams[one.stream_id]
            event = await self._read_one(reader, one)
            if event is None:
                ended.append((one.stream_id, one.sequence))
            else:
                found.append(event)
        if ended:
            async with (
                reading(self._services.pool) as connection,
                claims.changing(connection, holder),
            ):
                await claims.settle(connection, holder.session_id, ended)
                changed = dict.fromkeys(stream for stream, _ in ended)
                await claims.advance(connection, holder.session_id, changed)
        return found

    async def _read_one(self, reader: SessionReader, one: RenewedClaim) -> PulledEvent | None:
        after = Cursor(one.segment, one.sequence - 1)
        listening = self._services.listening
        try:
            found = await listening.log.reader(one.stream_id)(after, ReadLimits(1))
        except (Gone, SegmentMismatch) as error:
            self.messages.append({**refusal(error, reader.state.subject), "then": "events"})
            return None
        if not found or found[0].sequence != one.sequence:
            return None
        [stored] = found
        matched = await reader.matched_again(stored)
        return PulledEvent(reader, stored, matched, one.attempts) if matched.ids else None
