"""What is wanted of the streams that this process was asked about, kept current. SQL module.

Whatever was registered, or listened for, before `current` was called is in what it gives. A closure
is made anew only when something changed that is about its stream. One of many registrations is
added to when more come, and made anew beside that, now and then, to lose what has ended; and who
would wait for it too long is told that everything is wanted.
Concurrency contract: one event loop; what was given is never changed.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import orjson

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError, Overloaded
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Log
from eventhub.postgresql.connections import reading
from registrations.feed import Change, Feed
from registrations.filters.closure.union import EVERYTHING, Closure, alternative_node
from registrations.filters.printed import printed
from registrations.interest.audiences import Audiences
from registrations.interest.builder import Made, Maker
from registrations.interest.listeners import Listens
from registrations.interest.stored import Above, Asked, Marks, read_marks, read_touched


class Demand(NamedTuple):
    """What is wanted of a stream. `quench`: listens are in it, and an emitter may leave out what
    does not match; else it is of registrations alone. `tag`: equal for the same demand.
    """

    closure: Closure
    alternatives: tuple[str, ...]  # of the closure, in predicate form
    above: Above
    quench: bool
    tag: str
    through: int = 0  # everything that `system` held up to this sequence is in it
    made: int = 0  # later ones of a process have greater numbers

    @classmethod
    def of(cls, closure: Closure, above: Above, *, quench: bool) -> "Demand":
        texts = tuple(printed(alternative_node(parts)) for parts in closure.form)
        types = sorted([*at, *names] for at, names in above.items())
        whole = orjson.dumps([texts, closure.widened, types, quench])
        return cls(closure, texts, above, quench, hashlib.sha256(whole).hexdigest()[:16])

    @property
    def filter(self) -> str:
        """The whole in predicate form."""
        if not self.alternatives:
            return "false"
        if len(self.alternatives) == 1:
            return self.alternatives[0]
        return f"(or {' '.join(self.alternatives)})"

    def hierarchy(self, event: Event) -> tuple[str, ...]:
        """Return the event's type, then its supertypes."""
        return (event.type, *self.above.get((event.domain, event.type), ()))


_Making = asyncio.Task[EventHubError | None]


class _Begun(NamedTuple):
    """A making that is to be waited for."""

    making: _Making
    quench: bool


class _Kept:
    """One closure. `demand` holds what there was at `began_s`, and what was added to it since."""

    def __init__(self) -> None:
        self.looking = asyncio.Lock()  # held for short reads only
        self.making: _Making | None = None
        self.stale = True  # what there is, is to be read anew ...
        self.lost = True  # ... also what is being made
        self.news: set[int] = set()  # barriers that are not looked at
        self.since: set[int] = set()  # those that came while it is being made
        self.ended = False  # it may hold what is wanted no more
        self.began_s = float("-inf")
        self.again_s = float("-inf")  # when one of many may be made anew
        self.marks: Marks | None = None
        self.made: Made | None = None
        self.demand: Demand
        self.meanwhile: Demand | None = None  # everything, while it is not known

    def touch(self, barriers: Sequence[int]) -> None:
        self.ended = True
        self.news.update(barriers)
        if self.making is not None:
            self.since.update(barriers)
        if len(self.news) > limits.CLOSURE_ADDED_MAX:
            self.lose()

    def lose(self) -> None:
        """What changed is not known."""
        self.stale = self.lost = True
        self.news.clear()
        self.since.clear()


