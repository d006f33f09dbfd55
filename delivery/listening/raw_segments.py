"""GET /v1/streams/{stream}/segments/{segment}/raw: a sealed segment as it is stored, in constant
memory (EMC-32): the archive's file, or the stored bytes from bounded reads. Plain module.

It takes what reading the stream takes: `listen`, and of its events those that the client may see.
A file is whole, whoever its events are for, so only operators get it.
"""

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from delivery.listening.answers import position_headers
from delivery.listening.errors import SegmentOpen, UnknownSegment
from delivery.listening.frames import DelimitedFrames, Heading
from delivery.listening.keeper import Keeper
from delivery.listening.listener import Sources
from delivery.listening.query import PROTOBUF, accepted
from delivery.listening.restricted import is_restricted
from delivery.listening.single import Single
from eventhub.access.audience import is_shown
from eventhub.access.grants import SYSTEM
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import Forbidden, Gone
from eventhub.eventlog.archive.reader import PARQUET_TYPE, Archive
from eventhub.eventlog.history import SegmentInfo, find_segment, stream_ends
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import ArchivedSegment, Cursor, StoredEvent, StreamInfo
from eventhub.http.messages import Headers, StreamingResponse, read_head, utf8_path
from eventhub.http.routes import Call

PARQUET = PARQUET_TYPE.encode()
RAW_KINDS = (PARQUET, PROTOBUF)
_PAGE = ReadLimits(limits.READ_EVENTS_MAX, limits.STREAM_WRITE_BYTES_MAX)


class RawDoor:
    """The door of one process."""

    def __init__(self, sources: Sources, keeper: Keeper, archive: Archive | None) -> None:
        self._sources = sources
        self._keeper = keeper
        self._archive = archive

    async def __call__(self, call: Call) -> StreamingResponse:
        """Raises Unauthenticated's kin, Forbidden, UnknownStream, UnknownSegment, SegmentOpen,
        Gone, NotAcceptable.
        """
        sources, headers = self._sources, call.scope["headers"]
        name, text = (utf8_path(raw) for raw in call.parameters)
        credential = read_head(headers).credential
        principal = await sources.authorizer.authenticate(credential)
        _require(principal, name)
        stream = await sources.authorizer.stream(principal, name)
        run = await self._find(stream, text)
        kind = accepted(headers, self._kinds(run, principal))
        with self._keeper.place(principal):
            reader = Single(sources.authorizer, sources.clock, credential, principal)
            more = position_headers((await stream_ends(sources.log, stream)).head)
            body = self._events(reader, stream, run)
            if kind == PARQUET and self._archive is not None:
                archived = ArchivedSegment(run.uuid, run.archive or "", run.first, run.last or 0)
                file = await self._archive.raw(archived)
                body = _guarded(reader, stream, file.chunks)
                more.append((b"content-length", str(file.length).encode()))
            return self._stream(reader, call, (body, more, kind))

    def _stream(
        self, reader: Single, call: Call, answer: tuple[AsyncGenerator[bytes, None], Headers, bytes]
    ) -> StreamingResponse:
        peer = call.incoming.peer
        peer.waker = reader.waker
        self._keeper.add(reader, peer)

        async def close() -> None:
            peer.waker = None
            self._keeper.remove(reader)

        return StreamingResponse(200, *answer, close)

    async def _find(self, stream: StreamInfo, text: str) -> SegmentInfo:
        try:
            found = await find_segment(self._sources.log, stream, str(uuid.UUID(text)))
        except ValueError:
            found = None
        if found is None:
            raise UnknownSegment(field="segment")
        if found.last is None:
            raise SegmentOpen(field="segment")
        if found.tier == "dropped" or (found.tier == "archived" and self._archive is None):
            raise Gone("The segment is no longer held.", field="segment")
        return found

    def _kinds(self, run: SegmentInfo, principal: Principal) -> tuple[bytes, ...]:
        there = run.archive is not None and self._archive is not None
        return RAW_KINDS if there and principal.is_operator else (PROTOBUF,)

    async def _events(
        self, reader: Single, stream: StreamInfo, run: SegmentInfo
    ) -> AsyncGenerator[bytes, None]:
        """The events of a segment page by page, from wherever it is held by then."""
        form, read = DelimitedFrames(), self._sources.log.reader(stream.id)
        cursor, last = Cursor(run.uuid, run.first - 1), run.last or 0
        told = cursor.sequence
        while cursor.sequence < last:
            await _confirm(reader, stream)
            page = await read(cursor, _PAGE._replace(events_max=_page_events(cursor, last)))
            frames = []
            for stored in page:
                cursor = stored.cursor
                if _is_shown(stored, reader.principal):
                    frames.append(form.event(Heading("", told, "playback"), stored))
                    told = stored.sequence
            yield _sending(reader, b"".join(frames))
            reader.sending = False


async def _guarded(
    reader: Single, stream: StreamInfo, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """The pieces of a file, as long as the reader may have them."""
    async with aclosing(chunks):
        async for chunk in chunks:
            await _confirm(reader, stream)
            yield _sending(reader, chunk)
            reader.sending = False


def _is_shown(stored: StoredEvent, principal: Principal) -> bool:
    return not is_restricted(stored) or is_shown(stored.event, principal)


def _page_events(cursor: Cursor, last: int) -> int:
    return min(limits.READ_EVENTS_MAX, last - cursor.sequence)


def _sending(reader: Single, piece: bytes) -> bytes:
    reader.frames_taken += 1  # the one before
    reader.sending = True
    return piece


async def _confirm(reader: Single, stream: StreamInfo) -> None:
    await reader.confirm()
    _require(reader.principal, stream.name)


def _require(principal: Principal, stream: str) -> None:
    """Of `system`, a segment holds what other zones' managers are told."""
    if stream == SYSTEM:
        raise Forbidden("The segments of `system` hold every zone's events; listen to it instead.")
    principal.require_listen(stream)
