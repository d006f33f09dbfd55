"""Compares promised, stored and received events while nothing is emitted.

Each judgement continues from the previous one; `last_judgement` starts from the beginning with the
journal's file.
"""

import asyncio
import random
from collections.abc import Iterable

import aiohttp
from eventhub_client.types import Cursor

from tests.chaos.events import Interest
from tests.chaos.hub import HubUnderTest
from tests.chaos.journal import Journal, Promise, read_promises
from tests.chaos.readers import (
    JSON,
    PROTOBUF,
    Manner,
    Seen,
    Sight,
    close_quietly,
    expected,
    read_plainly,
)
from tests.chaos.stored import STRAYS, StoredStream, doubled
from tests.chaos.until import NeverCame, until

CATCH_UP_S = 45.0
SHOWN_MAX = 5  # pieces of evidence of one kind


class Judge:
    """The judge. It remembers up to where each stream and reader was found right."""

    def __init__(self, hub: HubUnderTest, key: str, streams: Iterable[str]) -> None:
        self._hub = hub
        self._key = key
        self.streams = {name: StoredStream(name) for name in streams}
        self._places: dict[str, tuple[str, int]] = {}
        self._judged: dict[str, int] = {}  # by reader: the last sequence

    async def judge(self, journal: Journal, readers: list[Seen]) -> list[str]:
        """Return the problems since the previous judgement."""
        problems = await self.read_on()
        problems += self.promises_wrong(journal.promised)
        problems += self._unpromised_wrong(journal)
        for seen in readers:
            problems += await self._reader_wrong(seen)
        problems += await self.fresh_reader_wrong()
        return problems

    async def read_on(self) -> list[str]:
        """Read new rows of the tables."""
        problems: list[str] = []
        for stream in self.streams.values():
            known = stream.head
            problems += await stream.read_on(self._hub)
            problems += self.note_places(stream.name, known)
        [(strays,)] = await self._hub.rows(STRAYS)
        if strays:
            problems.append(f"{strays} rows of events belong to no segment")
        return problems

    def note_places(self, stream: str, known: int) -> list[str]:
        """Remember the positions of the events after the first `known`; return duplicates of
        earlier ones.
        """
        problems = []
        for sequence, name in enumerate(self.streams[stream].names[known:], known + 1):
            before = self._places.setdefault(name, (stream, sequence))
            if before != (stream, sequence):
                problems.append(f"{name} is stored twice: {before}, {stream} {sequence}")
        return shorten(problems)

    def promises_wrong(self, promised: dict[str, Promise]) -> list[str]:
        """Check that every promised event is in the log at the promised position."""
        problems = []
        for name, promise in promised.items():
            place = self._places.get(name)
            if place is None:
                problems.append(f"{name} was promised as {promise}, and is not in the log")
                continue
            segment = self.streams[place[0]].segments[place[1] - 1]
            if promise != (place[0], segment, place[1]):
                problems.append(f"{name} was promised as {promise}, but is {place} in {segment}")
        return shorten(problems)

    def _unpromised_wrong(self, journal: Journal) -> list[str]:
        """Check that refused events are not stored, and that every stored event was offered."""
        problems = [
            f"{name} is stored as {self._places[name]}, but the hub said that nothing was"
            for name in journal.absent
            if name in self._places
        ]
        problems += [
            f"{name} is stored as {place}, but its emitter knows nothing of an outcome"
            for name, place in self._places.items()
            if name not in journal.promised
            and name not in journal.unknown
            and name not in journal.absent
        ]
        return shorten(problems)

    async def _reader_wrong(self, seen: Seen) -> list[str]:
        """Check that a reader received each matching event exactly once, in order, since it was
        last judged.
        """
        stream = self.streams[seen.stream]
        first = self._judged.get(seen.name, 0) + 1
        due = [
            Sight(stream.segments[sequence - 1], sequence, name)
            for sequence, name in expected(seen, stream.names[first - 1 :], first)
        ]
        late = await _await_count(seen, len(due))
        found, seen.unjudged = seen.unjudged, []
        self._judged[seen.name] = stream.head
        return [*late, *_taken(seen.problems), *differs(seen.name, due, found)]

    async def fresh_reader_wrong(self, *, whole: bool = False) -> list[str]:
        """Check that a new reader receives the log as it is in the tables: from `oldest` while that
        is little or if `whole`, otherwise from the cursor judged last.
        """
        problems: list[str] = []
        headers = {"Authorization": f"Bearer {self._key}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            for index, stream in enumerate(self.streams.values()):
                seen = Seen(f"fresh reader of {stream.name}", stream.name, Interest())
                known = self._judged.get(seen.name, 0)
                if whole or known < FROM_OLDEST_MAX:
                    known = 0
                else:
                    seen.cursor = Cursor(stream.segments[known - 1], known)
                manner = Manner(JSON if index % 2 else PROTOBUF)
                reading = asyncio.create_task(
                    read_plainly(http, [self._hub.url], seen, manner, random.Random(0))
                )
                late = await _await_count(seen, stream.head - known)
                await close_quietly([reading])
                expected = [
                    Sight(stream.segments[n - 1], n, stream.names[n - 1])
                    for n in range(known + 1, stream.head + 1)
                ]
                problems += [*late, *seen.problems, *differs(seen.name, expected, seen.unjudged)]
                self._judged[seen.name] = stream.head
        return problems


FROM_OLDEST_MAX = 10_000


async def last_judgement(hub: HubUnderTest, key: str, journal: Journal) -> list[str]:
    """Judge the whole log once more against the journal's file, without remembered results."""
    streams = [name for (name,) in await hub.rows("SELECT name FROM streams WHERE id <> 1")]
    judge = Judge(hub, key, streams)
    problems = await judge.read_on()
    for stream in judge.streams.values():
        problems += [f"{name} is stored twice" for name in doubled(stream.names)]
    promised = await asyncio.to_thread(read_promises, journal.path)
    if promised.keys() != journal.promised.keys():
        problems.append("the journal's file and its memory differ")
    problems += judge.promises_wrong(promised)
    problems += await judge.fresh_reader_wrong(whole=True)
    return problems


async def _await_count(seen: Seen, count: int) -> list[str]:
    """Wait as long as the reader makes progress; return how late it is if it stops."""
    try:
        while len(seen.unjudged) < count:
            before = len(seen.unjudged)
            await until(
                lambda before=before: len(seen.unjudged) > before,  # type: ignore[misc]
                f"{seen.name}, which has seen {before} of {count}",
                CATCH_UP_S,
            )
    except NeverCame as error:
        return [str(error)]
    return []


def differs(who: str, expected: list[Sight], found: list[Sight]) -> list[str]:
    """Return the first difference between expected and received events."""
    if expected == found:
        return []
    for index, (right, seen) in enumerate(zip(expected, found, strict=False)):
        if right != seen:
            return [f"{who}: sight {index} is {seen} instead of {right}"]
    return [f"{who}: {len(found)} sights instead of {len(expected)}; the last: {found[-1:]}"]


def _taken(problems: list[str]) -> list[str]:
    found, problems[:] = shorten(list(problems)), []
    return found


def shorten(problems: list[str]) -> list[str]:
    """Return enough problems to understand the cause."""
    more = len(problems) - SHOWN_MAX
    return problems if more <= 0 else [*problems[:SHOWN_MAX], f"... and {more} more like these"]
