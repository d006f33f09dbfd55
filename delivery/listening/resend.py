"""Events that a reader lost are sent again (FOX-83): the reader names sequences that the hub has
reported to its listener, and gets those that match, ascending. Plain module.

The frames are built from the log, so the hub remembers nothing of what it sent.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from delivery.listening.frames import EventHeader, Frame, FrameFormat
from delivery.listening.listener import StreamListener
from delivery.listening.messages import ResendMessage
from delivery.listening.protocol import NOTHING_MATCHED, ListenerFilter, ListenerState
from delivery.listening.registration_matcher import RegistrationMatcher
from delivery.listening.services import ListenerServices
from delivery.listening.version_loader import RegistrationSet
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import Gone, InvalidField, MissingField
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.types.registry import ZoneHierarchy


class ResendRange(NamedTuple):
    """Consecutive sequences."""

    first: int
    last: int


class Resent(NamedTuple):
    """A part of the answer: frames, or a range of events that are no longer stored."""

    frames: Sequence[Frame]
    missing: ResendRange | None = None


def requested_ranges(message: ResendMessage, last_reported: int) -> list[ResendRange]:
    """Return the ranges that a message requests, ascending. Raises MissingField, InvalidField."""
    if message.sequences is None:
        if message.start is None or message.to is None:
            raise MissingField(field="to" if message.to is None else "from")
        found = [ResendRange(message.start, message.to)]
        field = "to"
    elif message.start is None and message.to is None:
        numbers = sorted(set(message.sequences))
        found = [ResendRange(one, one) for one in numbers]
        field = "sequences"
    else:
        raise InvalidField("Give `from` and `to`, or `sequences`.", field="sequences")
    first, last = found[0].first, found[-1].last
    if last > last_reported:
        raise InvalidField(
            f"The hub has reported events up to {last_reported} to this listener; only those can be"
            " requested again.",
            field=field,
        )
    if not 0 <= last - first < limits.RESEND_SEQUENCES_MAX:
        raise InvalidField(
            f"The sequences must ascend, and span at most {limits.RESEND_SEQUENCES_MAX:,}; send"
            " several messages, or resume from a cursor.",
            field=field,
        )
    return found


class Resending:
    """What one request of a listener sends again."""

    def __init__(
        self, services: ListenerServices, principal: Principal, listener: StreamListener
    ) -> None:
        self._services = services
        self._owner = principal.queue_owner
        self._listener = listener
        self._state: ListenerState = listener.state
        self._hierarchy = ZoneHierarchy(services.types, listener.info.zone_id)
        self._filter: ListenerFilter = self._state.filter._replace(hierarchy=self._hierarchy)
        self._matcher: RegistrationMatcher | None = None

    async def run(
        self, ranges: Sequence[ResendRange], form: FrameFormat[Frame]
    ) -> AsyncGenerator[Resent, None]:
        """Yield the events of ranges that match, in their order, a page of the log at a time.
        Raises what the log raises, and UnknownRegistration.
        """
        async with AsyncExitStack() as closing:
            ids = self._state.registrations
            if ids:
                services, info = self._services, self._listener.info
                about = RegistrationSet(tuple(ids)), info.id, self._hierarchy
                matcher = RegistrationMatcher.open(services.versions, services.feed, *about)
                self._matcher = await closing.enter_async_context(matcher)
                await self._matcher.catch_up(ranges[0].first - 1, ranges[-1].last)
            for requested in ranges:
                async for part in self._resend(requested, form):
                    yield part

    async def _resend(
        self, requested: ResendRange, form: FrameFormat[Frame]
    ) -> AsyncGenerator[Resent, None]:
        """Yield the events of one range. Between `prev` and each of them nothing matches."""
        next_, prev = requested.first, requested.first - 1
        while next_ <= requested.last:
            try:
                page = await self._read(next_, requested.last)
            except Gone as error:
                resume = error.details.get("resume")  # before the next event that is stored
                last = min(resume["sequence"] if resume else requested.last, requested.last)
                yield Resent((), ResendRange(next_, last))
                next_, prev = last + 1, last
                continue
            if not page:
                return
            frames: list[Frame] = []
            await self._learn(page)
            for stored in page:
                frame = self._frame(stored, prev, form)
                if frame is not None:
                    frames.append(frame)
                    prev = stored.sequence
            yield Resent(frames)
            next_ = page[-1].sequence + 1

    async def _read(self, first: int, last: int) -> list[StoredEvent]:
        """Read events from a sequence on, up to another one. Raises Gone."""
        log, info = self._services.log, self._listener.info
        async with self._services.catch_up.reads.hold(self._owner):
            page = ReadLimits(events_max=last - first + 1)
            if info.durability == "transient":
                cursor = Cursor(self._listener.cursor.segment, first - 1)
                return await log.transient.reader(info.id)(cursor, page)
            found = await log.reader(info.id)(await log.cursor_before(info.id, first), page)
        return [stored for stored in found if stored.sequence <= last]

    async def _learn(self, page: Sequence[StoredEvent]) -> None:
        if self._matcher is None and self._filter.tree is None:
            return
        through = None if self._matcher is None else self._services.feed.applied.sequence
        await self._hierarchy.learn([stored.event for stored in page], through=through)

    def _frame(self, stored: StoredEvent, prev: int, form: FrameFormat[Frame]) -> Frame | None:
        """Return the frame of an event; None if it does not match."""
        state, matcher = self._state, self._matcher
        if not self._filter.matches(stored, self._services.clock.now_us()):
            return None
        matched = NOTHING_MATCHED if matcher is None else matcher.matching(stored)
        if matcher is not None and not matched.ids:
            return None
        types = self._services.types.evolved(self._listener.info.zone_id)
        header = EventHeader(
            state.subject_json,
            prev,
            "recovery",
            matched.ids,
            types.newest_for(stored.event) if types else "",
            state.signature,
            matched.variables,
        )
        shaped = stored if matcher is None else matcher.shaped(stored, matched.ids)
        return form.event(header, shaped)
