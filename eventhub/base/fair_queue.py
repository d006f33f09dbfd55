"""Divides what a process can do at a time between those who ask: zones in turn, in each zone its
clients in turn, of each client what came first. Plain module.

`FairQueue` is start-time fair queueing: each item has a cost, and a lane that was served waits
until the others have had as much. A lane that was empty is served next, so who asks for little
waits for one item of the others, however much they have waiting. `Admission` lets what comes in by
that order, up to a capacity.

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


class Party(NamedTuple):
    """A client, for whom something is done."""

    zone_id: int = 0
    client_id: int = 0


HUB = Party()  # what the hub does for itself
_SERVED_MIN = 64  # lanes that were served are remembered anyway


class _Line(Generic[T]):
    """First in, first out."""

    def __init__(self) -> None:
        self._items: deque[tuple[T, int]] = deque()

    def put(self, path: tuple[int, ...], item: T, cost: int) -> None:
        self._items.append((item, cost))

    def peek(self) -> T:
        return self._items[0][0]

    def pop(self) -> tuple[T, int]:
        """The next item and its cost."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)


class _Turns(Generic[T]):
    """Lanes by the first part of the path; the one that was served least is next."""

    def __init__(self) -> None:
        self._lanes: dict[int, _Turns[T] | _Line[T]] = {}
        self._next: list[tuple[int, int, int]] = []  # start, arrival, lane
        self._served: dict[int, int] = {}  # where each lane's last item ends
        self._swept_at = _SERVED_MIN
        self._now = 0
        self._arrivals = count()

    def put(self, path: tuple[int, ...], item: T, cost: int) -> None:
        which, rest = path[0], path[1:]
        lane = self._lanes.get(which)
        if lane is None:
            lane = self._lanes[which] = _Turns() if rest else _Line()
            start = max(self._now, self._served.get(which, 0))
            heappush(self._next, (start, next(self._arrivals), which))
        lane.put(rest, item, cost)

    def peek(self) -> T:
        return self._lanes[self._next[0][2]].peek()

    def pop(self) -> tuple[T, int]:
        start, _, which = self._next[0]
        lane = self._lanes[which]
        item, cost = lane.pop()
        self._now, end = start, start + cost
        if lane:
            heapreplace(self._next, (end, next(self._arrivals), which))
        else:
            heappop(self._next)
            del self._lanes[which]
        self._served[which] = end
        if not self._lanes:
            self._served.clear()
        elif len(self._served) > self._swept_at:
            self._sweep()
        return item, cost

    def _sweep(self) -> None:
        """Forget lanes that owe nothing: a queue that is never empty meets ever new ones."""
        self._served = {each: end for each, end in self._served.items() if end > self._now}
        self._swept_at = 2 * len(self._served) + _SERVED_MIN

    def __len__(self) -> int:
        return len(self._lanes)


class FairQueue(Generic[T]):
    """Items of many parties, given out in fair order; a line while all are of one party."""

    def __init__(self) -> None:
        self._alone: Party | None = None
        self._line: deque[tuple[T, int]] = deque()
        self._turns: _Turns[T] | None = None  # once there are several
        self._in_turns = 0

    def put(self, party: Party, item: T, cost: int = 1) -> None:
        """`cost`: in units of one item that costs little; at least 1."""
        if self._turns is None:
            if not self._line:
                self._alone = party
            if party == self._alone:
                self._line.append((item, cost))
                return
        self._put_in_turns(party, item, cost)

    def peek(self) -> T:
        """The item that `pop` gives. Raises IndexError when there is none."""
        return self._line[0][0] if self._turns is None else self._turns.peek()

    def pop(self) -> T:
        """Take the next item. Raises IndexError when there is none."""
        if self._turns is None:
            return self._line.popleft()[0]
        item, _ = self._turns.pop()
        self._in_turns -= 1
        if not self._in_turns:
            self._turns = None
        return item

    def _put_in_turns(self, party: Party, item: T, cost: int) -> None:
        if self._turns is None:
            self._turns = _Turns()
            for before, its_cost in self._line:
                self._turns.put(self._alone or HUB, before, its_cost)
            self._in_turns = len(self._line)
            self._line.clear()
        self._turns.put(party, item, cost)
        self._in_turns += 1

    def __len__(self) -> int:
        return len(self._line) or self._in_turns


class Places(NamedTuple):
    """How many places there are, and how many of them one party may hold while others come, too;
    one that is alone may hold all.
    """

    all: int
    per_party: int


class Bounds(NamedTuple):
    """How many places may be waited for, by all and by one party, and how long."""

    waiting_max: int
    waiting_per_party_max: int
    wait_s_max: float


class _Waiting(NamedTuple):
    party: Party
    cost: int
    admitted: "asyncio.Future[None]"


class _Load:
    """What one party has: places held, and places that it waits for."""

    __slots__ = ("behind", "held", "queued", "waiting")

    def __init__(self) -> None:
        self.held = 0
        self.queued = 0  # of those that wait, what is in the fair queue
        self.waiting = 0
        self.behind: deque[_Waiting] = deque()  # what would be more than its share


