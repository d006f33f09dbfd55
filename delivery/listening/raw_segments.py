"""GET /v1/streams/{stream}/segments/{segment}/raw: a sealed segment as it is stored, in constant
memory (EMC-32): the archive's file, or the stored bytes from bounded reads. Plain module.

The route requires the grant `listen`, and sends the events that the client may see. A file contains
every event, so only operators get it.
"""

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from delivery.listening.errors import SegmentOpen, UnknownSegment
from delivery.listening.frames import DelimitedFrames, EventHeader
from delivery.listening.query import PROTOBUF, accepted
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.restricted import is_restricted
from delivery.listening.services import ListenerServices
from delivery.listening.single_reader import SingleReader
from eventhub.access.grants import SYSTEM
from eventhub.access.principal import Principal, is_shown
from eventhub.base import limits
from eventhub.base.errors import Forbidden, Gone
from eventhub.eventlog.archive.reader import PARQUET_TYPE, Archive
from eventhub.eventlog.backward_cursors import SegmentInfo, find_segment
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import ArchivedSegment, Cursor, StreamInfo
from eventhub.http.call import Call
from eventhub.http.messages import Headers, StreamingResponse, read_head, utf8_path

PARQUET = PARQUET_TYPE.encode()
RAW_MEDIA_TYPES = (PARQUET, PROTOBUF)
_PAGE = ReadLimits(limits.READ_EVENTS_MAX, limits.STREAM_WRITE_BYTES_MAX)


class RawSegmentHandler:
    """The route's handler in one process."""

    def __init__(
        self, services: ListenerServices, monitor: ReaderMonitor, archive: Archive | None
    ) -> None:
        self._services = services
        self._monitor = monitor
        self._archive = archive

    async def __call__(self, call: Call) -> StreamingResponse:
        """Handle a request. Raises Unauthenticated and its subclasses, Forbidden, UnknownStream,
        UnknownSegment, SegmentOpen, Gone, NotAcceptable.
        """
        services, headers = self._services, call.scope["headers"]
        name, text = (utf8_path(raw) for raw in call.parameters)
        credential = read_head(headers).credential
        principal = await call.authenticate(credential)
        _require(principal, name)
        stream = await call.find_stream(principal, name)
        segment = await self._find(stream, text)
        media_type = accepted(headers, self._media_types(segment, principal))
        with await self._monitor.admit(principal):
            reader = SingleReader(services.authorizer, services.clock, credential, principal)
            more: Headers = []
            body = self._events(reader, stream, segment)
            if media_type == PARQUET and self._archive is not None:
                archived = ArchivedSegment(
                    segment.uuid, segment.archive or "", segment.first, segment.last or 0
                )
                file = await self._archive.raw(archived)
                body = _guarded(reader, stream, file.chunks)
                more.append((b"content-length", str(file.length).encode()))
            return self._stream(reader, call, (body, more, media_type))

    def _stream(
        self,
        reader: SingleReader,
        call: Call,
        answer: tuple[AsyncGenerator[bytes, None], Headers, bytes],
    ) -> StreamingResponse:
        peer = call.incoming.peer
        peer.waker = reader.waker
        self._monitor.add(reader, peer)

        async def close() -> None:
            peer.waker = None
            self._monitor.remove(reader)

        return StreamingResponse(200, *answer, close)

    async def _find(self, stream: StreamInfo, text: str) -> SegmentInfo:
        try:
            found = await find_segment(self._services.log, stream, str(uuid.UUID(text)))
        except ValueError:
            found = None
        if found is None:
            raise UnknownSegment(field="segment")
        if found.last is None:
            raise SegmentOpen(field="segment")
        if found.tier == "dropped" or (found.tier == "archived" and self._archive is None):
            raise Gone("The segment is no longer available.", field="segment")
        return found

    def _media_types(self, segment: SegmentInfo, principal: Principal) -> tuple[bytes, ...]:
        there = segment.archive is not None and self._archive is not None
        return RAW_MEDIA_TYPES if there and principal.is_operator else (PROTOBUF,)

    async def _events(
        self, reader: SingleReader, stream: StreamInfo, segment: SegmentInfo
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of a segment page by page, from the database or the archive."""
        form, read = DelimitedFrames(), self._services.log.reader(stream.id)
        cursor, last = Cursor(segment.uuid, segment.first - 1), segment.last or 0
        last_sent = cursor.sequence
        while cursor.sequence < last:
            await _confirm(reader, stream)
            page = await read(
                cursor,
                _PAGE._replace(events_max=min(limits.READ_EVENTS_MAX, last - cursor.sequence)),
            )
            frames = []
            for stored in page:
                cursor = stored.cursor
                if not is_restricted(stored) or is_shown(stored.event, reader.principal):
                    frames.append(form.event(EventHeader("", last_sent, "playback"), stored))
                    last_sent = stored.sequence
            yield _deliver(reader, b"".join(frames))
            reader.sending = False


async def _guarded(
    reader: SingleReader, stream: StreamInfo, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of a file while the reader has its rights."""
    async with aclosing(chunks):
        async for chunk in chunks:
            await _confirm(reader, stream)
            yield _deliver(reader, chunk)
            reader.sending = False


def _deliver(reader: SingleReader, chunk: bytes) -> bytes:
    reader.frames_taken += 1  # the chunk before
    reader.sending = True
    return chunk


async def _confirm(reader: SingleReader, stream: StreamInfo) -> None:
    await reader.confirm()
    _require(reader.principal, stream.name)


def _require(principal: Principal, stream: str) -> None:
    """Raise Forbidden without `listen` on the stream, and for `system`, whose segments have events
    of all zones.
    """
    if stream == SYSTEM:
        raise Forbidden("The segments of `system` have events of all zones; listen to it instead.")
    principal.require_listen(stream)
