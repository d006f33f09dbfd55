"""GET /v1/streams/{stream}/events: long polls, pages of history, lines, protobuf, server-sent
events. Each is one listen of one reader (told.py) in a form of its own. Plain module.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

from delivery.listening import query
from delivery.listening.answers import form_of, position_headers, whole
from delivery.listening.backward import read_back
from delivery.listening.batch import Turn
from delivery.listening.frames import Form, SseFrames
from delivery.listening.keeper import Keeper
from delivery.listening.listener import Listening, Sources
from delivery.listening.protocol import refusal
from delivery.listening.query import Asked
from delivery.listening.single import Single, told
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.eventlog.history import StreamEnds, stream_ends
from eventhub.eventlog.stored import Cursor
from eventhub.http.messages import Headers, Peer, Response, StreamingResponse, utf8_path
from eventhub.http.routes import Call

_SSE_HEADERS: Headers = [(b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


class Visit(NamedTuple):
    """A reader at the door: what it asks, and what serves it."""

    asked: Asked
    reader: Single
    listening: Listening
    peer: Peer
    ends: StreamEnds  # of the stream when it came
    deadline_s: float  # of the loop's clock

    @property
    def head(self) -> Cursor:
        """The last event of the stream as far as this reader knows."""
        cursor = self.listening.cursor
        return self.ends.head if self.ends.head.sequence > cursor.sequence else cursor

    @property
    def known(self) -> StreamEnds:
        return StreamEnds(self.head, self.ends.first)

    def over(self) -> bool:
        """True if nothing more is to be waited for."""
        return self.peer.over or asyncio.get_running_loop().time() >= self.deadline_s


class ListenDoor:
    """The door of one process."""

    def __init__(self, sources: Sources, keeper: Keeper) -> None:
        self._sources = sources
        self._keeper = keeper

    async def __call__(self, call: Call) -> Response | StreamingResponse:
        """Raises what BadRequest's kin, Unauthenticated's and Listening.open raise."""
        scope, sources = call.scope, self._sources
        stream = utf8_path(call.parameters[0])
        credential = query.credential_of(scope["query_string"], scope["headers"])
        principal = await sources.authorizer.authenticate(credential)
        asked = query.asked_of(stream, query.read_query(scope["query_string"]), scope["headers"])
        with self._keeper.place(principal):
            if asked.backward:
                page = await read_back(sources, principal, asked, call.incoming.peer)
                return whole(asked, page.items, page.cursor, page.ends)
            visit = await self._enter(asked, credential, principal, call.incoming.peer)
        if asked.kind not in (query.JSON, query.CLOUDEVENTS):
            return self._stream(visit)
        try:
            items = await _collect(visit, form_of(asked.kind))
            return whole(asked, items, visit.listening.cursor, visit.known)
        finally:
            await self._leave(visit)

    def _stream(self, visit: Visit) -> StreamingResponse:
        headers, kind = position_headers(visit.head), visit.asked.kind
        if kind == query.SSE:
            body, headers = _events(visit), [*headers, *_SSE_HEADERS]
        else:
            body = _lines(visit, form_of(kind))

        async def close() -> None:
            await self._leave(visit)

        return StreamingResponse(200, body, headers, kind, close)

    async def _enter(
        self, asked: Asked, credential: str, principal: Principal, peer: Peer
    ) -> Visit:
        sources = self._sources
        listening = await Listening.open(sources, principal, asked.wish)
        try:
            async with sources.catch_up.opens.hold(principal.party):
                ends = await stream_ends(sources.log, listening.info)
        except BaseException:
            await listening.close()
            raise
        reader = Single(sources.authorizer, sources.clock, credential, principal)
        peer.waker = reader.waker
        self._keeper.add(reader, peer)
        deadline_s = asyncio.get_running_loop().time() + asked.timeout_s
        return Visit(asked, reader, listening, peer, ends, deadline_s)

    async def _leave(self, visit: Visit) -> None:
        visit.peer.waker = None
        self._keeper.remove(visit.reader)
        visit.listening.why = visit.reader.why
        await visit.listening.close()


@asynccontextmanager
async def _turns(
    visit: Visit, form: Form[bytes], turn: Turn
) -> AsyncIterator[AsyncIterator[list[bytes]]]:
    """The reader's turns; a request with a timeout is woken when it is over."""
    timer = None
    if visit.asked.timeout_s:
        loop = asyncio.get_running_loop()
        timer = loop.call_at(visit.deadline_s, visit.reader.waker.set)
    try:
        async with aclosing(told(visit.reader, visit.listening, form, turn)) as turns:
            yield turns
    finally:
        if timer is not None:
            timer.cancel()


