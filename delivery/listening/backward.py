"""Pages of history backward: events before a position, the newest first. Plain module.

The log is read forward only, so a page is put together from runs that end where the last one began.
"""

import asyncio
from typing import NamedTuple

from delivery.listening.answers import form_of
from delivery.listening.filtering import filter_of
from delivery.listening.frames import Heading
from delivery.listening.listener import Sources
from delivery.listening.protocol import Filter
from delivery.listening.query import Asked
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import Gone
from eventhub.eventlog.history import StreamEnds, before, stream_ends
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.http.messages import Peer
from eventhub.types.registry import ZoneHierarchy


class Back(NamedTuple):
    """A page, the newest first. `cursor`: what is before it comes next."""

    items: list[bytes]
    cursor: Cursor
    ends: StreamEnds


async def read_back(sources: Sources, principal: Principal, asked: Asked, peer: Peer) -> Back:
    """The page that a request asks for; bounded in events, bytes, what is looked at and time, and
    given up when its reader has gone.

    Raises what Listening.open raises.
    """
    log, wish = sources.log, asked.wish
    principal.require_listen(wish.stream)
    stream = await sources.authorizer.stream(principal, wish.stream)
    hierarchy = ZoneHierarchy(sources.types, stream.zone_id)
    wanted = (await filter_of(sources.authorizer, principal, wish))._replace(hierarchy=hierarchy)
    async with log.follow(stream, wish.start) as follower:
        cursor = follower.position.cursor
    ends = await stream_ends(log, stream)
    limit = asked.limit or limits.HISTORY_EVENTS_DEFAULT
    last = cursor.sequence - limits.HISTORY_SCANNED_MAX
    found: list[StoredEvent] = []
    bytes_left = limits.HISTORY_BYTES_MAX
    clock = asyncio.get_running_loop().time
    until_s = clock() + limits.HISTORY_S_MAX
    while len(found) < limit and bytes_left > 0 and cursor.sequence > last:
        if peer.over or clock() > until_s:
            break  # the cursor has moved on
        low = await before(log, stream, cursor, max(limit, limits.READ_EVENTS_MAX // 2))
        if low is None:
            break
        run = await _run(log, stream, low, cursor)
        if wanted.tree is not None:
            await hierarchy.learn([stored.event for stored in run])
        cursor = _take(run, low, found, _Room(wanted, limit, bytes_left, sources.clock.now_us()))
        bytes_left = limits.HISTORY_BYTES_MAX - sum(len(stored.payload) for stored in found)
    return Back(_items(asked, found, cursor), cursor, ends)


class _Room(NamedTuple):
    """What of a run may join the page."""

    wanted: Filter
    events_max: int
    bytes_max: int
    now_us: int


def _take(run: list[StoredEvent], low: Cursor, found: list[StoredEvent], room: _Room) -> Cursor:
    """Append what is wanted of a run, the newest first; where it ended."""
    size = 0
    for at in range(len(run) - 1, -1, -1):
        if len(found) >= room.events_max or size >= room.bytes_max:
            return run[at].cursor
        if room.wanted.wants(run[at], room.now_us):
            found.append(run[at])
            size += len(run[at].payload)
    return low


async def _run(log: Log, stream: StreamInfo, low: Cursor, high: Cursor) -> list[StoredEvent]:
    """The events after `low` up to `high`. Nothing when they were dropped meanwhile."""
    count = high.sequence - low.sequence
    async with log.follow(stream, "now") as follower:
        follower.cursor = low
        run: list[StoredEvent] = []
        try:
            while len(run) < count:
                page = await follower.catch_up(ReadLimits(count - len(run), limits.READ_BYTES_MAX))
                if not page:
                    break
                run += page
                follower.took(page[-1])
        except Gone:
            return []
    return run


def _items(asked: Asked, found: list[StoredEvent], cursor: Cursor) -> list[bytes]:
    form = form_of(asked.kind)
    earlier = [*(stored.sequence for stored in found[1:]), cursor.sequence]
    return [
        form.event(Heading("", prev, "playback"), stored)
        for stored, prev in zip(found, earlier, strict=False)
    ]
