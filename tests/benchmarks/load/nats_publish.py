"""Publishes to a JetStream of NATS, each message acknowledged before the next on its connection.
Plain.
"""

import asyncio
import json
import time
from array import array

from tests.benchmarks.load.http import HOST, RequestFailed, cpu_time_s, rate_of
from tests.benchmarks.load.jobs import NatsPublishJob

_STREAM = "published"
_SUBJECT = "published.one"


class _Publisher(asyncio.Protocol):
    """A connection that publishes the next message when the last one is stored."""

    def __init__(self, number: int, body: bytes, took: "array[int]") -> None:
        self._inbox = f"_inbox.{number}".encode()
        self._publish = b"PUB %b %b %d\r\n%b\r\n" % (
            *(_SUBJECT.encode(), self._inbox, len(body), body),
        )
        self._took = took
        self._sent_ns = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.created: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport.write(
            b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB %b 1\r\n' % self._inbox
        )

    def create(self) -> None:
        """Create the stream; `created` is set when it was."""
        stream = {"name": _STREAM, "subjects": [_SUBJECT], "storage": "file"}
        request = json.dumps({**stream, "max_bytes": 4 << 30, "discard": "old"}).encode()
        name = f"$JS.API.STREAM.CREATE.{_STREAM}".encode()
        self._transport.write(
            b"PUB %b %b %d\r\n%b\r\n" % (name, self._inbox, len(request), request)
        )

    def publish(self) -> None:
        self._sent_ns = time.perf_counter_ns()
        self._transport.write(self._publish)

    def data_received(self, data: bytes) -> None:
        if b"PING" in data:
            self._transport.write(b"PONG\r\n")
        if b'"error"' in data or b"-ERR" in data:
            self._fail(RequestFailed(data[:400].decode("latin-1")))
        elif b"MSG " in data and not self._sent_ns:
            self.created.set_result(None)
        elif b"MSG " in data:
            self._took.append(time.perf_counter_ns() - self._sent_ns)
            self.publish()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(RequestFailed(f"connection lost: {error}"))

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


async def run(job: NatsPublishJob) -> dict[str, float]:
    """Return messages per second, and latencies in ms."""
    loop = asyncio.get_running_loop()
    took = array("q")
    publishers = [
        (
            await loop.create_connection(
                lambda number=number: _Publisher(number, job.body.encode(), took),  # type: ignore[misc]
                HOST,
                job.target.port,
            )
        )[1]
        for number in range(job.connections)
    ]
    publishers[0].create()
    failures = {publisher.failed for publisher in publishers}
    await asyncio.wait(
        {publishers[0].created, publishers[0].failed}, return_when=asyncio.FIRST_COMPLETED
    )
    for publisher in publishers:
        publisher.publish()
    await asyncio.wait(failures, timeout=job.warmup_s, return_when=asyncio.FIRST_EXCEPTION)
    warmup = len(took)
    del took[:]
    began_ns, cpu_s = time.perf_counter_ns(), cpu_time_s()
    await asyncio.wait(failures, timeout=job.seconds, return_when=asyncio.FIRST_EXCEPTION)
    for failure in failures:
        if failure.done():
            failure.result()
    return rate_of(took, began_ns, cpu_s, warmup)
