"""The stored events of a stream: forward as one streamed response, resumed where it was cut off;
backward in pages. Plain module.
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
    """The start of a history and its filter, as in `listen`."""

    start: Start = "oldest"
    mask: int | list[str] | None = None
    pairs: Mapping[str, Any] = NOTHING  # domain, type, attributes, application; language, filter

    @classmethod
    def of(cls, start: Start, given: Mapping[str, Any]) -> "HistoryQuery":
        pairs = {name: value for name, value in given.items() if name != "mask"}
        return cls(start, given.get("mask"), pairs)

    def query(self) -> dict[str, str]:
        """Return the query parameters."""
        return {"from": from_text(self.start), **query_of(self.mask, self.pairs)}


class HistoryWalk:
    """A forward reading with its progress: `cursor`, and `head` where it ends, once known."""

    def __init__(self, http: Http, stream: str, query: HistoryQuery) -> None:
        self._http = http
        self._stream = stream
        self._query = query
        self.head: int | None = None
        self.cursor: Cursor | None = None

    async def events(self) -> AsyncIterator[Delivered]:
        """Yield the events from the start to the last one at the time of the call, across
        connections.

        Raises HubProblem: GapError for events that were dropped before they were read.
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
                start = self._query.start
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
            params=self._query.query(),
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
        """Take the last line: how far the hub read, or why it stopped."""
        if last["op"] != "end":
            raise refusal(last)
        self._moved(Cursor(last["cursor"]["segment"], last["cursor"]["sequence"]))

    def _moved(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._query = self._query._replace(start=cursor)


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a body, of any length."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


async def one_page(http: Http, stream: str, query: HistoryQuery, order: str, limit: int) -> Page:
    """Return one page. Raises HubProblem (GapError, SegmentMismatchError for an old cursor)."""
    parameters = {**query.query(), "order": order, "limit": str(limit)}
    request = Request("GET", stream_path(stream, "events"), query=parameters)
    return Page.of((await http.ask(request)).json)


async def backward_pages(http: Http, stream: str, query: HistoryQuery) -> AsyncIterator[Page]:
    """Yield pages from a start back to the first stored event, each page newest first."""
    before: Cursor | None = None
    while True:
        page = await one_page(http, stream, query, "backward", limits.CLIENT_PAGE_EVENTS)
        yield page
        if page.cursor is None or page.cursor == before or page.cursor.sequence < page.first:
            return
        before = page.cursor
        query = query._replace(start=page.cursor)
