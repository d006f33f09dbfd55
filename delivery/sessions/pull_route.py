"""POST /v1/sessions/{session}/pull: a consumer session's next events in the answer, each for a time
(SQS's visibility timeout). Plain module.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

import orjson
from msgspec import Meta

from delivery.listening.frames import (
    DelimitedFrames,
    FrameFormat,
    ItemFrames,
    LineFrames,
    Liveness,
)
from delivery.listening.query import JSON, LINES, PROTOBUF, accepted
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.single_reader import SingleReader
from delivery.sessions.attachments import session_in_path
from delivery.sessions.claims import ChangedClaims
from delivery.sessions.pull_changes import store_changes
from delivery.sessions.pull_request import PullIn, parse_pull
from delivery.sessions.pull_sources import Pulling, PullSources
from delivery.sessions.pulled_events import PulledEvent
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import UnsupportedMediaType
from eventhub.base.event_loop import wait_until_set
from eventhub.event.json_codec import EventJson
from eventhub.event.json_types import Int64, Time
from eventhub.eventlog.stored import CursorJson
from eventhub.http.call import Call
from eventhub.http.messages import Peer, Response, read_body, read_head, utf8_path
from eventhub.postgresql.connections import reading

MEDIA_TYPES = (JSON, LINES, PROTOBUF)
_FORMATS: dict[bytes, FrameFormat[bytes]] = {
    JSON: ItemFrames(),
    LINES: LineFrames(),
    PROTOBUF: DelimitedFrames(),
}


class PulledEventJson(CursorJson):
    """An event that was handed out."""

    stream: str
    attempt: Annotated[int, Meta(description="How often it was handed out.")]
    liveness: Liveness
    registrations: list[Int64]
    appended_at: Time
    event: EventJson


class PullJson(TypedDict):
    """The answer to a pull."""

    session: str
    events: list[PulledEventJson]
    acknowledged: Annotated[int, Meta(description="Events that this request acknowledged.")]
    extended: Annotated[int, Meta(description="Events whose visibility it changed.")]
    messages: Annotated[
        list[dict[str, Any]],
        Meta(description="What a websocket would report: `gap`, or `error` for a stream."),
    ]


class PullHandler:
    """The route's handler in one process."""

    def __init__(self, sources: PullSources, monitor: ReaderMonitor) -> None:
        self._sources = sources
        self._monitor = monitor

    async def __call__(self, call: Call) -> Response:
        """Handle a request. Raises subclasses of BadRequest and Unauthenticated, and what
        PullSources.pulling and PullSource.take raise.
        """
        headers = call.scope["headers"]
        head = read_head(headers)
        principal = await call.authenticate(head.credential)
        if principal.session is not None:
            principal.session.require("listen")
        media_type = accepted(headers, MEDIA_TYPES)
        if head.content_type not in ("", "application/json"):
            raise UnsupportedMediaType("A pull is sent as application/json.")
        body = await read_body(call.incoming, head.content_length)
        request = parse_pull(body)
        session = session_in_path(utf8_path(call.parameters[0]))
        peer = call.incoming.peer
        with await self._monitor.admit(principal):
            async with self._sources.pulling(principal, session, request) as pulling:
                metrics.PULLS.inc()
                changed = await self._store(pulling, request)
                events: list[PulledEvent] = []
                if request.events_max:
                    with self._reading(head.credential, principal, peer) as reader:
                        events = await _pulled(pulling, request, reader, peer)
                return self._answer(pulling, (events, changed), media_type)

    async def _store(self, pulling: Pulling, request: PullIn) -> ChangedClaims:
        """Acknowledge and extend what the request says."""
        if not request.changes:
            return ChangedClaims()
        holder = pulling.holder
        async with reading(self._sources.services.pool) as connection:
            changed = await store_changes(connection, holder, request, pulling.streams)
        pulling.source.waker.set()
        return changed

    @contextmanager
    def _reading(self, credential: str, principal: Principal, peer: Peer) -> Iterator[SingleReader]:
        listening = self._sources.services.listening
        reader = SingleReader(listening.authorizer, listening.clock, credential, principal)
        peer.waker = reader.waker
        self._monitor.add(reader, peer)
        reader.wakers.add(reader.waker)
        try:
            yield reader
        finally:
            reader.wakers.discard(reader.waker)
            self._monitor.remove(reader)
            peer.waker = None

    def _answer(
        self,
        pulling: Pulling,
        found: tuple[list[PulledEvent], ChangedClaims],
        media: bytes,
    ) -> Response:
        events, changed = found
        form, source = _FORMATS[media], pulling.source
        listening = self._sources.services.listening
        items = [one.frame(listening, form) for one in events]
        metrics.SENT.add(len(items), sum(map(len, items)))
        messages, source.messages = source.messages, []
        rest = {**changed._asdict(), "messages": [*messages, *source.refused.values()]}
        if media != JSON:
            last = form.message({"op": "end", "session": pulling.name, **rest})
            return Response(200, b"".join([*items, last]), [], media)
        start = b'{"session":%b,"events":[%b],' % (orjson.dumps(pulling.name), b",".join(items))
        return Response(200, start + orjson.dumps(rest)[1:], [])


async def _pulled(
    pulling: Pulling, request: PullIn, reader: SingleReader, peer: Peer
) -> list[PulledEvent]:
    """Return the next events, or the first ones until the request's time is over."""
    source = pulling.source
    clock = asyncio.get_running_loop().time
    started_s = clock()
    deadline_s = started_s + request.wait_s
    source.waker.waiting.add(reader.waker)
    try:
        while True:
            reader.waker.clear()
            before = reader.principal
            await reader.confirm()
            if reader.principal is not before:
                await source.authenticate(reader.principal)
            events = await source.take(pulling.holder, request.events_max, request.visibility_s)
            if events or peer.over or source.broken or source.messages:
                return events
            until_s = deadline_s
            if source.behind:
                until_s = max(until_s, started_s + limits.HISTORY_S_MAX)
            wait_s = min(until_s - clock(), _pause_s(source.due_s))
            if wait_s <= 0:
                return events
            await wait_until_set(reader.waker, wait_s)
    finally:
        source.waker.waiting.discard(reader.waker)


def _pause_s(due_s: float | None) -> float:
    """Return until when to look again: when a claim ends, and now and then, because another process
    may have given events back.
    """
    if due_s is None or due_s <= 0:
        return limits.PULL_CHECK_S
    return min(due_s + 0.001, limits.PULL_CHECK_S)
