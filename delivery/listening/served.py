"""A request for events and the listener that serves it: opened, read page by page or as server-sent
events, and closed. The events route and the MCP route share it. Plain module.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, Protocol

from delivery.listening.batch import BatchLimits
from delivery.listening.frames import FrameFormat
from delivery.listening.listener import StreamListener
from delivery.listening.protocol import ListenerState, refusal
from delivery.listening.query import EventsRequest
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.services import ListenerServices
from delivery.listening.single_reader import SingleReader, batches
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.eventlog.backward_cursors import StreamEnds, stream_ends
from eventhub.eventlog.stored import Cursor
from eventhub.http.messages import Peer


class StreamForm(FrameFormat[bytes], Protocol):
    """A format of server-sent events."""

    def begin(self) -> bytes:
        """Return what comes before the first message."""
        ...

    def ping(self, position: dict[str, Any] | None, cursor: Cursor) -> bytes:
        """Return a keep-alive. `position`: that of the reader, if it does not know it."""
        ...

    def end(self) -> bytes:
        """Return what comes last if the hub ends the response."""
        ...


class EventsCaller(NamedTuple):
    """Who requests events, over which connection."""

    credential: str
    principal: Principal
    peer: Peer


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

    def reached_head(self) -> bool:
        """Return whether the listener has passed the last event that there was at the start."""
        return self.listener.cursor.sequence >= self.ends.head.sequence

    def over(self) -> bool:
        """Return whether the request stops waiting for events."""
        return self.peer.over or asyncio.get_running_loop().time() >= self.deadline_s


class ServedListeners:
    """Opens and closes the listeners of requests in one process."""

    def __init__(self, services: ListenerServices, monitor: ReaderMonitor) -> None:
        self.services = services
        self.monitor = monitor

    async def open(
        self, caller: EventsCaller, request: EventsRequest, state: ListenerState | None = None
    ) -> ServedRequest:
        """Open the listener of a request, of which the monitor has admitted a reader. Raises what
        StreamListener.open raises.
        """
        services, peer = self.services, caller.peer
        listener = await StreamListener.open(services, caller.principal, request.listen, state)
        try:
            async with services.catch_up.opens.hold(caller.principal.queue_owner):
                ends = await stream_ends(services.log, listener.info)
        except BaseException:
            await listener.close()
            raise
        reader = SingleReader(
            services.authorizer, services.clock, caller.credential, caller.principal
        )
        peer.waker = reader.waker
        self.monitor.add(reader, peer)
        deadline_s = asyncio.get_running_loop().time() + request.timeout_s
        return ServedRequest(request, reader, listener, peer, ends, deadline_s)

    async def close(self, served: ServedRequest) -> None:
        """Close the listener of a request."""
        served.peer.waker = None
        self.monitor.remove(served.reader)
        served.listener.end_reason = served.reader.end_reason
        await served.listener.close()


@asynccontextmanager
async def served_batches(
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


async def collect(served: ServedRequest, form: FrameFormat[bytes]) -> list[bytes]:
    """Return the items of one page: the events there are, or the first until the timeout. A page
    reaches the head at its start, also if this process has not read of the last events yet.
    """
    reader, listener = served.reader, served.listener
    limit = served.request.limit or limits.HISTORY_EVENTS_DEFAULT
    last = listener.cursor.sequence + limits.HISTORY_SCANNED_MAX
    size = BatchLimits(limit, limits.HISTORY_BYTES_MAX)
    start = listener.cursor
    loop = asyncio.get_running_loop()
    until_s = loop.time() + limits.HISTORY_S_MAX
    ending = loop.call_at(until_s, reader.waker.set)
    items: list[bytes] = []
    try:
        async with served_batches(served, form, size) as found:
            async for batch in found:
                items += batch
                size.events_max = limit - len(items)
                size.bytes_max -= sum(map(len, batch))
                if size.events_max <= 0 or size.bytes_max <= 0 or listener.cursor.sequence >= last:
                    break
                late = loop.time() > until_s
                at_end = late or served.peer.over or served.reached_head()
                if (at_end and (items or served.over())) if reader.idle else late:
                    break
    except EventHubError:
        if listener.cursor == start:
            raise
        # a gap, say, after the events found: they are sent, and the next request gets the error
    finally:
        ending.cancel()
    if items:
        metrics.SENT.add(len(items), sum(map(len, items)))
    return items


async def stream_events(served: ServedRequest, form: StreamForm) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events until the reader disconnects or its credential ends. The first event
    has an id, so that an EventSource resumes from there even if it is cut off at once.
    """
    reader, listener = served.reader, served.listener
    reader.writer = served.peer
    reader.waits_for_database = True
    reader.last_message = form.message({"op": "resume", "reason": "slow_reader"})
    head = [*listener.notices(form), form.message(listener.mark_started())]
    yield form.begin() + b"".join(head)
    size = BatchLimits(limits.STREAM_WRITE_EVENTS_MAX, limits.STREAM_WRITE_BYTES_MAX)
    pings, waited = reader.pings_due, False
    try:
        async with served_batches(served, form, size) as found:
            async for batch in found:
                if served.peer.over:
                    break
                if reader.waiting != waited:
                    waited = reader.waiting
                    batch.append(form.message(_status(waited=waited)))
                if reader.pings_due != pings:
                    pings = reader.pings_due
                    cursor = listener.cursor
                    batch.append(form.ping(listener.state.position(cursor), cursor))
                if batch:
                    yield sent_chunk(reader, batch)
                    reader.sending = False
        yield form.end()
    except EventHubError as error:
        reader.end_reason = error.code
        yield form.message(refusal(error))


def sent_chunk(reader: SingleReader, frames: list[bytes]) -> bytes:
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
