"""A reader that reads a whole stream in protobuf or JSON, and only counts. Plain."""

import asyncio
from collections.abc import Callable

from tests.benchmarks.load.http import HOST, RequestFailed, cpu_time_s, get_head, now_ns
from tests.benchmarks.load.jobs import ReplayJob
from tests.benchmarks.load.wire import Socket

EVENT_TAG = 0x0A  # ServerFrame.event, with which a frame of an event begins
BEGINNINGS = {"protobuf": chr(EVENT_TAG), "json": '{"op":"event"'}  # of such frames
MEDIA_TYPES = {"protobuf": "application/x-protobuf", "json": "application/x-ndjson"}
CountEvents = Callable[[bytes, int, int], int]
REPLAY_TIMEOUT_S = 600.0


class Chunks(asyncio.Protocol):
    """An answer in chunks, each of which holds whole frames or lines."""

    def __init__(self, request: bytes, count: CountEvents, received: Callable[[int], None]) -> None:
        self._count = count
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._received = received
        self._parts: list[bytes] = []
        self._have = 0
        self._need = 1  # bytes until the next look
        self._begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._request)  # type: ignore[attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        if not self.failed.done():
            self.failed.set_exception(RequestFailed(f"answer lost: {error}"))

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        data = b"".join(self._parts)
        at = self._chunks(data, self._head(data))
        self._parts = [data[at:]]
        self._have = len(data) - at

    def _head(self, data: bytes) -> int:
        if self._begun:
            return 0
        end = data.find(b"\r\n\r\n")
        if not data.startswith(b"HTTP/1.1 200") and not self.failed.done():
            self.failed.set_exception(RequestFailed(data[:400].decode("latin-1")))
        self._begun = end >= 0
        return end + 4 if self._begun else len(data)

    def _chunks(self, data: bytes, at: int) -> int:
        """Count in the whole chunks from an offset on; return the offset of the first incomplete
        one.
        """
        events = 0
        while (line := data.find(b"\r\n", at)) >= 0:
            begin = line + 2
            end = begin + int(data[at:line], 16)
            self._need = end + 2 - at
            if end + 2 > len(data):
                break
            events += self._count(data, begin, end)
            at, self._need = end + 2, 1
        if events:
            self._received(events)
        return at


def count_lines(data: bytes, at: int, end: int) -> int:
    """Count the events between two offsets, a line each; the last line is none."""
    return data.count(b'"liveness":"', at, end)


def count_frames(data: bytes, at: int, end: int) -> int:
    """Count the event frames between two offsets; each frame follows its length as a varint."""
    events = 0
    while at < end:
        length = data[at]
        at += 1
        if length > 0x7F:
            length = length & 0x7F | data[at] << 7
            at += 1
            if length > 0x3FFF:
                raise RequestFailed("a frame that is longer than those of a benchmark")
        events += data[at] == EVENT_TAG
        at += length
    return events


async def run(job: ReplayJob) -> dict[str, float]:
    """Return events per second from the request to the last event."""
    loop, port = asyncio.get_running_loop(), job.target.port
    done: asyncio.Future[None] = loop.create_future()
    count = 0

    def received(events: int) -> None:
        nonlocal count
        count += events
        if count >= job.events and not done.done():
            done.set_result(None)

    began_ns, cpu_s = now_ns(), cpu_time_s()
    reader: Chunks | Socket
    if job.listen:
        headers = {**job.target.headers, "sec-websocket-protocol": f"eventhub.v1.{job.form}"}
        target = job.target._replace(headers=headers)
        _, reader = await loop.create_connection(
            lambda: Socket(target, job.listen, BEGINNINGS[job.form], received), HOST, port
        )
    else:
        request = get_head(job.target, "?from=oldest", MEDIA_TYPES[job.form])
        count_in = count_lines if job.form == "json" else count_frames
        _, reader = await loop.create_connection(
            lambda: Chunks(request, count_in, received), HOST, port
        )
    async with asyncio.timeout(REPLAY_TIMEOUT_S):
        await asyncio.wait({done, reader.failed}, return_when=asyncio.FIRST_COMPLETED)
    seconds = (now_ns() - began_ns) / 1e9
    if reader.failed.done():
        reader.failed.result()
    if count != job.events:
        raise RequestFailed(f"{count} events instead of {job.events}")
    load_cpu = (cpu_time_s() - cpu_s) / seconds
    return {"per_s": count / seconds, "all": count, "load_cpu": load_cpu}