class Closures:
    """Those of one process; `listens` are its own."""

    def __init__(self, hub_log: Log, feed: Feed) -> None:
        self.listens = Listens(hub_log)
        self._log = hub_log
        self._feed = feed
        self._kept: dict[Asked, _Kept] = {}
        self._barriers: list[int] = []  # of changes that are not yet looked at
        self._looking = asyncio.Lock()
        self._made = 0
        self._maker = Maker(hub_log)
        self._audiences = Audiences()
        self._wakers: set[asyncio.Event] = set()
        feed.listeners.add(self._heard)

    async def current(self, asked: Asked) -> Demand:
        """What is wanted now. Raises DatabaseUnavailable."""
        asked_s = asyncio.get_running_loop().time()
        await self._feed.confirm()
        through = self._feed.told
        await self._look()
        kept = self._kept.pop(asked, None) or _Kept()
        self._kept[asked] = kept  # the one asked for last is the last to go
        while len(self._kept) > limits.CLOSURES_CACHED_MAX:
            del self._kept[next(iter(self._kept))]
        return (await self._known(kept, asked, asked_s))._replace(through=through)

    async def changes(self, asked: Asked) -> AsyncIterator[Demand]:
        """What is wanted now, and again whenever it was made anew, without end; who tells of it
        compares with what was told last, here or by another way. Raises Overloaded.
        """
        if len(self._wakers) >= limits.INTERESTS_PER_PROCESS_MAX:
            raise Overloaded("This process tells as many producers as it may; ask instead.")
        waker = asyncio.Event()
        self._wakers.add(waker)
        told = -1
        try:
            while True:
                waker.clear()
                try:
                    demand = await self.current(asked)
                    if demand.made != told:
                        told = demand.made
                        yield demand
                except DatabaseUnavailable:
                    pass
                await asyncio.sleep(limits.INTEREST_PAUSE_S)  # many changes are one
                try:
                    async with asyncio.timeout(limits.INTEREST_CHECK_S):
                        await waker.wait()
                except TimeoutError:
                    pass  # listens come without a word in `system`
        finally:
            self._wakers.discard(waker)

    def _heard(self, change: Change | None) -> None:
        if change is None or len(self._barriers) >= limits.CLOSURE_BARRIERS_MAX:
            self._barriers.clear()
            for kept in self._kept.values():
                kept.lose()
        elif self._kept:
            self._barriers.append(change.barrier)
        self._wake()

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    async def _look(self) -> None:
        """Which of the kept ones the changes so far are about; who comes second waits."""
        async with self._looking:
            if not self._barriers:
                return
            barriers, self._barriers = self._barriers, []
            try:
                async with reading(self._log.pool) as connection:
                    touched = await read_touched(connection, barriers)
            except BaseException:
                self._barriers += barriers
                raise
            for asked, kept in self._kept.items():
                if asked.stream_id in touched:
                    kept.touch(touched[asked.stream_id])

    async def _known(self, kept: _Kept, asked: Asked, asked_s: float) -> Demand:
        """What holds all that there was at a time, waiting for it only so long."""
        until_s = asked_s + limits.CLOSURE_WAIT_S
        while True:
            async with kept.looking:
                found = await self._begun(kept, asked, asked_s)
            if isinstance(found, Demand):
                return found
            left_s = until_s - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait([found.making], timeout=max(0.0, left_s))
            if not done:
                return self._everything(kept, quench=found.quench)
            error = found.making.result()
            if error is not None:
                raise error

    async def _begun(self, kept: _Kept, asked: Asked, asked_s: float) -> Demand | _Begun:
        """What is known, or what is to be waited for."""
        if kept.began_s >= asked_s:
            return kept.demand
        async with reading(self._log.pool) as connection:
            marks = await read_marks(connection, asked)
        made = kept.made
        if made is not None and not kept.stale:
            same = marks == kept.marks and not kept.news
            if same or (made.many and await self._add(kept, made, asked, marks)):
                if made.many and kept.ended and self._is_time(kept, asked):
                    self._start(kept, asked, marks)
                return kept.demand
        if kept.making is None and not self._is_time(kept, asked):
            return self._everything(kept, quench=marks.quench)
        return _Begun(self._start(kept, asked, marks), marks.quench)

    def _is_time(self, kept: _Kept, asked: Asked) -> bool:
        """One of many is not made anew all the time, nor one for each audience."""
        now_s = asyncio.get_running_loop().time()
        return now_s >= kept.again_s and self._audiences.may_begin(asked, now_s)

    def _everything(self, kept: _Kept, *, quench: bool) -> Demand:
        if kept.meanwhile is None or kept.meanwhile.quench != quench:
            kept.meanwhile = Demand.of(EVERYTHING, {}, quench=quench)._replace(made=self._next())
        return kept.meanwhile

    def _start(self, kept: _Kept, asked: Asked, marks: Marks) -> _Making:
        if kept.making is None:
            kept.making = asyncio.create_task(self._make(kept, asked, marks))
        return kept.making

    async def _add(self, kept: _Kept, made: Made, asked: Asked, marks: Marks) -> bool:
        """True if what came could be added to one of many."""
        if kept.marks is None or marks.members != kept.marks.members:
            kept.lose()
            return False
        barriers, kept.news = sorted(kept.news), set()
        try:
            wider = await self._maker.add(made, asked, barriers, listens=marks.quench)
            if wider is None:
                kept.lose()
                return False
            demand = await _demand(wider, marks)
        except BaseException:
            kept.news.update(barriers)  # else what was added would be told by nothing
            raise
        self._keep(kept, wider, marks, demand)
        return True

    async def _make(self, kept: _Kept, asked: Asked, marks: Marks) -> EventHubError | None:
        """A change that is heard meanwhile is looked at after it."""
        clock = asyncio.get_running_loop().time
        began_s = clock()
        kept.lost = kept.ended = False
        kept.since.clear()
        try:
            async with self._audiences.turn(asked):
                turn_s = clock()
                made = await self._maker.make(asked, listens=marks.quench)
                took_s, many = clock() - turn_s, made.many
                self._audiences.made(asked, took_s=took_s, many=many, now_s=clock())
            demand = await _demand(made, marks)
        except BaseException as error:
            kept.making = None
            kept.lose()
            if not isinstance(error, EventHubError):
                raise
            return error
        async with kept.looking:  # nobody is adding to the one that there was
            kept.making = None
            kept.stale = kept.lost
            kept.began_s = began_s
            pause_s = max(limits.CLOSURE_REBUILD_S, limits.CLOSURE_REBUILD_SHARE * took_s)
            kept.again_s = clock() + pause_s if many else float("-inf")
            kept.news, kept.since = kept.since, set()
            self._keep(kept, made, marks, demand)
        self._wake()
        return None

    def _keep(self, kept: _Kept, made: Made, marks: Marks, demand: Demand) -> None:
        kept.demand = demand._replace(made=self._next())
        kept.made, kept.marks = made, marks

    def _next(self) -> int:
        self._made += 1
        return self._made


async def _demand(made: Made, marks: Marks) -> Demand:
    """In a thread: printing a large one takes as long as many requests do."""
    return await asyncio.to_thread(Demand.of, made.closure, made.above, quench=marks.quench)
