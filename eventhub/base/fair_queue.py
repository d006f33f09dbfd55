"""Fair queueing between tenants: round robin between zones, in each zone between its clients, and
first in, first out for each client. Plain module.

`FairQueue` is start-time fair queueing: each item has a cost, and a queue that was served waits
until the others have had as much. A queue that was empty is served next, so a client with few items
waits for one item of the others, however many they have. `Admission` admits items in that order, up
to a capacity.

Concurrency contract: one event loop.
"""

import asyncio
from collections import deque
from functools import partial
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from eventhub.base import limits
from eventhub.base.errors import EventHubError, Overloaded, TooManyRequests

T = TypeVar("T")


class QueueOwner(NamedTuple):
    """The client that an item belongs to."""

    zone_id: int = 0
    client_id: int = 0


HUB_WORK = QueueOwner()  # the hub's own work
_SERVED_MIN = 64  # served queues that are remembered in any case


class _Fifo(Generic[T]):
    """The items of one client: first in, first out."""

    def __init__(self) -> None:
        self._items: deque[tuple[T, int]] = deque()

    def put(self, path: tuple[int, ...], item: T, cost: int) -> None:
        self._items.append((item, cost))

    def peek(self) -> T:
        return self._items[0][0]

    def pop(self) -> tuple[T, int]:
        """Return the next item and its cost."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)


class _FairQueues(Generic[T]):
    """Queues by the first part of the path; the one that was served least is next."""

    def __init__(self) -> None:
        self._queues: dict[int, _FairQueues[T] | _Fifo[T]] = {}
        self._next: list[tuple[int, int, int]] = []  # start, arrival, queue
        self._served: dict[int, int] = {}  # where the last item of each queue ends
        self._swept_at = _SERVED_MIN
        self._now = 0
        self._arrivals = count()

    def put(self, path: tuple[int, ...], item: T, cost: int) -> None:
        key, rest = path[0], path[1:]
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _FairQueues() if rest else _Fifo()
            start = max(self._now, self._served.get(key, 0))
            heappush(self._next, (start, next(self._arrivals), key))
        queue.put(rest, item, cost)

    def peek(self) -> T:
        return self._queues[self._next[0][2]].peek()

    def pop(self) -> tuple[T, int]:
        start, _, key = self._next[0]
        queue = self._queues[key]
        item, cost = queue.pop()
        self._now, end = start, start + cost
        if queue:
            heapreplace(self._next, (end, next(self._arrivals), key))
        else:
            heappop(self._next)
            del self._queues[key]
        self._served[key] = end
        if not self._queues:
            self._served.clear()
        elif len(self._served) > self._swept_at:
            self._sweep()
        return item, cost

    def _sweep(self) -> None:
        """Forget queues that need not wait: without it a busy hub would remember every client."""
        self._served = {each: end for each, end in self._served.items() if end > self._now}
        self._swept_at = 2 * len(self._served) + _SERVED_MIN

    def __len__(self) -> int:
        return len(self._queues)


class FairQueue(Generic[T]):
    """Items of many owners in fair order; a plain queue while all are of one owner."""

    def __init__(self) -> None:
        self._alone: QueueOwner | None = None
        self._fifo: deque[tuple[T, int]] = deque()
        self._fair: _FairQueues[T] | None = None  # once there are several owners
        self._in_fair = 0

    def put(self, owner: QueueOwner, item: T, cost: int = 1) -> None:
        """Add an item. `cost` is at least 1, which is the cost of a cheap item."""
        if self._fair is None:
            if not self._fifo:
                self._alone = owner
            if owner == self._alone:
                self._fifo.append((item, cost))
                return
        self._put_fair(owner, item, cost)

    def peek(self) -> T:
        """Return the item that `pop` would return. Raises IndexError when there is none."""
        return self._fifo[0][0] if self._fair is None else self._fair.peek()

    def pop(self) -> T:
        """Take the next item. Raises IndexError when there is none."""
        if self._fair is None:
            return self._fifo.popleft()[0]
        item, _ = self._fair.pop()
        self._in_fair -= 1
        if not self._in_fair:
            self._fair = None
        return item

    def _put_fair(self, owner: QueueOwner, item: T, cost: int) -> None:
        if self._fair is None:
            self._fair = _FairQueues()
            for earlier, its_cost in self._fifo:
                self._fair.put(self._alone or HUB_WORK, earlier, its_cost)
            self._in_fair = len(self._fifo)
            self._fifo.clear()
        self._fair.put(owner, item, cost)
        self._in_fair += 1

    def __len__(self) -> int:
        return len(self._fifo) or self._in_fair


class Slots(NamedTuple):
    """The number of slots, and how many of them one owner may hold while others compete; an owner
    that is alone may hold all.
    """

    all: int
    per_owner: int


class WaitLimits(NamedTuple):
    """How many slots may be waited for, by all and by one owner, and for how long."""

    waiting_max: int
    waiting_per_party_max: int
    wait_s_max: float


class _Waiter(NamedTuple):
    owner: QueueOwner
    cost: int
    admitted: "asyncio.Future[None]"


class _Load:
    """The slots that one owner holds and waits for."""

    __slots__ = ("behind", "held", "queued", "waiting")

    def __init__(self) -> None:
        self.held = 0
        self.queued = 0  # of the waiting slots, those in the fair queue
        self.waiting = 0
        self.behind: deque[_Waiter] = deque()  # beyond its share


class Admission:
    """Admits as much work at a time as there are slots; the rest waits in fair order. Without
    `wait_limits`, it may wait indefinitely.
    """

    def __init__(self, slots: Slots, wait_limits: WaitLimits | None = None) -> None:
        self._slots = slots
        self._limits = wait_limits
        self._held = 0
        self._waiting = 0
        self._queue: FairQueue[_Waiter] = FairQueue()
        self._loads: dict[QueueOwner, _Load] = {}
        self._last = HUB_WORK  # the owner that came last
        self._contended_until_s = 0.0
        self._progress_s = 0.0  # when a block last ended without a fault, or was entered alone

    @property
    def owners(self) -> int:
        """The number of owners that hold or wait for slots."""
        return len(self._loads)

    def hold(self, owner: QueueOwner, cost: int = 1) -> "_Hold":
        """Return a context manager that holds `cost` slots.

        Entering raises TooManyRequests when the owner itself has too much waiting, Overloaded when
        all together have, or when there is no progress, as while the database is unavailable.
        """
        return _Hold(self, owner, cost)

    async def enter(self, owner: QueueOwner, cost: int = 1) -> None:
        """Wait for slots, which the caller must `leave`. Raises as `hold`."""
        if not self.at_once(owner, cost):
            await self.wait(owner, cost)

    async def wait(self, owner: QueueOwner, cost: int) -> None:
        """Wait for slots, which are not to be had `at_once`. Raises as `hold`."""
        admitted = self._wait(owner, cost)
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled() and admitted.exception() is None:
                self.leave(owner, cost)  # it was admitted at the same moment
            raise

    def request(self, owner: QueueOwner) -> "asyncio.Future[None] | None":
        """Take a slot, or return a future whose result is set with the slot; cancel it to withdraw.
        Raises as `hold`.
        """
        return None if self.at_once(owner, 1) else self._wait(owner, 1)

    def leave(self, owner: QueueOwner, cost: int = 1) -> None:
        """Release slots, and admit the next ones that wait."""
        load = self._loads[owner]
        self._held -= cost
        load.held -= cost
        if load.behind or not load.held:
            self._queue_up(owner, load)
        if self._queue:
            self._admit()

    def _note_contention(self, owner: QueueOwner) -> None:
        """Note that several owners compete, if they do."""
        if owner != self._last:
            now_s = asyncio.get_running_loop().time()
            if self._last != HUB_WORK:
                self._contended_until_s = now_s + limits.CONTENTION_S
            self._last = owner

    def _share(self) -> int:
        """Return how many slots one owner may hold now."""
        if asyncio.get_running_loop().time() < self._contended_until_s:
            return self._slots.per_owner
        return self._slots.all

    def at_once(self, owner: QueueOwner, cost: int) -> bool:
        """Take slots if some are free and no one waits; return whether they were taken."""
        self._note_contention(owner)
        load = self._loads.get(owner)
        if load is None:
            load = self._loads[owner] = _Load()
        full = self._queue or self._held >= self._slots.all
        if full or load.waiting:
            return False
        if load.held >= self._slots.per_owner and load.held >= self._share():
            return False
        if not self._held:
            self.progress()
        self._held += cost
        load.held += cost
        return True

    def _wait(self, owner: QueueOwner, cost: int) -> "asyncio.Future[None]":
        loop, load = asyncio.get_running_loop(), self._loads[owner]
        waiter = _Waiter(owner, cost, loop.create_future())
        timer = None
        if self._limits is not None:
            refusal = self._refusal(self._limits, cost, load.waiting)
            if refusal is not None:
                self._queue_up(owner, load)
                raise refusal
            timer = loop.call_later(self._limits.wait_s_max, self._expire, load, waiter)
        load.behind.append(waiter)
        load.waiting += cost
        self._waiting += cost
        waiter.admitted.add_done_callback(partial(self._waited, load, cost, timer))
        self._queue_up(owner, load)
        self._admit()
        return waiter.admitted

    def _waited(
        self,
        load: _Load,
        cost: int,
        timer: asyncio.TimerHandle | None,
        _: "asyncio.Future[None]",
    ) -> None:
        load.waiting -= cost
        self._waiting -= cost
        if timer is not None:
            timer.cancel()

    def _queue_up(self, owner: QueueOwner, load: _Load) -> None:
        """Move waiters within the owner's share to the fair queue."""
        share = self._share()
        while load.behind and load.held + load.queued < share:
            waiter = load.behind.popleft()
            if not waiter.admitted.done():
                load.queued += waiter.cost
                self._queue.put(owner, waiter, waiter.cost)
        if not (load.held or load.queued):
            self._loads.pop(owner, None)

    def _admit(self) -> None:
        while self._queue and self._held < self._slots.all:
            waiter = self._queue.pop()
            load = self._loads[waiter.owner]
            load.queued -= waiter.cost
            if waiter.admitted.done():  # cancelled or expired
                self._queue_up(waiter.owner, load)
                continue
            self._held += waiter.cost
            load.held += waiter.cost
            waiter.admitted.set_result(None)

    def _expire(self, load: _Load, waiter: _Waiter) -> None:
        """Refuse a waiter whose time is over; the queue skips it."""
        if not waiter.admitted.done():
            greedy = load.waiting > waiter.cost
            waiter.admitted.set_exception(self._refused(greedy=greedy))

    def _refusal(self, wait_limits: WaitLimits, cost: int, own: int) -> EventHubError | None:
        """Return the error if no more may wait, else None. `own`: slots the owner waits for."""
        if own + cost > wait_limits.waiting_per_party_max:
            return self._refused(greedy=True)
        if self._waiting + cost > wait_limits.waiting_max:
            return self._refused(greedy=False)
        return None

    def _refused(self, *, greedy: bool) -> EventHubError:
        return _refused(greedy=greedy and not self._is_stalled())

    def _is_stalled(self) -> bool:
        """Return whether no work ended for as long as an owner may wait: then the owner is not the
        cause.
        """
        if self._limits is None:
            return False
        now_s = asyncio.get_running_loop().time()
        return now_s - self._progress_s >= self._limits.wait_s_max

    def progress(self) -> None:
        """Note that admitted work ended without a fault of the hub."""
        self._progress_s = asyncio.get_running_loop().time()


class _Hold:
    """Slots held for a block. A block that ends without a fault of the hub counts as progress."""

    __slots__ = ("_admission", "_cost", "_owner")

    def __init__(self, admission: Admission, owner: QueueOwner, cost: int) -> None:
        self._admission = admission
        self._owner = owner
        self._cost = cost

    async def __aenter__(self) -> None:
        if not self._admission.at_once(self._owner, self._cost):
            await self._admission.wait(self._owner, self._cost)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or (isinstance(error, EventHubError) and error.status < 500):
            self._admission.progress()
        self._admission.leave(self._owner, self._cost)


def _refused(*, greedy: bool) -> EventHubError:
    if greedy:
        message = "Too many requests of this client are waiting; send fewer at once."
        return TooManyRequests(message, retry_after_s=1)
    return Overloaded()
