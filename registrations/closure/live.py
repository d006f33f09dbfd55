"""What is wanted of the streams that this process was asked about, kept current. Sql module.

`current` is exact: whatever was registered, or listened for, before it was called is in what it
gives. A closure is made anew only when something changed that is about its stream.
Concurrency contract: one event loop; closures are made in a thread of their own and never changed.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import orjson

from eventhub import limits
from eventhub.errors import DatabaseUnavailable, EventHubError, Overloaded
from eventhub.event.envelope import Event
from eventhub.eventlog.database import reading
from eventhub.eventlog.log import Log
from registrations.closure.listens import Listens
from registrations.closure.stored import (
    Above,
    Asked,
    Marks,
    read_above,
    read_listened,
    read_marks,
    read_registered,
    read_touched,
)
from registrations.closure.union import EVERYTHING, Closure, alternative_node, closure_of
from registrations.feed import Change, Feed
from registrations.filters import stored_filter
from registrations.lang.languages import parse
from registrations.lang.normal import Form, normal
from registrations.lang.printed import printed

_ALWAYS: Form = (frozenset(),)
_aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="closures")


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

    def kin(self, event: Event) -> tuple[str, ...]:
        """The event's type and the declared ones above it."""
        return (event.type, *self.above.get((event.domain, event.type), ()))


class _Kept:
    def __init__(self) -> None:
        self.making = asyncio.Lock()
        self.stale = True
        self.marks: Marks | None = None
        self.demand: Demand


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
        self._forms: dict[tuple[str, str], Form] = {}
        self._wakers: set[asyncio.Event] = set()
        feed.listeners.add(self._heard)

    async def current(self, asked: Asked) -> Demand:
        """What is wanted now. Raises DatabaseUnavailable."""
        await self._feed.confirm()
        through = self._feed.told
        await self._look()
        kept = self._kept.pop(asked, None) or _Kept()
        self._kept[asked] = kept  # the one asked for last is the last to go
        while len(self._kept) > limits.CLOSURES_KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        async with kept.making:
            async with reading(self._log.pool) as connection:
                marks = await read_marks(connection, asked)
            if kept.stale or marks != kept.marks:
                await self._make(kept, asked, marks)
            return kept.demand._replace(through=through)

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
                    async with asyncio.timeout(limits.INTEREST_LOOK_S):
                        await waker.wait()
                except TimeoutError:
                    pass  # listens come without a word in `system`
        finally:
            self._wakers.discard(waker)

    def _heard(self, change: Change | None) -> None:
        if change is None or len(self._barriers) >= limits.CLOSURE_BARRIERS_MAX:
            self._barriers.clear()
            for kept in self._kept.values():
                kept.stale = True
        elif self._kept:
            self._barriers.append(change.barrier)
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
                    kept.stale = True

    async def _make(self, kept: _Kept, asked: Asked, marks: Marks) -> None:
        """A change that is heard meanwhile makes it stale again."""
        kept.stale = False
        try:
            async with reading(self._log.pool) as connection:
                written = [await read_registered(connection, asked)]
                if marks.quench:
                    written.append(await read_listened(connection, asked))
                above = await read_above(connection, asked.stream_id)
            closure = EVERYTHING
            if all(each.all for each in written):
                filters = [one for each in written for one in each.filters]
                loop = asyncio.get_running_loop()
                closure = await loop.run_in_executor(_aside, self._united, filters)
        except BaseException:
            kept.stale = True
            raise
        self._made += 1
        demand = Demand.of(closure, above, quench=marks.quench)
        kept.demand = demand._replace(made=self._made)
        kept.marks = marks

    def _united(self, filters: list[tuple[str, str]]) -> Closure:
        """In a thread: nothing else uses the forms."""
        if len(self._forms) > 4 * limits.CLOSURE_FILTERS_MAX:
            self._forms.clear()
        for key in filters:
            if key not in self._forms:
                self._forms[key] = _form(*key)
        return closure_of(self._forms[key] for key in filters)


def _form(language: str, source: str) -> Form:
    """Without a language a text in predicate form. Everything, where it cannot be read any more."""
    try:
        if not language:
            return normal(parse("predicate", source).node)
        filter = stored_filter(language, source)
        return normal(parse(filter.language, filter.source).node)
    except EventHubError:
        return _ALWAYS
