"""Twenty readers over four transports that disconnect at random and resume from their cursors; each
records in a journal what it received. They use the documented transports, not the client library.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import aiohttp
import orjson

from tests.chaos.events import Interest

STAYS_S = (0.5, 6.0)
LAST_STAY_S = (20.0, 25.0)  # a filtered reader is sent its position every 15 s
AWAY_S = (0.0, 2.0)
LONG_AWAY_S = (20.0, 80.0)  # so long that segments are dropped meanwhile
LONG_SHARE = 0.03
POLL_S = 5
LIMIT = 500
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, asyncio.IncompleteReadError)


class Gap(NamedTuple):
    """A gap that was announced to a reader, and its time."""

    first: int
    last: int
    received_at_s: float


class Journal:
    """The interest of one reader, its position, and everything that it received."""

    def __init__(self, name: str, stream: str, interest: Interest) -> None:
        self.name = name
        self.stream = stream
        self.interest = interest
        self.cursor: dict[str, Any] | None = None
        self.seen: list[tuple[str, int]] = []
        self.gaps: list[Gap] = []
        self.problems: list[str] = []
        self.connections = 0
        self._last = -1  # the last sequence on this connection

    @property
    def start(self) -> str:
        """The cursor as the query parameter `from`."""
        cursor = self.cursor
        return "oldest" if cursor is None else f"{cursor['segment']}:{cursor['sequence']}"

    def began(self, cursor: dict[str, Any]) -> None:
        if self.cursor is not None and cursor["sequence"] != self.cursor["sequence"]:
            self.problems.append(f"resumed at {cursor}, not at {self.cursor}")
        self.cursor = cursor
        self._last = cursor["sequence"]

    def event(self, frame: dict[str, Any]) -> None:
        """Record an event; `prev` chains the frames of one connection."""
        if self._last >= 0 and frame["prev"] != self._last:
            self.problems.append(f"{frame['sequence']} follows {frame['prev']}, not {self._last}")
        self.seen.append((frame["segment"], frame["sequence"]))
        self.moved(frame)

    def moved(self, cursor: dict[str, Any]) -> None:
        self.cursor = {"segment": cursor["segment"], "sequence": cursor["sequence"]}
        self._last = cursor["sequence"]

    def gap(self, problem: dict[str, Any]) -> None:
        """Record a gap and continue where the hub says."""
        if problem["code"] != "gap":
            self.problems.append(f"refused: {problem}")
            return
        known = self.cursor["sequence"] if self.cursor else 0
        missed = problem["missed"]
        if missed["first"] <= known:  # what is between them was considered, and not expected
            self.problems.append(f"a gap from {missed['first']}, but {known} is known")
        self.gaps.append(Gap(missed["first"], missed["last"], time.time()))
        self.cursor = problem["resume"]
        self._last = -1


Transport = Callable[[aiohttp.ClientSession, str, Journal], Awaitable[None]]


async def websocket(http: aiohttp.ClientSession, url: str, journal: Journal) -> None:
    async with http.ws_connect(f"{url}/v1/ws", protocols=("eventhub.v1.json",)) as socket:
        start = journal.cursor or "oldest"
        request = {"op": "listen", "listener": "it", "stream": journal.stream, "from": start}
        await socket.send_bytes(orjson.dumps({**request, **journal.interest.fields()}))
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                return
            frame = orjson.loads(message.data)
            if frame["op"] == "event":
                journal.event(frame)
            elif frame["op"] == "listening":
                journal.began(frame["cursor"])
            elif frame["op"] == "ping" and "it" in frame["positions"]:
                journal.moved(frame["positions"]["it"])
            elif frame["op"] in ("gap", "segment_mismatch", "error"):
                journal.gap(frame)
                return


async def sse(http: aiohttp.ClientSession, url: str, journal: Journal) -> None:
    headers = {"Accept": "text/event-stream"}
    query = _query(journal)
    if journal.cursor is not None:
        headers["Last-Event-ID"] = journal.start
        del query["from"]
    async with http.get(_path(url, journal), params=query, headers=headers) as answer:
        if answer.status != 200:
            await _refused(answer, journal)
            return
        async for name, data in _server_sent(answer):
            if name == "event":
                journal.event(data)
            elif name in ("gap", "segment_mismatch", "error"):
                journal.gap(data)
                return
            elif name == "position":
                journal.moved(data)


async def _server_sent(
    answer: aiohttp.ClientResponse,
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the named events of a server-sent stream, with their data."""
    name, data = "message", b""
    async for line in answer.content:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value.decode()
        elif field == b"data":
            data += value
        elif not line.strip():
            if data:
                yield name, orjson.loads(data)
            name, data = "message", b""


async def long_poll(http: aiohttp.ClientSession, url: str, journal: Journal) -> None:
    await _pages(http, url, journal, timeout_s=POLL_S)


async def history(http: aiohttp.ClientSession, url: str, journal: Journal) -> None:
    await _pages(http, url, journal, timeout_s=0)


async def _pages(
    http: aiohttp.ClientSession, url: str, journal: Journal, *, timeout_s: int
) -> None:
    while True:
        query = {**_query(journal), "timeout": str(timeout_s), "limit": str(LIMIT)}
        async with http.get(_path(url, journal), params=query) as answer:
            if answer.status != 200:
                await _refused(answer, journal)
                return
            page = orjson.loads(await answer.read())
        for frame in page["events"]:
            journal.event(frame)
        journal.moved(page["cursor"])
        if not timeout_s and not page["events"]:
            await asyncio.sleep(0.2)


async def _refused(answer: aiohttp.ClientResponse, journal: Journal) -> None:
    if answer.status not in (502, 503, 504):
        journal.gap(orjson.loads(await answer.read()))


def _query(journal: Journal) -> dict[str, str]:
    query = {"from": journal.start}
    for name, value in journal.interest.fields().items():
        query[name] = value if isinstance(value, str) else orjson.dumps(value).decode()
    return query


def _path(url: str, journal: Journal) -> str:
    return f"{url}/v1/streams/{journal.stream}/events"


TRANSPORTS: dict[str, Transport] = {
    "websocket": websocket,
    "sse": sse,
    "long poll": long_poll,
    "history": history,
}


class Reader:
    """A reader: connected for a while, disconnected for a while, until it is asked to finish."""

    def __init__(self, journal: Journal, transport: Transport, dice: random.Random) -> None:
        self.journal = journal
        self._transport = transport
        self._dice = dice
        self._finish: int | None = None
        self._called = asyncio.Event()

    def finish(self, head: int) -> None:
        """Stay connected until everything up to a sequence was considered."""
        self._finish = head
        self._called.set()

    async def run(self, urls: list[str], key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
            while not self._finished():
                url = self._dice.choice(urls)
                self.journal.connections += 1
                with suppress(*BROKEN):
                    stays = STAYS_S if self._finish is None else LAST_STAY_S
                    async with asyncio.timeout(self._dice.uniform(*stays)):
                        await self._transport(http, url, self.journal)
                span = LONG_AWAY_S if self._dice.random() < LONG_SHARE else AWAY_S
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._dice.uniform(*span)):
                        await self._called.wait()

    def _finished(self) -> bool:
        cursor = self.journal.cursor
        return (
            self._finish is not None and cursor is not None and cursor["sequence"] >= self._finish
        )