async def _collect(visit: Visit, form: Form[bytes]) -> list[bytes]:
    """The items of one page: what there is, or the first that comes until the timeout."""
    reader, listening = visit.reader, visit.listening
    limit = visit.asked.limit or limits.HISTORY_EVENTS_DEFAULT
    last = listening.cursor.sequence + limits.HISTORY_SCANNED_MAX
    turn = Turn(limit, limits.HISTORY_BYTES_MAX)
    began = listening.cursor
    clock = asyncio.get_running_loop().time
    until_s = clock() + limits.HISTORY_S_MAX
    items: list[bytes] = []
    try:
        async with _turns(visit, form, turn) as turns:
            async for some in turns:
                items += some
                turn.events_max = limit - len(items)
                turn.bytes_max -= sum(map(len, some))
                if turn.events_max <= 0 or turn.bytes_max <= 0 or listening.cursor.sequence >= last:
                    break
                if (items or visit.over()) if reader.idle else clock() > until_s:
                    break
    except EventHubError:
        if listening.cursor == began:
            raise
        # a gap, say, behind what was found: that first, the next request is told
    if items:
        metrics.SENT.add(len(items), sum(map(len, items)))
    return items


async def _lines(visit: Visit, form: Form[bytes]) -> AsyncGenerator[bytes, None]:
    """Everything from the start to the head as it was, or what comes first until the timeout; the
    last line says where the reader stands. A refusal on the way is the last line, too.
    """
    reader, listening, limit = visit.reader, visit.listening, visit.asked.limit
    turn = Turn(limits.STREAM_WRITE_EVENTS_MAX, limits.STREAM_WRITE_BYTES_MAX)
    reader.last_word = form.message({"op": "resume", "reason": "slow_reader"})
    count = 0
    try:
        async with _turns(visit, form, turn) as turns:
            while limit is None or count < limit:
                if limit is not None:
                    turn.events_max = min(limit - count, limits.STREAM_WRITE_EVENTS_MAX)
                some = await anext(turns)
                count += len(some)
                if some:
                    yield _sending(reader, some)
                    reader.sending = False
                if visit.peer.over or _told_all(visit, count):
                    break
    except EventHubError as error:
        reader.why = error.code
        yield form.message(refusal(error))
        return
    ends = {"head": visit.head.sequence, "first": visit.ends.first}
    yield form.message({"op": "end", "cursor": listening.cursor._asdict(), **ends})


def _told_all(visit: Visit, count: int) -> bool:
    """True if a reader of lines has what it asked for."""
    if visit.listening.cursor.sequence < visit.ends.head.sequence:
        return False
    return bool(count) or visit.over()


async def _events(visit: Visit) -> AsyncGenerator[bytes, None]:
    """Server-sent events until the reader goes or its credential ends. The first one has an id, so
    that an EventSource that is cut off at once resumes from there.
    """
    form, reader, listening = SseFrames(), visit.reader, visit.listening
    reader.patient = True
    reader.last_word = form.message({"op": "resume", "reason": "slow_reader"})
    began = [*listening.news(form), form.message(listening.began())]
    yield b"retry: %d\n\n%b" % (limits.SSE_RETRY_MS, b"".join(began))
    turn = Turn(limits.STREAM_WRITE_EVENTS_MAX, limits.STREAM_WRITE_BYTES_MAX)
    pings, waited = reader.pings_due, False
    try:
        async with _turns(visit, form, turn) as turns:
            async for some in turns:
                if visit.peer.over:
                    return
                if reader.waiting != waited:
                    waited = reader.waiting
                    some.append(form.message(_status(waited=waited)))
                if reader.pings_due != pings:
                    pings = reader.pings_due
                    some.append(_ping(listening, form))
                if some:
                    yield _sending(reader, some)
                    reader.sending = False
    except EventHubError as error:
        reader.why = error.code
        yield form.message(refusal(error))


def _sending(reader: Single, frames: list[bytes]) -> bytes:
    """The frames in one piece, which the reader has to take now."""
    piece = b"".join(frames)
    metrics.SENT.add(len(frames), len(piece))
    reader.frames_taken += len(frames)  # those before
    reader.sending = True
    return piece


def _status(*, waited: bool) -> dict[str, Any]:
    if waited:
        return {"op": "status", "state": "waiting", **DatabaseUnavailable().problem()}
    return {"op": "status", "state": "resumed"}


def _ping(listening: Listening, form: SseFrames) -> bytes:
    """A sign of life; the cursor of a reader that wants little moves on with it."""
    cursor = listening.cursor
    position = listening.listen.position(cursor)
    if position is None:
        return b":\n\n"
    return form.message({"op": "position", **position, "cursor": cursor._asdict()})
