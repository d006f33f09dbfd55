"""GET /v1/streams/{stream}/events: long polls, pages of history, lines, protobuf, server-sent
events. Each request is one listener of one reader (single_reader.py). Plain module.
"""

from collections.abc import AsyncGenerator

from delivery.listening import query
from delivery.listening.backward import read_backward
from delivery.listening.batch import BatchLimits
from delivery.listening.frames import FrameFormat, SseFrames
from delivery.listening.protocol import refusal
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.responses import SSE_HEADERS, format_of, page_response
from delivery.listening.served import (
    EventsCaller,
    ServedListeners,
    ServedRequest,
    collect,
    sent_chunk,
    served_batches,
    stream_events,
)
from delivery.listening.services import ListenerServices
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.http.call import Call
from eventhub.http.messages import Headers, Response, StreamingResponse, utf8_path


class ListenHandler:
    """The route's handler in one process."""

    def __init__(self, services: ListenerServices, monitor: ReaderMonitor) -> None:
        self._services = services
        self._listeners = ServedListeners(services, monitor)

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
        with await self._listeners.monitor.admit(principal):
            if request.backward:
                page = await read_backward(services, principal, request, call.incoming.peer)
                return page_response(request, page.items, page.cursor, page.ends)
            caller = EventsCaller(credential, principal, call.incoming.peer)
            served = await self._listeners.open(caller, request)
        if request.media_type not in (query.JSON, query.CLOUDEVENTS):
            return self._stream(served)
        try:
            items = await collect(served, format_of(request.media_type))
            return page_response(request, items, served.listener.cursor, served.known_ends)
        finally:
            await self._listeners.close(served)

    def _stream(self, served: ServedRequest) -> StreamingResponse:
        headers: Headers = []
        media_type, position = served.request.media_type, served.head
        if media_type == query.SSE:
            body, headers = stream_events(served, SseFrames()), SSE_HEADERS
        else:
            body = _lines(served, format_of(media_type))

        async def close() -> None:
            await self._listeners.close(served)

        return StreamingResponse(200, body, headers, media_type, close, position)


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
        async with served_batches(served, form, size) as found:
            while limit is None or count < limit:
                if limit is not None:
                    size.events_max = min(limit - count, limits.STREAM_WRITE_EVENTS_MAX)
                batch = await anext(found)
                count += len(batch)
                if batch:
                    yield sent_chunk(reader, batch)
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
    return served.reached_head() and (bool(count) or served.over())
