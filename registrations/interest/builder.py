"""Makes unions of what the tables say is wanted, piece by piece, so that neither the event loop nor
a connection is held for long. SQL module.

Concurrency contract: one event loop; unions are added to in one thread of their own, and by nobody
else.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, sleep
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.eventlog.log import Log
from eventhub.postgresql.connections import reading
from registrations.filter_source import stored_filter
from registrations.filters.closure.union import Closure, Union
from registrations.filters.languages import parse
from registrations.filters.normal import NormalForm, normal
from registrations.interest.stored import (
    Above,
    Asked,
    Text,
    read_above,
    read_listened,
    read_news,
    read_registered,
)

_ALWAYS: NormalForm = (frozenset(),)
_aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="closures")


class Made(NamedTuple):
    """A union of what is wanted. `many`: of so many registrations that it is added to later, and
    made anew now and then only.
    """

    union: Union
    closure: Closure
    above: Above
    many: bool


class Maker:
    """For one process; it remembers how filters read."""

    def __init__(self, hub_log: Log) -> None:
        self._log = hub_log
        self._forms: OrderedDict[Text, NormalForm] = OrderedDict()
        self._tests = 0  # in these

    async def make(self, asked: Asked, *, listens: bool) -> Made:
        """Of all that is there. Raises DatabaseUnavailable."""
        union, count = Union(), 0
        async for piece in self._registered(asked):
            count += len(piece)
            if count > limits.CLOSURE_SCAN_MAX:
                union.match_everything()
                break
            await self._take(union, piece)
        return await self._made(union, asked, listens=listens, count=count)

    async def add(
        self, made: Made, asked: Asked, barriers: Sequence[int], *, listens: bool
    ) -> Made | None:
        """With what came at some barriers, and the listens that are there; None: too much came.
        What has ended since stays in it. Raises DatabaseUnavailable.
        """
        async with reading(self._log.pool) as connection:
            news = await read_news(connection, asked, barriers)
        if len(news) > limits.CLOSURE_ADDED_MAX:
            return None
        await self._take(made.union, news)
        return await self._made(made.union, asked, listens=listens, count=None)

    async def _registered(self, asked: Asked) -> AsyncIterator[list[Text]]:
        after = 0
        while True:
            async with reading(self._log.pool) as connection:
                found = await read_registered(connection, asked, after)
            if found:
                after = found[-1].id
                yield [Text(one.language, one.filter) for one in found]
            if len(found) < limits.CLOSURE_CHUNK:
                return

    async def _made(self, union: Union, asked: Asked, *, listens: bool, count: int | None) -> Made:
        async with reading(self._log.pool) as connection:
            listened = await read_listened(connection, asked) if listens else []
            above = await read_above(connection, asked.stream_id)
        if len(listened) > limits.CLOSURE_LISTENERS_MAX:
            union.match_everything()
        await self._take(union, listened)
        loop = asyncio.get_running_loop()
        closure = await loop.run_in_executor(_aside, union.closure, rests())
        many = count is None or count > limits.CLOSURE_FILTERS_MAX
        return Made(union if many else Union(), closure, above, many)

    async def _take(self, union: Union, texts: Sequence[Text]) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(_aside, self._taken, union, texts)

    def _taken(self, union: Union, texts: Sequence[Text]) -> None:
        """In the thread."""
        rest = rests()
        for text in texts:
            form = self._forms.get(text)
            if form is None:
                form = self._forms[text] = _form(*text)
                self._tests += _weight(form)
            union.add(form)
            while self._tests > limits.CLOSURE_TESTS_MAX:  # not all at once: that takes long
                self._tests -= _weight(self._forms.popitem(last=False)[1])
            rest()


def _weight(form: NormalForm) -> int:
    return 1 + sum(map(len, form))


def rests() -> Callable[[], None]:
    """What a thread calls between its steps so that the event loop goes on beside it: without, each
    turn of the loop waits 5 ms for the interpreter, and with it about one.
    """
    until_s = perf_counter() + limits.CLOSURE_WORK_S

    def rest() -> None:
        nonlocal until_s
        if perf_counter() >= until_s:
            sleep(limits.CLOSURE_REST_S)
            until_s = perf_counter() + limits.CLOSURE_WORK_S

    return rest


def _form(language: str, source: str) -> NormalForm:
    """Without a language a text in predicate form. Everything, where it cannot be read any more."""
    try:
        if not language:
            return normal(parse("predicate", source).node)
        return stored_filter(language, source).form()
    except EventHubError:
        return _ALWAYS
