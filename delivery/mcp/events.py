"""MCP Events over the log: the event types of the caller's zone, polls and streams. Each poll and
each stream is a listener, as of the events route. Plain module.
"""

from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import orjson
from msgspec import Meta

from delivery.listening import query
from delivery.listening.protocol import ListenerFilter, ListenerState
from delivery.listening.query import EventsRequest
from delivery.listening.request import ListenRequest
from delivery.listening.responses import SSE_HEADERS
from delivery.listening.served import EventsCaller, ServedListeners, ServedRequest, collect
from delivery.listening.served import stream_events as sent_events
from delivery.mcp.errors import invalid_params
from delivery.mcp.event_types import filter_of, find_type, list_types, read_arguments
from delivery.mcp.frames import PolledOccurrences, StreamedOccurrences
from delivery.mcp.protocol import RpcRequest
from delivery.mcp.statements import stream_names
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import SegmentMismatch
from eventhub.event.inbound import refuse_json
from eventhub.eventlog.read import AtTime, Start
from eventhub.eventlog.start_positions import cursor_text, parse_cursor
from eventhub.eventlog.stored import Cursor
from eventhub.http.messages import StreamingResponse

T = TypeVar("T")


class ListParams(msgspec.Struct):
    """The parameters of `events/list`."""

    cursor: str = ""


class ReadParams(msgspec.Struct, rename="camel"):
    """The parameters of `events/poll` and `events/stream`, which takes no `maxEvents`."""

    name: str
    arguments: dict[str, Any] = {}
    cursor: str | None = None
    max_age_ms: Annotated[int, Meta(ge=0)] | None = None
    max_events: Annotated[int, Meta(ge=1)] | None = None


class Subscription(NamedTuple):
    """What a poll or a stream reads. `floor`: no older events are replayed."""

    listen: ListenRequest
    cursor: Cursor | None  # None: from now on
    floor: AtTime | None
    limit: int


class SubscriptionStart(NamedTuple):
    """Where a subscription starts, and what it reads. `truncated`: it misses events."""

    stream: str
    filter: dict[str, Any]
    cursor: Cursor
    truncated: bool


class ListenerStart(NamedTuple):
    """A listener of a subscription, and whether it starts after the cursor that was given."""

    served: ServedRequest
    truncated: bool


class EventMethods:
    """The methods of MCP Events in one process."""

    def __init__(self, listeners: ServedListeners) -> None:
        self._listeners = listeners
        self.admit = listeners.monitor.admit

    async def list(self, principal: Principal, params: dict[str, Any]) -> dict[str, Any]:
        """Return a page of the event types that the caller can subscribe to."""
        services = self._listeners.services
        after = read_params(ListParams, params).cursor
        types = await services.types.zone(principal.zone_id)
        most = limits.MCP_STREAMS_NAMED_MAX + 1
        names = await stream_names(services.log, principal.zone_id, most)
        readable = [name for name in names if principal.may_listen(name)]
        page = list_types(types, readable, after)
        more = {} if page.next is None else {"nextCursor": page.next}
        return {"events": page.events, **more}

    async def poll(self, caller: EventsCaller, params: dict[str, Any]) -> dict[str, Any]:
        """Return the events after a cursor. Raises what a listener raises, and RpcError."""
        given = read_params(ReadParams, params)
        subscription = await self._subscription(caller.principal, given, history=True)
        form = PolledOccurrences(given.name)
        with await self._listeners.monitor.admit(caller.principal):
            served, form.truncated = await self._open(caller, subscription)
        try:
            new = subscription.cursor is None
            items = [] if new else await collect(served, form)
            cursor, head = served.listener.cursor, served.ends.head
        finally:
            await self._listeners.close(served)
        return {
            "events": [orjson.Fragment(item) for item in items if item],
            "cursor": cursor_text(cursor),
            "truncated": form.truncated,
            "hasMore": cursor.sequence < head.sequence,
            "nextPollMs": limits.MCP_POLL_INTERVAL_MS,
        }

    async def stream(self, caller: EventsCaller, request: RpcRequest) -> StreamingResponse:
        """Open the stream of a subscription. Raises what a listener raises, and RpcError."""
        given = read_params(ReadParams, request.params)
        subscription = await self._subscription(caller.principal, given, history=False)
        form = StreamedOccurrences(given.name, request.id)
        # listeners with the same name may share frames
        name = f"{request.id!r} {given.name}"
        state = ListenerState(name, subscription.listen.stream, ListenerFilter())
        with await self._listeners.monitor.admit(caller.principal):
            served, form.truncated = await self._open(caller, subscription, state)

        async def close() -> None:
            await self._listeners.close(served)

        body = sent_events(served, form)
        return StreamingResponse(200, body, SSE_HEADERS, query.SSE, close, served.head)

    async def locate(self, caller: EventsCaller, given: ReadParams) -> SubscriptionStart:
        """Return where a subscription would start. Raises what a listener raises, and RpcError."""
        subscription = await self._subscription(caller.principal, given, history=True)
        with await self._listeners.monitor.admit(caller.principal):
            served, truncated = await self._open(caller, subscription)
        cursor = served.listener.cursor
        await self._listeners.close(served)
        listen = subscription.listen
        return SubscriptionStart(listen.stream, dict(listen.filter or {}), cursor, truncated)

    async def _subscription(
        self, principal: Principal, given: ReadParams, *, history: bool
    ) -> Subscription:
        """Return what the parameters mean. Raises RpcError, subclasses of BadRequest, and what
        require_listen raises.
        """
        services = self._listeners.services
        definition = find_type(await services.types.zone(principal.zone_id), given.name)
        arguments = read_arguments(given.arguments)
        principal.require_listen(arguments.stream)
        cursor = None if given.cursor is None else parse_cursor(given.cursor)
        if given.cursor is not None and cursor is None:
            raise invalid_params("This is no cursor of this server; send it unchanged.", "cursor")
        floor = None
        if given.max_age_ms is not None:
            age_us = min(given.max_age_ms, limits.MCP_AGE_MS_MAX) * 1_000
            floor = AtTime(services.clock.now_us() - age_us)
        listen = ListenRequest(
            stream=arguments.stream,
            filter=filter_of(definition, arguments),
            state="never",
            passes_gaps=True,
            history=history,
            transport="poll" if history else "sse",
        )
        limit = min(given.max_events or limits.HISTORY_EVENTS_DEFAULT, limits.HISTORY_EVENTS_MAX)
        return Subscription(listen, cursor, floor, limit)

    async def _open(
        self, caller: EventsCaller, subscription: Subscription, state: ListenerState | None = None
    ) -> ListenerStart:
        """Open the listener from the later one of cursor and floor; if the cursor is none of the
        stream any more, from the floor or the oldest event.
        """

        async def open(start: Start) -> ServedRequest:
            listen = subscription.listen._replace(start=start)
            request = EventsRequest(listen, query.JSON, 0.0, subscription.limit)
            return await self._listeners.open(caller, request, state)

        cursor, floor = subscription.cursor, subscription.floor
        if cursor is None:
            return ListenerStart(await open("now"), truncated=False)
        if floor is not None:
            served = await open(floor)
            if served.listener.cursor.sequence > cursor.sequence:
                return ListenerStart(served, truncated=True)
            await self._listeners.close(served)
        try:
            return ListenerStart(await open(cursor), truncated=False)
        except SegmentMismatch:
            return ListenerStart(await open(floor or "oldest"), truncated=True)


def read_params(kind: type[T], params: dict[str, Any]) -> T:
    """Return the parameters of a method. Raises subclasses of BadRequest with the field."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        refuse_json(error)
