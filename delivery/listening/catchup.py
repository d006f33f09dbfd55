"""What one process does at a time for listens that begin or catch up, in fair order between
clients: handshakes, first looks at a stream, reads of the log, and turns of the event loop.
Plain module.

A listen is acknowledged before it catches up, and one that is live needs none of this: however
many catch up, the others wait for a few turns of them.
"""

import asyncio
from collections.abc import Iterable

from eventhub.base import limits
from eventhub.base.fair_queue import Admission, Party, Slots
from eventhub.eventlog.log import Follower
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import StoredEvent

_FIRST_PAGE = ReadLimits(limits.LISTEN_FIRST_PAGE_EVENTS_MAX, limits.LISTEN_PAGE_BYTES_MAX)
_PAGE = ReadLimits(limits.LISTEN_PAGE_EVENTS_MAX, limits.LISTEN_PAGE_BYTES_MAX)
_SHORT_PAGE = ReadLimits(limits.FRAMES_PER_SLICE_MAX, limits.LISTEN_PAGE_BYTES_MAX)
_STORED_BYTES = 400  # about what an event of a page costs in memory beside its stored bytes


class CatchUp:
    """The admissions of one process."""

    def __init__(self) -> None:
        turns = Slots(limits.CATCH_UP_SLICES, limits.CATCH_UP_SLICES)
        self.arrivals = Admission(turns)  # handshakes of websockets
        self.opens = Admission(Slots(limits.CATCH_UP_OPENS, limits.CATCH_UP_OPENS))
        self.reads = Admission(Slots(limits.CATCH_UP_READS, 1))
        self.turns = Admission(turns)

    async def arrival(self, party: Party) -> None:
        """Wait for a turn of the event loop to accept a socket."""
        await self.arrivals.enter(party)
        asyncio.get_running_loop().call_soon(self.arrivals.leave, party)


class Ticket:
    """The turns of one listen: a place is given back when the event loop has gone round, so that so
    many have a turn before everything else goes on.
    """

    def __init__(self, turns: Admission, party: Party) -> None:
        self._turns = turns
        self._party = party
        self._asked: asyncio.Future[None] | None = None
        self._until_s = 0.0  # the turn that was given counts so long

    def due(self, waker: asyncio.Event | None) -> bool:
        """True if it is this listen's turn, once; if not, the waker is set when it is."""
        if self._asked is not None:
            return False
        loop = asyncio.get_running_loop()
        if self._until_s > loop.time():
            self._until_s = 0.0
            return True
        asked = self._turns.request(self._party)
        if asked is None:
            loop.call_soon(self._turns.leave, self._party)
            return True
        self._asked = asked
        asked.add_done_callback(lambda done: self._given(done, waker))
        return False

    async def wait(self) -> None:
        """Wait for a turn."""
        await self._turns.enter(self._party)
        asyncio.get_running_loop().call_soon(self._turns.leave, self._party)

    def drop(self) -> None:
        """Stop waiting."""
        if self._asked is not None:
            self._asked.cancel()

    def _given(self, done: "asyncio.Future[None]", waker: asyncio.Event | None) -> None:
        """Who does not come at once, because its socket takes nothing, loses its turn."""
        self._asked = None
        if done.cancelled():
            return
        loop = asyncio.get_running_loop()
        loop.call_soon(self._turns.leave, self._party)
        self._until_s = loop.time() + limits.CATCH_UP_SLICE_S_MAX
        if waker is not None:
            waker.set()


class Held:
    """What all listens of the process hold of the pages they have read."""

    bytes = 0


def bytes_of(page: Iterable[StoredEvent]) -> int:
    """About what a page costs in memory."""
    return sum(len(stored.payload) + _STORED_BYTES for stored in page)


class Pages:
    """Reads the next page of one listen when there is a place for it; one at a time."""

    def __init__(self, reads: Admission, party: Party) -> None:
        self._reads = reads
        self._party = party
        self._reading: asyncio.Task[list[StoredEvent]] | None = None
        self._closed = False

    @property
    def under_way(self) -> bool:
        """True if a page was begun and not taken."""
        return self._reading is not None

    def begin(self, follower: Follower) -> None:
        """Read, unless a page is under way."""
        self._begun(follower)

    def there(self, waker: asyncio.Event | None) -> bool:
        """False while a page is being read; the waker is set when it is there."""
        reading = self._reading
        if reading is None or reading.done():
            return True
        if waker is not None:
            reading.add_done_callback(lambda _: waker.set())
        return False

    async def take(self, follower: Follower) -> list[StoredEvent]:
        """The page. Raises what Follower.catch_up raises."""
        try:
            return await self._begun(follower)
        finally:
            self._reading = None

    def forget(self) -> None:
        """What is under way is not wanted."""
        self._reading = None

    def close(self) -> None:
        """Read no more; a read that waits for its place ends there."""
        self._closed = True

    def _begun(self, follower: Follower) -> "asyncio.Task[list[StoredEvent]]":
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(follower))
            self._reading.add_done_callback(_seen)  # nobody may be there any more
        return self._reading

    async def _read(self, follower: Follower) -> list[StoredEvent]:
        async with self._reads.hold(self._party):
            if self._closed:
                return []
            return await follower.catch_up(_page_for(follower))


def _page_for(follower: Follower) -> ReadLimits:
    """The first event comes soon; while many pages are held, none is read that must be dropped
    before it is told.
    """
    if Held.bytes > limits.LISTEN_PAGES_BYTES_TOTAL_MAX // 2:
        return _SHORT_PAGE
    return _FIRST_PAGE if follower.cursor == follower.position.cursor else _PAGE


def _seen(task: "asyncio.Task[list[StoredEvent]]") -> None:
    """Its error was looked at."""
    if not task.cancelled():
        task.exception()