class Admission:
    """Lets in as much at a time as there are places; the rest waits in fair order. Without bounds
    it waits however long it takes.
    """

    def __init__(self, places: Places, bounds: Bounds | None = None) -> None:
        self._places = places
        self._bounds = bounds
        self._held = 0
        self._waiting = 0
        self._queue: FairQueue[_Waiting] = FairQueue()
        self._loads: dict[Party, _Load] = {}
        self._last = HUB  # the party that came last
        self._company_until_s = 0.0
        self._progress_s = 0.0  # when a block was last left with its work done, or entered alone

    @property
    def parties(self) -> int:
        """How many hold or wait for places."""
        return len(self._loads)

    def place(self, party: Party, cost: int = 1) -> "_Place":
        """Hold as many places as something costs until the block is left.

        Raises TooManyRequests when the party itself has too much waiting, Overloaded when all
        together have, or when nobody gets on, as while the database is away.
        """
        return _Place(self, party, cost)

    async def enter(self, party: Party, cost: int = 1) -> None:
        """Wait for places; who got them must `leave` them. Raises as `place`."""
        if self._at_once(party, cost):
            return
        admitted = self._wait(party, cost)
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled() and admitted.exception() is None:
                self.leave(party, cost)  # it was let in at the same moment
            raise

    def ask(self, party: Party) -> "asyncio.Future[None] | None":
        """Take a place, or get a future whose result is set with the place; cancel it to go. Raises
        as `place`.
        """
        return None if self._at_once(party, 1) else self._wait(party, 1)

    def leave(self, party: Party, cost: int = 1) -> None:
        """Give places back, and let in who is next."""
        load = self._loads[party]
        self._held -= cost
        load.held -= cost
        if load.behind or not load.held:
            self._queue_up(party, load)
        if self._queue:
            self._let_in()

    def _meet(self, party: Party) -> None:
        """Remember that there are several, if there are."""
        if party != self._last:
            now_s = asyncio.get_running_loop().time()
            if self._last != HUB:
                self._company_until_s = now_s + limits.CONTENTION_S
            self._last = party

    def _share(self) -> int:
        """How many places one party may hold now."""
        if asyncio.get_running_loop().time() < self._company_until_s:
            return self._places.per_party
        return self._places.all

    def _at_once(self, party: Party, cost: int) -> bool:
        """Take places if there are any, and nobody is before this one."""
        self._meet(party)
        load = self._loads.get(party)
        if load is None:
            load = self._loads[party] = _Load()
        full = self._queue or self._held >= self._places.all
        if full or load.waiting:
            return False
        if load.held >= self._places.per_party and load.held >= self._share():
            return False
        if not self._held:
            self.progress()
        self._held += cost
        load.held += cost
        return True

    def _wait(self, party: Party, cost: int) -> "asyncio.Future[None]":
        loop, load = asyncio.get_running_loop(), self._loads[party]
        waiting = _Waiting(party, cost, loop.create_future())
        timer = None
        if self._bounds is not None:
            refusal = self._refusal(self._bounds, cost, load.waiting)
            if refusal is not None:
                self._queue_up(party, load)
                raise refusal
            timer = loop.call_later(self._bounds.wait_s_max, self._expire, load, waiting)
        load.behind.append(waiting)
        load.waiting += cost
        self._waiting += cost
        waiting.admitted.add_done_callback(partial(self._waited, load, cost, timer))
        self._queue_up(party, load)
        self._let_in()
        return waiting.admitted

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

    def _queue_up(self, party: Party, load: _Load) -> None:
        """Put what is within the party's share into the fair queue."""
        share = self._share()
        while load.behind and load.held + load.queued < share:
            waiting = load.behind.popleft()
            if not waiting.admitted.done():
                load.queued += waiting.cost
                self._queue.put(party, waiting, waiting.cost)
        if not (load.held or load.queued):
            self._loads.pop(party, None)

    def _let_in(self) -> None:
        while self._queue and self._held < self._places.all:
            waiting = self._queue.pop()
            load = self._loads[waiting.party]
            load.queued -= waiting.cost
            if waiting.admitted.done():  # it has gone
                self._queue_up(waiting.party, load)
                continue
            self._held += waiting.cost
            load.held += waiting.cost
            waiting.admitted.set_result(None)

    def _expire(self, load: _Load, waiting: _Waiting) -> None:
        """The queue passes over it."""
        if not waiting.admitted.done():
            greedy = load.waiting > waiting.cost
            waiting.admitted.set_exception(self._refused(greedy=greedy))

    def _refusal(self, bounds: Bounds, cost: int, own: int) -> EventHubError | None:
        """Why no more may wait, given how many places the party waits for; None if more may."""
        if own + cost > bounds.waiting_per_party_max:
            return self._refused(greedy=True)
        if self._waiting + cost > bounds.waiting_max:
            return self._refused(greedy=False)
        return None

    def _refused(self, *, greedy: bool) -> EventHubError:
        return _refused(greedy=greedy and not self._is_stalled())

    def _is_stalled(self) -> bool:
        """True while nobody gets on for as long as a party may wait: then it is not the party's
        doing.
        """
        if self._bounds is None:
            return False
        now_s = asyncio.get_running_loop().time()
        return now_s - self._progress_s >= self._bounds.wait_s_max

    def progress(self) -> None:
        """Somebody gets on."""
        self._progress_s = asyncio.get_running_loop().time()


class _Place:
    """Places that are held for a block: what it ends with says whether its party got on."""

    __slots__ = ("_admission", "_cost", "_party")

    def __init__(self, admission: Admission, party: Party, cost: int) -> None:
        self._admission = admission
        self._party = party
        self._cost = cost

    async def __aenter__(self) -> None:
        await self._admission.enter(self._party, self._cost)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or (isinstance(error, EventHubError) and error.status < 500):
            self._admission.progress()
        self._admission.leave(self._party, self._cost)


def _refused(*, greedy: bool) -> EventHubError:
    if greedy:
        message = "More requests of this client wait than it may have waiting; send fewer at once."
        return TooManyRequests(message, retry_after_s=1)
    return Overloaded()
