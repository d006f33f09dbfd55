"""What a stream holds, once: forward as one response of lines that is asked for again from where it
was cut, backward in pages. Plain module.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import aiohttp
import orjson

from eventhub.base import limits
from eventhub_client.errors import RETRY, GapError, refusal
from eventhub_client.http import Http, Request, refuse, stream_path
from eventhub_client.listening import UNREACHABLE, pause_s
from eventhub_client.position import from_text, query_of
from eventhub_client.types import NOTHING, Cursor, Delivered, HubProblem, Page, Start

_LINES = "application/x-ndjson"


class HistoryQuery(NamedTuple):
    """Which events of a history: from where, and those that pass a filter as in `listen`."""

    start: Start = "oldest"
    mask: int | list[str] | None = None
    pairs: Mapping[str, Any] = NOTHING  # domain, type, attributes, application; language, filter

    @classmethod
    def of(cls, start: Start, wanted: Mapping[str, Any]) -> "HistoryQuery":
        pairs = {name: value for name, value in wanted.items() if name != "mask"}
        return cls(start, wanted.get("mask"), pairs)

    def query(self) -> dict[str, str]:
        return {"from": from_text(self.start), **query_of(self.mask, self.pairs)}


class HistoryWalk:
    """A walk forward: `cursor` is how far it got, `head` where it ends, once that is known."""

    def __init__(self, http: Http, stream: str, wanted: HistoryQuery) -> None:
        self._http = http
        self._stream = stream
        self._wanted = wanted
        self.head: int | None = None
        self.cursor: Cursor | None = None

    async def events(self) -> AsyncIterator[Delivered]:
        """From the start to what was the last event when it began; over lost connections.

        Raises HubProblem: GapError for what was dropped before it was read.
        """
        attempt = 0
        while True:
            try:
                async for delivered in self._once():
                    attempt = 0
                    yield delivered
                return
            except UNREACHABLE:
                if self.cursor is None and attempt == limits.CLIENT_ATTEMPTS_MAX:
                    raise
            except GapError as error:
                start = self._wanted.start
                known = {"known": start.sequence} if isinstance(start, Cursor) else {}
                raise GapError({**error.problem, **known}) from error
            except HubProblem as error:
                if error.status not in RETRY:
                    raise
            await asyncio.sleep(pause_s(attempt))
            attempt += 1

    async def _once(self) -> AsyncIterator[Delivered]:
        async with self._http.session.get(
            self._http.base_url + stream_path(self._stream, "events"),
            params=self._wanted.query(),
            headers={"Accept": _LINES},
            timeout=aiohttp.ClientTimeout(total=None, sock_read=limits.CLIENT_SILENCE_S),
        ) as response:
            await refuse(response)
            if self.head is None:
                self.head = int(response.headers["EventHub-Sequence"])
            async for line in lines(response.content):
                if b'"op"' in line[:8]:
                    self._ended(orjson.loads(line))
                    return
                delivered = Delivered.of(orjson.loads(line))
                if delivered.sequence > self.head:
                    return
                self._moved(delivered.cursor)
                yield delivered
        raise ConnectionError("the hub's answer ended before its last line")

    def _ended(self, last: dict[str, Any]) -> None:
        """The last line says how far the hub looked, or why it stopped."""
        if last["op"] != "end":
            raise refusal(last)
        self._moved(Cursor(last["cursor"]["segment"], last["cursor"]["sequence"]))

    def _moved(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._wanted = self._wanted._replace(start=cursor)


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a body, however long one is."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


async def one_page(http: Http, stream: str, wanted: HistoryQuery, order: str, limit: int) -> Page:
    """One page. Raises HubProblem (GapError, SegmentMismatchError for a cursor of old)."""
    query = {**wanted.query(), "order": order, "limit": str(limit)}
    request = Request("GET", stream_path(stream, "events"), query=query)
    return Page.of((await http.ask(request)).json)


async def backward_pages(http: Http, stream: str, wanted: HistoryQuery) -> AsyncIterator[Page]:
    """Pages from a start to the first event that is held, each page the newest first."""
    before: Cursor | None = None
    while True:
        page = await one_page(http, stream, wanted, "backward", limits.CLIENT_PAGE_EVENTS)
        yield page
        if page.cursor is None or page.cursor == before or page.cursor.sequence < page.first:
            return
        before = page.cursor
        wanted = wanted._replace(start=page.cursor)
