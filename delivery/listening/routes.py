"""GET /v1/streams/{stream}/events: long polls, pages of history, lines, protobuf, server-sent
events. Each request is one listener of one reader (single_reader.py). Plain module.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

from delivery.listening import query
from delivery.listening.backward import read_backward
from delivery.listening.batch import BatchLimits
from delivery.listening.frames import FrameFormat, SseFrames
from delivery.listening.listener import StreamListener
from delivery.listening.protocol import refusal
from delivery.listening.query import EventsRequest
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.responses import SSE_HEADERS, format_of, page_response
from delivery.listening.services import ListenerServices
from delivery.listening.single_reader import SingleReader, batches
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.eventlog.backward_cursors import StreamEnds, stream_ends
from eventhub.eventlog.stored import Cursor
from eventhub.http.call import Call
from eventhub.http.messages import Headers, Peer, Response, StreamingResponse, utf8_path


class ServedRequest(NamedTuple):
    """A request, and the reader and listener that serve it."""

    request: EventsRequest
    reader: SingleReader
    listener: StreamListener
    peer: Peer
    ends: StreamEnds  # of the stream at the start
    deadline_s: float  # of the loop's clock

    @property
    def head(self) -> Cursor:
        """The last event of the stream that this request knows."""
        cursor = self.listener.cursor
        return self.ends.head if self.ends.head.sequence > cursor.sequence else cursor

    @property
    def known_ends(self) -> StreamEnds:
        return StreamEnds(self.head, self.ends.first)

    def over(self) -> bool:
        """Return whether the request stops waiting for events."""
        return self.peer.over or asyncio.get_running_loop().time() >= self.deadline_s


class ListenHandler:
    """The route's handler in one process."""

    def __init__(self, services: ListenerServices, monitor: ReaderMonitor) -> None:
        self._services = services
        self._monitor = monitor

    async def __call__(self, call: Call) -> Response | StreamingResponse:
        """Handle a request. Raises subclasses of BadRequest and Unauthenticated, and what
        StreamListener.open raises.
        """
        scope, services = call.scope, self._services
        stream = utf8_path(call.parameters[0])
        credential = query.credential_of(scope["query_string"], scope["headers"])
        principal = await call.authenticate(credential)
        principal.require_listen(stream)
        await call.find_stream(principal, stream)
        request = query.parse_request(stream, call.query(), scope["headers"])
        with await self._monitor.admit(principal):
            if request.backward:
                page = await read_backward(services, principal, request, call.incoming.peer)
                return page_response(request, page.items, page.cursor, page.ends)
            served = await self._open(request, credential, principal, call.incoming.peer)
        if request.media_type not in (query.JSON, query.CLOUDEVENTS):
            return self._stream(served)
        try:
            items = await _collect(served, format_of(request.media_type))
            return page_response(request, items, served.listener.cursor, served.known_ends)
        finally:
            await self._close(served)

    def _stream(self, served: ServedRequest) -> StreamingResponse:
        headers: Headers = []
        media_type, position = served.request.media_type, served.head
        if media_type == query.SSE:
            body, headers = _events(served), SSE_HEADERS
        else:
            body = _lines(served, format_of(media_type))

        async def close() -> None:
            await self._close(served)

        return StreamingResponse(200, body, headers, media_type, close, position)

    async def _open(
        self, request: EventsRequest, credential: str, principal: Principal, peer: Peer
    ) -> ServedRequest:
        services = self._services
        listener = await StreamListener.open(services, principal, request.listen)
        try:
            async with services.catch_up.opens.hold(principal.queue_owner):
                ends = await stream_ends(services.log, listener.info)
        except BaseException:
            await listener.close()
            raise
        reader = SingleReader(services.authorizer, services.clock, credential, principal)
        peer.waker = reader.waker
        self._monitor.add(reader, peer)
        deadline_s = asyncio.get_running_loop().time() + request.timeout_s
        return ServedRequest(request, reader, listener, peer, ends, deadline_s)

    async def _close(self, served: ServedRequest) -> None:
        served.peer.waker = None
        self._monitor.remove(served.reader)
        served.listener.end_reason = served.reader.end_reason
        await served.listener.close()


@asynccontextmanager
async def _batches(
    served: ServedRequest, form: FrameFormat[bytes], size: BatchLimits
) -> AsyncIterator[AsyncIterator[list[bytes]]]:
    """Yield the batches of a request; one with a timeout is woken at its deadline."""
    timer = None
    if served.request.timeout_s:
        loop = asyncio.get_running_loop()
        timer = loop.call_at(served.deadline_s, served.reader.waker.set)
    try:
        async with aclosing(batches(served.reader, served.listener, form, size)) as found:
            yield found
    finally:
        if timer is not None:
            timer.cancel()


