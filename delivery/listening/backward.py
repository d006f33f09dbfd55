"""Pages of history backward: events before a position, newest first. Plain module.

The log is read forward only, so a page is assembled from runs, each of which ends where the
previous one starts.
"""

import asyncio
from typing import NamedTuple

from delivery.listening.filtering import compile_filter
from delivery.listening.frames import EventHeader
from delivery.listening.protocol import ListenerFilter
from delivery.listening.query import EventsRequest
from delivery.listening.responses import format_of
from delivery.listening.services import ListenerServices
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import Gone
from eventhub.eventlog.backward_cursors import StreamEnds, before, stream_ends
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.http.messages import Peer
from eventhub.types.registry import ZoneHierarchy


class BackwardPage(NamedTuple):
    """A page, newest first. `cursor`: the next page has the events before it."""

    items: list[bytes]
    cursor: Cursor
    ends: StreamEnds


async def read_backward(
    services: ListenerServices, principal: Principal, request: EventsRequest, peer: Peer
) -> BackwardPage:
    """Read the requested page; bounded in events, bytes, events evaluated and time, and abandoned
    when the reader disconnects.

    Raises what StreamListener.open raises.
    """
    log, listen = services.log, request.listen
    principal.require_listen(listen.stream)
    stream = await services.authorizer.stream(principal, listen.stream)
    hierarchy = ZoneHierarchy(services.types, stream.zone_id)
    filter = await compile_filter(services.authorizer, principal, listen)
    filter = filter._replace(hierarchy=hierarchy)
    async with log.follow(stream, listen.start) as follower:
        cursor = follower.position.cursor
    ends = await stream_ends(log, stream)
    limit = request.limit or limits.HISTORY_EVENTS_DEFAULT
    last = cursor.sequence - limits.HISTORY_SCANNED_MAX
    found: list[StoredEvent] = []
    bytes_left = limits.HISTORY_BYTES_MAX
    clock = asyncio.get_running_loop().time
    until_s = clock() + limits.HISTORY_S_MAX
    while len(found) < limit and bytes_left > 0 and cursor.sequence > last:
        if peer.over or clock() > until_s:
            break  # the cursor has advanced
        low = await before(log, stream, cursor, max(limit, limits.READ_EVENTS_MAX // 2))
        if low is None:
            break
        run = await _run(log, stream, low, cursor)
        if filter.tree is not None:
            await hierarchy.learn([stored.event for stored in run])
        page = _PageFilter(filter, limit, bytes_left, services.clock.now_us())
        cursor = _select(run, low, found, page)
        bytes_left = limits.HISTORY_BYTES_MAX - sum(len(stored.payload) for stored in found)
    return BackwardPage(_items(request, found, cursor), cursor, ends)


class _PageFilter(NamedTuple):
    """The filter and the bounds for events of one run."""

    filter: ListenerFilter
    events_max: int
    bytes_max: int
    now_us: int


def _select(
    run: list[StoredEvent], low: Cursor, found: list[StoredEvent], page: _PageFilter
) -> Cursor:
    """Append the matching events of a run, newest first; return the cursor where it ended."""
    size = 0
    for at in range(len(run) - 1, -1, -1):
        if len(found) >= page.events_max or size >= page.bytes_max:
            return run[at].cursor
        if page.filter.matches(run[at], page.now_us):
            found.append(run[at])
            size += len(run[at].payload)
    return low


async def _run(log: Log, stream: StreamInfo, low: Cursor, high: Cursor) -> list[StoredEvent]:
    """Return the events after `low` up to `high`; none if they were dropped meanwhile."""
    count = high.sequence - low.sequence
    async with log.follow(stream, "now") as follower:
        follower.cursor = low
        run: list[StoredEvent] = []
        try:
            while len(run) < count:
                size = ReadLimits(count - len(run), limits.READ_BYTES_MAX)
                page = await follower.catch_up(size)
                if not page:
                    break
                run += page
                follower.advance_to(page[-1])
        except Gone:
            return []
    return run


def _items(request: EventsRequest, found: list[StoredEvent], cursor: Cursor) -> list[bytes]:
    form, signed = format_of(request.media_type), request.listen.signature
    earlier = [*(stored.sequence for stored in found[1:]), cursor.sequence]
    return [
        form.event(EventHeader("", prev, "playback", signature=signed), stored)
        for stored, prev in zip(found, earlier, strict=False)
    ]
