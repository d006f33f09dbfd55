"""The client of a hub over HTTP and websocket: `emit`, a `listen` that resumes automatically,
history, replay, state, streams, segments and types. Plain module.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol, cast

import aiohttp
import orjson

from eventhub.base import limits
from eventhub_client.errors import RETRY
from eventhub_client.history import HistoryQuery, HistoryWalk, backward_pages, one_page
from eventhub_client.http import Answer, Http, Request, stream_path
from eventhub_client.listening import UNREACHABLE, OnGap, follow, pause_s
from eventhub_client.position import ReadPosition, Subscription
from eventhub_client.sessions import ConsumerSession, SessionTransport
from eventhub_client.state import State
from eventhub_client.transports import Transport
from eventhub_client.types import (
    Cursor,
    Delivered,
    HubProblem,
    Page,
    Receipt,
    Reply,
    Start,
    StateItem,
)

Event = dict[str, Any]


class Suppressor(Protocol):
    """Decides which events need not be sent, because they match no interest (OIF-09)."""

    async def matched(self, stream: str, events: Sequence[Event]) -> Sequence[bool]:
        """Return for each event False if it certainly matches no interest."""
        ...


class HubClient:
    """A hub: `async with HubClient("http://127.0.0.1:8000", key) as hub:`."""

    def __init__(self, base_url: str, credential: str, *, acting_as: str = "") -> None:
        """Prepare a client. `acting_as`: the session of the key's client through which it emits,
        registers or manages (an EventHub-Session); `session` consumes one.
        """
        self.base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {credential}"}
        if acting_as:
            self._headers["EventHub-Session"] = acting_as
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "HubClient":
        connector = aiohttp.TCPConnector(limit=0)  # each listener and session has a connection
        self._session = aiohttp.ClientSession(headers=self._headers, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    # --- emit and listen ---

    async def emit(
        self,
        stream: str,
        events: Event | Sequence[Event],
        *,
        retry_for_s: float = 0.0,
        suppress: Suppressor | None = None,
    ) -> Receipt:
        """Store one event or several, all or none; return when they are durable.

        With `retry_for_s`, an unavailable hub is retried for so long; give each event an `id` with
        `incarnation` and `sequence` then, so that none is stored twice (`Outbox` does). With
        `suppress` (`eventhub_client.quench.Quench`), events that match no interest are not sent,
        and the receipt lists them. Raises HubProblem, or aiohttp's errors if the hub is
        unreachable.
        """
        if suppress is not None:
            return await self._emit_matched(suppress, stream, events, retry_for_s)
        request = Request("POST", stream_path(stream, "events"), orjson.dumps(events))
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + retry_for_s
        attempt = 0
        while True:
            try:
                return Receipt.of((await self.http.ask(request)).json)
            except (HubProblem, *UNREACHABLE) as error:
                after_s = error.retry_after_s if isinstance(error, HubProblem) else None
                wait_s = pause_s(attempt, after_s)
                final = isinstance(error, HubProblem) and error.status not in RETRY
                if final or loop.time() + wait_s > deadline_s:
                    raise
            await asyncio.sleep(wait_s)
            attempt += 1

    async def _emit_matched(
        self,
        suppress: Suppressor,
        stream: str,
        events: Event | Sequence[Event],
        retry_for_s: float,
    ) -> Receipt:
        """Send the events that may match an interest; nothing if there are none.

        The indexes in the receipt and in a refusal refer to `events`.
        """
        given = [events] if isinstance(events, dict) else list(events)
        matched = await suppress.matched(stream, given)
        sent = [at for at, is_matched in enumerate(matched) if is_matched]
        left_out = tuple(at for at, is_matched in enumerate(matched) if not is_matched)
        if not sent and given:
            return Receipt(stream, (), (), left_out)
        try:
            receipt = await self.emit(stream, [given[at] for at in sent], retry_for_s=retry_for_s)
        except HubProblem as error:
            if "index" in error.position:
                error.position["index"] = sent[error.position["index"]]
            raise
        duplicates = tuple(one._replace(at=sent[one.at]) for one in receipt.duplicates)
        delayed = tuple(one._replace(at=sent[one.at]) for one in receipt.delayed)
        return receipt._replace(duplicates=duplicates, suppressed=left_out, delayed=delayed)

    async def listen(
        self,
        stream: str,
        *,
        start: Start = "now",
        mask: int | list[str] | None = None,
        transport: Transport = "websocket",
        on_gap: OnGap = "raise",
        **filter: Any,
    ) -> AsyncIterator[Delivered]:
        """Yield every event of a stream from a start on, in order, once; reconnect and resume
        automatically.

        `mask`: 64 channel bits, or channels by name; `filter`: domain, type, attributes,
        application; or instead of them a language and a filter in it; or registrations (their ids).
        With `signature=True`, each event has the signature of its tags.
        Raises GapError and SegmentMismatchError unless `on_gap` handles them, LossDetected, and
        other HubProblem (`unknown_stream`, ...).
        """
        position = ReadPosition(Subscription(stream, start, mask, filter, "never"))
        items = follow(self.http, position, transport=transport, on_gap=on_gap)
        async with aclosing(items):  # type: ignore[type-var]
            async for item in items:
                if isinstance(item, Delivered):
                    yield item

    # --- stored events ---

    async def page(
        self,
        stream: str,
        query: HistoryQuery | None = None,
        *,
        order: str = "forward",
        limit: int = limits.CLIENT_PAGE_EVENTS,
    ) -> Page:
        """Return one page of a stream's history."""
        return await one_page(self.http, stream, query or HistoryQuery(), order, limit)

    async def history(
        self, stream: str, *, order: str = "forward", start: Start | None = None, **filter: Any
    ) -> AsyncIterator[Delivered]:
        """Yield stored events: forward from `oldest` (or a start) to the last one at the time of
        the call, or backward from `now`. `filter` as in `listen`, with `mask`.
        """
        if order == "forward":
            walk = self.walk(stream, start=start or "oldest", **filter)
            async with aclosing(walk.events()) as events:  # type: ignore[type-var]
                async for delivered in events:
                    yield delivered
            return
        pages = backward_pages(self.http, stream, HistoryQuery.of(start or "now", filter))
        async with aclosing(pages):  # type: ignore[type-var]
            async for page in pages:
                for delivered in page.events:
                    yield delivered

    def walk(self, stream: str, *, start: Start = "oldest", **filter: Any) -> HistoryWalk:
        """Return the forward history with its progress: `cursor`, and `head` where it ends."""
        return HistoryWalk(self.http, stream, HistoryQuery.of(start, filter))

    async def replay(
        self,
        stream: str,
        *,
        start: Start = "oldest",
        until: Cursor | None = None,
        **filter: Any,
    ) -> AsyncIterator[Delivered]:
        """Yield a range of a stream again, marked `playback`: from a start to a cursor, or to the
        last event at the time of the call (FOX-02).
        """
        events = self.history(stream, start=start, **filter)
        async with aclosing(events):  # type: ignore[type-var]
            async for delivered in events:
                if until is not None and delivered.sequence > until.sequence:
                    return
                yield delivered

    async def event(self, stream: str, sequence: int) -> dict[str, Any]:
        """Return one event by its sequence."""
        path = stream_path(stream, "events", str(sequence))
        return cast("dict[str, Any]", await self.call("GET", path))

    def session(
        self,
        name: str,
        *,
        window: int | None = None,
        on_gap: Literal["raise", "continue"] = "raise",
        transport: SessionTransport = "websocket",
    ) -> ConsumerSession:
        """Return a consumer session of the key's client, to be connected: `async with
        hub.session("alarms") as session:`. `window`: the events that may be unacknowledged, instead
        of the session's own, over a websocket.
        """
        return ConsumerSession(self.http, name, window=window, on_gap=on_gap, transport=transport)

    # --- keyed state ---

    def state(self, stream: str) -> State:
        """Return the state of a keyed stream, which stays current: `async with hub.state("prices")
        as state:`.
        """
        subscription = Subscription(stream, state="always")
        return State(lambda: follow(self.http, ReadPosition(subscription)))

    async def snapshot(self, stream: str) -> tuple[dict[str, StateItem], Cursor]:
        """Return the latest event of each key, and the cursor from which to listen."""
        items: dict[str, StateItem] = {}
        query: dict[str, str] = {}
        while True:
            request = Request("GET", stream_path(stream, "state"), query=query)
            found = (await self.http.ask(request)).json
            items.update((item["key"], StateItem.of(item)) for item in found["items"])
            if not found.get("next"):
                return items, Cursor(found["cursor"]["segment"], found["cursor"]["sequence"])
            query = {"after": found["next"]}

    # --- management ---

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the management API, `await hub.call("POST", "/v1/registrations", {...})`, and return
        the answer's JSON, None if it has none. Raises HubProblem for a refusal.
        """
        return (await self.reply(method, path, body)).json

    async def reply(
        self, method: str, path: str, body: Any = None, *, if_match: str = "", action: str = ""
    ) -> Reply:
        """Call the management API and return the reply with its headers: the sequences that the
        change caused (for `relation`), the resource's ETag. With `if_match` a resource that has
        changed since is refused (`Changed`).
        """
        headers = {"If-Match": if_match, "EventHub-Action": action}
        given = {name: value for name, value in headers.items() if value}
        data = None if body is None else orjson.dumps(body)
        answer: Answer = await self.http.ask(Request(method, path, data, headers=given))
        return answer.reply()

    async def streams(self) -> list[dict[str, Any]]:
        """Return all streams that the key may see."""
        return await self.http.items("/v1/streams")

    async def segments(self, stream: str) -> list[dict[str, Any]]:
        """Return the segments of a stream, oldest first."""
        return await self.http.items(stream_path(stream, "segments"))

    async def types(self) -> list[dict[str, Any]]:
        """Return the declared event types."""
        return await self.http.items("/v1/types")

    @property
    def http(self) -> Http:
        """The connection to the hub."""
        if self._session is None:
            raise RuntimeError("Use the client in `async with`.")
        return Http(self._session, self.base_url)