async def _collect(served: ServedRequest, form: FrameFormat[bytes]) -> list[bytes]:
    """Return the items of one page: the events there are, or the first until the timeout."""
    reader, listener = served.reader, served.listener
    limit = served.request.limit or limits.HISTORY_EVENTS_DEFAULT
    last = listener.cursor.sequence + limits.HISTORY_SCANNED_MAX
    size = BatchLimits(limit, limits.HISTORY_BYTES_MAX)
    start = listener.cursor
    clock = asyncio.get_running_loop().time
    until_s = clock() + limits.HISTORY_S_MAX
    items: list[bytes] = []
    try:
        async with _batches(served, form, size) as found:
            async for batch in found:
                items += batch
                size.events_max = limit - len(items)
                size.bytes_max -= sum(map(len, batch))
                if size.events_max <= 0 or size.bytes_max <= 0 or listener.cursor.sequence >= last:
                    break
                if (items or served.over()) if reader.idle else clock() > until_s:
                    break
    except EventHubError:
        if listener.cursor == start:
            raise
        # a gap, say, after the events found: they are sent, and the next request gets the error
    if items:
        metrics.SENT.add(len(items), sum(map(len, items)))
    return items


async def _lines(served: ServedRequest, form: FrameFormat[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the events from the start to the head at the start, or the first events until the
    timeout. The last line has the cursor, or the error that ended the response.
    """
    reader, listener, limit = served.reader, served.listener, served.request.limit
    reader.every_event = True  # which may be the last one of the response
    size = BatchLimits(limits.STREAM_WRITE_EVENTS_MAX, limits.STREAM_WRITE_BYTES_MAX)
    reader.last_message = form.message({"op": "resume", "reason": "slow_reader"})
    count = 0
    try:
        async with _batches(served, form, size) as found:
            while limit is None or count < limit:
                if limit is not None:
                    size.events_max = min(limit - count, limits.STREAM_WRITE_EVENTS_MAX)
                batch = await anext(found)
                count += len(batch)
                if batch:
                    yield _chunk(reader, batch)
                    reader.sending = False
                if served.peer.over or _complete(served, count):
                    break
    except EventHubError as error:
        reader.end_reason = error.code
        yield form.message(refusal(error))
        return
    ends = {"head": served.head.sequence, "first": served.ends.first}
    yield form.message({"op": "end", "cursor": listener.cursor._asdict(), **ends})


def _complete(served: ServedRequest, count: int) -> bool:
    """Return whether a response of lines has all requested events."""
    if served.listener.cursor.sequence < served.ends.head.sequence:
        return False
    return bool(count) or served.over()


async def _events(served: ServedRequest) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events until the reader disconnects or its credential ends. The first event
    has an id, so that an EventSource resumes from there even if it is cut off at once.
    """
    form, reader, listener = SseFrames(), served.reader, served.listener
    reader.writer = served.peer
    reader.waits_for_database = True
    reader.last_message = form.message({"op": "resume", "reason": "slow_reader"})
    head = [*listener.notices(form), form.message(listener.mark_started())]
    yield b"retry: %d\n\n%b" % (limits.SSE_RETRY_MS, b"".join(head))
    size = BatchLimits(limits.STREAM_WRITE_EVENTS_MAX, limits.STREAM_WRITE_BYTES_MAX)
    pings, waited = reader.pings_due, False
    try:
        async with _batches(served, form, size) as found:
            async for batch in found:
                if served.peer.over:
                    return
                if reader.waiting != waited:
                    waited = reader.waiting
                    batch.append(form.message(_status(waited=waited)))
                if reader.pings_due != pings:
                    pings = reader.pings_due
                    batch.append(_ping(listener, form))
                if batch:
                    yield _chunk(reader, batch)
                    reader.sending = False
    except EventHubError as error:
        reader.end_reason = error.code
        yield form.message(refusal(error))


def _chunk(reader: SingleReader, frames: list[bytes]) -> bytes:
    """Join the frames into one chunk, which waits until the reader takes it."""
    chunk = b"".join(frames)
    metrics.SENT.add(len(frames), len(chunk))
    reader.frames_taken += len(frames)  # those of the chunk before
    reader.sending = True
    return chunk


def _status(*, waited: bool) -> dict[str, Any]:
    if waited:
        return {"op": "status", "state": "waiting", **DatabaseUnavailable().problem()}
    return {"op": "status", "state": "resumed"}


def _ping(listener: StreamListener, form: SseFrames) -> bytes:
    """Return a keep-alive; it advances the cursor of a reader whose filter matches few events."""
    cursor = listener.cursor
    position = listener.state.position(cursor)
    if position is None:
        return b":\n\n"
    return form.message({"op": "position", **position, "cursor": cursor._asdict()})
