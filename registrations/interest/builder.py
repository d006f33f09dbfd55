"""Builds closures from the filters in the tables, in chunks, so that neither the event loop nor a
connection is blocked for long. SQL module.

Concurrency contract: one event loop; a single thread of this module modifies unions.
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
from registrations.filters.closure.union import Closure, InterestCollector
from registrations.filters.languages import parse
from registrations.filters.normal import NormalForm, normal
from registrations.interest.stored import (
    FilterText,
    InterestScope,
    Supertypes,
    read_added,
    read_listened,
    read_registered,
    read_supertypes,
)

_ALWAYS: NormalForm = (frozenset(),)
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="closures")


class BuiltClosure(NamedTuple):
    """A union of filters and its closure. `many`: it has so many registrations that it is extended
    with new ones and rebuilt only at intervals.
    """

    union: InterestCollector
    closure: Closure
    supertypes: Supertypes
    many: bool


class ClosureBuilder:
    """The builder of one process, with a cache of normal forms."""

    def __init__(self, hub_log: Log) -> None:
        self._log = hub_log
        self._forms: OrderedDict[FilterText, NormalForm] = OrderedDict()
        self._tests = 0  # in the cached forms

    async def build(self, scope: InterestScope, *, listeners: bool) -> BuiltClosure:
        """Build the closure of all filters. Raises DatabaseUnavailable."""
        union, count = InterestCollector(), 0
        async for chunk in self._registered(scope):
            count += len(chunk)
            if count > limits.CLOSURE_SCAN_MAX:
                union.match_everything()
                break
            await self._add_filters(union, chunk)
        return await self._close(union, scope, listeners=listeners, count=count)

    async def add(
        self, built: BuiltClosure, scope: InterestScope, barriers: Sequence[int], *, listeners: bool
    ) -> BuiltClosure | None:
        """Extend a closure with the registrations that came at some barriers, and with the current
        listeners; return None if there are too many. Ended interests stay in it. Raises
        DatabaseUnavailable.
        """
        async with reading(self._log.pool) as connection:
            added = await read_added(connection, scope, barriers)
        if len(added) > limits.CLOSURE_ADDED_MAX:
            return None
        await self._add_filters(built.union, added)
        return await self._close(built.union, scope, listeners=listeners, count=None)

    async def _registered(self, scope: InterestScope) -> AsyncIterator[list[FilterText]]:
        after = 0
        while True:
            async with reading(self._log.pool) as connection:
                found = await read_registered(connection, scope, after)
            if found:
                after = found[-1].id
                yield [FilterText(one.language, one.filter) for one in found]
            if len(found) < limits.CLOSURE_CHUNK:
                return

    async def _close(
        self, union: InterestCollector, scope: InterestScope, *, listeners: bool, count: int | None
    ) -> BuiltClosure:
        async with reading(self._log.pool) as connection:
            listened = await read_listened(connection, scope) if listeners else []
            supertypes = await read_supertypes(connection, scope.stream_id)
        if len(listened) > limits.CLOSURE_LISTENERS_MAX:
            union.match_everything()
        await self._add_filters(union, listened)
        loop = asyncio.get_running_loop()
        closure = await loop.run_in_executor(_THREAD, union.closure, pauses())
        many = count is None or count > limits.CLOSURE_FILTERS_MAX
        return BuiltClosure(union if many else InterestCollector(), closure, supertypes, many)

    async def _add_filters(self, union: InterestCollector, texts: Sequence[FilterText]) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(_THREAD, self._add_in_thread, union, texts)

    def _add_in_thread(self, union: InterestCollector, texts: Sequence[FilterText]) -> None:
        """Add filters to a union; runs in the thread."""
        pause = pauses()
        for text in texts:
            form = self._forms.get(text)
            if form is None:
                form = self._forms[text] = _form(*text)
                self._tests += _weight(form)
            union.add(form)
            while (
                self._tests > limits.CLOSURE_TESTS_MAX
            ):  # one by one: evicting all at once takes long
                self._tests -= _weight(self._forms.popitem(last=False)[1])
            pause()


def _weight(form: NormalForm) -> int:
    return 1 + sum(map(len, form))


def pauses() -> Callable[[], None]:
    """Return a function that a thread calls between its steps to release the interpreter: without
    it, each step of the event loop waits 5 ms for the interpreter, with it about 1 ms.
    """
    until_s = perf_counter() + limits.CLOSURE_WORK_S

    def pause() -> None:
        nonlocal until_s
        if perf_counter() >= until_s:
            sleep(limits.CLOSURE_REST_S)
            until_s = perf_counter() + limits.CLOSURE_WORK_S

    return pause


def _form(language: str, source: str) -> NormalForm:
    """Return the normal form of a filter; without a language, the text is in the predicate
    language. A filter that can no longer be parsed matches everything.
    """
    try:
        if not language:
            return normal(parse("predicate", source).node)
        return stored_filter(language, source).form()
    except EventHubError:
        return _ALWAYS
