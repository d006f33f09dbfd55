"""The scheduler of listeners that start or catch up: handshakes, opened streams, reads of the log
and time slices of the event loop, in fair order between clients. Plain module.

A listener is acknowledged before it catches up, and a live one needs none of this: however many
catch up, the others wait for a few of their slices.
"""

import asyncio

from eventhub.base import limits
from eventhub.base.event_loop import Waker
from eventhub.base.fair_queue import Admission, QueueOwner, Slots
from eventhub.eventlog.log import Follower
from eventhub.eventlog.packed import PackedPage, Page
from eventhub.eventlog.read import ReadLimits

_FIRST_PAGE = ReadLimits(limits.LISTEN_FIRST_PAGE_EVENTS_MAX, limits.LISTEN_PAGE_BYTES_MAX)
_PAGE = ReadLimits(limits.LISTEN_PAGE_EVENTS_MAX, limits.LISTEN_PAGE_BYTES_MAX)
_SHORT_PAGE = ReadLimits(limits.FRAMES_PER_SLICE_MAX, limits.LISTEN_PAGE_BYTES_MAX)
_STORED_BYTES = 400  # approximate memory of an event in a page, without its stored bytes


class CatchUpScheduler:
    """The admissions of one process."""

    def __init__(self) -> None:
        slices = Slots(limits.CATCH_UP_SLICES, limits.CATCH_UP_SLICES)
        self.handshakes = Admission(slices)  # of websockets
        self.opens = Admission(Slots(limits.CATCH_UP_OPENS, limits.CATCH_UP_OPENS))
        self.reads = Admission(Slots(limits.CATCH_UP_READS, 1))
        self.slices = Admission(slices)

    async def handshake(self, owner: QueueOwner) -> None:
        """Wait for a time slice of the event loop to accept a socket."""
        await self.handshakes.enter(owner)
        asyncio.get_running_loop().call_soon(self.handshakes.leave, owner)


class TimeSlices:
    """The time slices of one listener. A slice is released after one round of the event loop, so
    that a bounded number run before everything else continues.
    """

    def __init__(self, slices: Admission, owner: QueueOwner) -> None:
        self._slices = slices
        self._owner = owner
        self._requested: asyncio.Future[None] | None = None
        self._until_s = 0.0  # a granted slice is valid until then

    def due(self, waker: Waker | None) -> bool:
        """Take a slice and return True; or return False, and set the waker when one is granted."""
        if self._requested is not None:
            return False
        loop = asyncio.get_running_loop()
        if self._until_s > loop.time():
            self._until_s = 0.0
            return True
        requested = self._slices.request(self._owner)
        if requested is None:
            loop.call_soon(self._slices.leave, self._owner)
            return True
        self._requested = requested
        requested.add_done_callback(lambda done: self._granted(done, waker))
        return False

    async def wait(self) -> None:
        """Wait for a slice."""
        await self._slices.enter(self._owner)
        asyncio.get_running_loop().call_soon(self._slices.leave, self._owner)

    def drop(self) -> None:
        """Stop waiting."""
        if self._requested is not None:
            self._requested.cancel()

    def _granted(self, done: "asyncio.Future[None]", waker: Waker | None) -> None:
        """Grant the slice for a short time: a listener whose socket takes nothing loses it."""
        self._requested = None
        if done.cancelled():
            return
        loop = asyncio.get_running_loop()
        loop.call_soon(self._slices.leave, self._owner)
        self._until_s = loop.time() + limits.CATCH_UP_SLICE_S_MAX
        if waker is not None:
            waker.set()


class PageMemory:
    """The memory of all pages that the process's listeners have read and not sent."""

    bytes = 0


def page_bytes(page: Page) -> int:
    """Return the approximate memory of a page, with an object for each event."""
    if isinstance(page, PackedPage):
        return len(page.packed) + len(page) * _STORED_BYTES
    return sum(len(stored.payload) + _STORED_BYTES for stored in page)


class PageReader:
    """Reads pages of one listener, one at a time, each after its admission."""

    def __init__(self, reads: Admission, owner: QueueOwner) -> None:
        self._reads = reads
        self._owner = owner
        self._reading: asyncio.Task[Page] | None = None
        self.packs = False  # whether pages may be packed
        self._closed = False

    @property
    def under_way(self) -> bool:
        """Whether a page was started and not taken."""
        return self._reading is not None

    def start(self, follower: Follower) -> None:
        """Read a page, unless one is under way."""
        self._started(follower)

    def ready(self, waker: Waker | None) -> bool:
        """Return False while a page is being read, and set the waker when it is complete."""
        reading = self._reading
        if reading is None or reading.done():
            return True
        if waker is not None:
            reading.add_done_callback(lambda _: waker.set())
        return False

    async def completed(self, within_s: float) -> bool:
        """Wait for the page that is being read; return False if there is none, or it takes longer
        than that.
        """
        if self._reading is None:
            return False
        done, _ = await asyncio.wait([self._reading], timeout=max(within_s, 0.0))
        return bool(done)

    async def take(self, follower: Follower) -> Page:
        """Return the page. Raises what Follower.catch_up raises."""
        try:
            return await self._started(follower)
        finally:
            self._reading = None

    def forget(self) -> None:
        """Ignore the page that is under way."""
        self._reading = None

    def close(self) -> None:
        """Read no further page; a read that waits for its admission ends there."""
        self._closed = True

    def _started(self, follower: Follower) -> "asyncio.Task[Page]":
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(follower))
            self._reading.add_done_callback(_retrieve_error)  # nothing may await it any more
        return self._reading

    async def _read(self, follower: Follower) -> Page:
        async with self._reads.hold(self._owner):
            if self._closed:
                return []
            size = _limits_of_page(follower)
            return await (follower.next_page(size) if self.packs else follower.catch_up(size))


def _limits_of_page(follower: Follower) -> ReadLimits:
    """Return a short first page, so that the first event is sent soon; and short pages while many
    are in memory, so that none is read that must be dropped before it is sent.
    """
    if PageMemory.bytes > limits.LISTEN_PAGES_BYTES_TOTAL_MAX // 2:
        return _SHORT_PAGE
    return _FIRST_PAGE if follower.cursor == follower.position.cursor else _PAGE


def _retrieve_error(task: "asyncio.Task[Page]") -> None:
    """Mark the task's error as retrieved."""
    if not task.cancelled():
        task.exception()
