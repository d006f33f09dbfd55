"""A dry run: evaluates a draft over events of the log, in short reads and time slices, while its
caller is authorized and connected. Plain module.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple, TypedDict

from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal, is_shown
from eventhub.base import limits
from eventhub.base.errors import Gone
from eventhub.event.audience import is_visible_in_zone
from eventhub.event.envelope import Event
from eventhub.event.json_types import Int64
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import CursorJson, StoredEvent, StreamInfo
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.http.messages import Peer
from eventhub.types.registry import ZoneHierarchy
from registrations.explain.dry_run_request import DryRunOptions, EventRange
from registrations.explain.tally import CountsJson, Tally, TallyJson
from registrations.explain.time_slice import TimeSlice
from registrations.filters.evaluate import holds
from registrations.filters.printed import printed

_CHUNK_EVENTS = 32  # decoded at once, to know their types; some 0.2 ms
Stopped = Literal["end", "events", "time", "gap", "closed"]


class ProgressJson(CountsJson):
    """The progress of a run. `cursor`: the last evaluated event; `to`: the last one of the run."""

    cursor: CursorJson
    to: Int64


_From = TypedDict("_From", {"from": CursorJson})


class DryRunJson(_From, ProgressJson, TallyJson):
    """The result of a run."""

    stream: str
    predicate: str
    stopped: Stopped
    took_s: float


class DryRunCaller(NamedTuple):
    """The client that runs it."""

    authorizer: Authorizer
    credential: str
    principal: Principal
    peer: Peer


class DryRunInput(NamedTuple):
    """The options of a run, with their streams, channels and types resolved."""

    stream: StreamInfo
    options: DryRunOptions
    mask: int
    range: EventRange
    hierarchy: ZoneHierarchy


class DryRun:
    """One run. `steps` does the work; `counts` is the progress, `json` the result."""

    def __init__(self, log: Log, caller: DryRunCaller, input: DryRunInput) -> None:
        self.tally = Tally(input.options.samples)
        self.stopped: Stopped = "end"
        self._log = log
        self._caller = caller
        self._input = input
        self._cursor = input.range.after
        self._passed = 0  # events read, including those that the caller may not see
        self._clock = asyncio.get_running_loop().time
        self._started_s = self._clock()

    async def steps(self) -> AsyncIterator[None]:
        """Run, yielding after each time slice. Raises Unauthenticated, Forbidden and their
        subclasses if the caller loses its rights; DatabaseUnavailable and its subclasses.
        """
        stream, last = self._input.stream, self._input.range.last
        transient = stream.durability == "transient"
        log = self._log
        read = log.transient.reader(stream.id) if transient else log.reader(stream.id)
        while self._cursor.sequence < last and not self._over():
            principal = await self._confirmed()
            most = limits.DRY_RUN_EVENTS_MAX - self._passed
            count = min(limits.READ_EVENTS_MAX, last - self._cursor.sequence, most)
            try:
                page = await read(self._cursor, ReadLimits(count, limits.READ_BYTES_MAX))
            except Gone:
                self.stopped = "gap"
                return
            if not page:
                return
            async for _ in self._look(page, principal):
                yield

    def counts(self) -> ProgressJson:
        """Return the progress."""
        return {**self.tally.counts(), "cursor": self._cursor.json(), "to": self._input.range.last}

    def json(self) -> DryRunJson:
        """Return the result."""
        input = self._input
        return {
            "stream": input.stream.name,
            "predicate": printed(input.options.draft.node),
            "from": input.range.after.json(),
            "cursor": self._cursor.json(),
            "to": input.range.last,
            "stopped": self.stopped,
            "took_s": round(self._clock() - self._started_s, 3),
            **self.tally.json(),
        }

    async def _look(self, page: list[StoredEvent], principal: Principal) -> AsyncIterator[None]:
        slice, input = TimeSlice(), self._input
        for at, stored in enumerate(page):
            if at % _CHUNK_EVENTS == 0:
                chunk = page[at : at + _CHUNK_EVENTS]
                await input.hierarchy.learn([one.event for one in chunk if one.mask & input.mask])
            self._passed += 1
            if self._is_shown(stored.event, principal):
                self.tally.add(stored, matched=self._matches(stored))
            self._cursor = stored.cursor
            if slice.over:
                yield
                await slice.rest()
                if self._over():
                    return
        yield
        await slice.rest()

    def _is_shown(self, event: Event, principal: Principal) -> bool:
        """Return whether the caller may see the event; others are not even counted."""
        own = self._input.stream.id != SYSTEM_STREAM_ID or is_visible_in_zone(event, principal.zone)
        return own and is_shown(event, principal)

    def _matches(self, stored: StoredEvent) -> bool:
        input = self._input
        if not stored.mask & input.mask:
            return False
        return holds(input.options.draft.node, stored.event, input.hierarchy)

    def _over(self) -> bool:
        """Return whether the run has to stop, and record why."""
        if self._caller.peer.over:
            self.stopped = "closed"
        elif self._passed >= limits.DRY_RUN_EVENTS_MAX:
            self.stopped = "events"
        elif self._clock() - self._started_s >= limits.DRY_RUN_S_MAX:
            self.stopped = "time"
        return self.stopped != "end"

    async def _confirmed(self) -> Principal:
        """Authenticate the caller again, so that a revoked key sees nothing more."""
        principal = await self._caller.authorizer.authenticate(self._caller.credential)
        principal.require_listen(self._input.stream.name)
        return principal
