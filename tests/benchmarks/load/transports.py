"""One reader that waits on a transport, and a producer that posts one event at a time: when the
event arrives. Plain.
"""

import asyncio
import re
from array import array
from collections.abc import Callable

from tests.benchmarks.load.http import (
    HOST,
    Connection,
    RequestFailed,
    get_head,
    now_ns,
    percentiles_ms,
    request_head,
)
from tests.benchmarks.load.jobs import TransportJob
from tests.benchmarks.load.wire import Socket

PAUSE_S = 0.01  # until a poll surely waits; before every event of every transport, to be fair
RECEIPT_TIMEOUT_S = 10.0
POLL_S = 30
_CURSOR = re.compile(rb"\r\neventhub-cursor: ([^\r]+)\r\n", re.IGNORECASE)
_EVENT = b"\nevent: event\n"
_END = b"\n\n\r\n"  # of an event, and of the chunk that holds it
Fail = Callable[[BaseException], None]


class Receipt:
    """The arrival of the one event in flight, and the answer to its POST."""

    def __init__(self) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.took = array("q")
        self._due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pending_rows = 0
        self._began_ns = 0

    def begin(self) -> None:
        self._due = asyncio.get_running_loop().create_future()
        self.pending_rows = 2
        self._began_ns = now_ns()

    def received(self) -> None:
        self.took.append(now_ns() - self._began_ns)
        self.one_less()

    def one_less(self) -> None:
        self.pending_rows -= 1
        if not self.pending_rows:
            self._due.set_result(None)

    def fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    async def wait(self) -> None:
        await first_of(self._due, self.failed)


class Events(asyncio.Protocol):
    """A reader of server-sent events."""

    def __init__(self, request: bytes, received: Callable[[], None], fail: Fail) -> None:
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._received = received
        self._fail = fail
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        data = self._data = self._data + data
        if not data.endswith(_END):
            return
        self._data = b""
        if _EVENT in data:
            self._received()
        elif b"\nevent: listening\n" in data:
            self.ready.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(RequestFailed(f"stream lost: {error} {self._data[:400]!r}"))


async def run(job: TransportJob) -> dict[str, float]:
    """Return the latency from just before a POST to its event; the next one waits for it."""
    loop, receipt, port = asyncio.get_running_loop(), Receipt(), job.target.port
    request = request_head(job.target, len(job.body.encode())) + job.body.encode()
    _, producer = await loop.create_connection(
        lambda: Connection(lambda _: receipt.one_less(), receipt.fail), HOST, port
    )
    again = await OPEN[job.transport](job, receipt)
    warmup = max(job.samples // 10, 1)
    for sample in range(warmup + job.samples):
        if sample == warmup:
            del receipt.took[:]
        again()
        await asyncio.sleep(PAUSE_S)
        receipt.begin()
        producer.send(request)
        await receipt.wait()
    return {"all": warmup + job.samples, **percentiles_ms(receipt.took)}


async def _open_socket(job: TransportJob, receipt: Receipt) -> Callable[[], None]:
    _, socket = await asyncio.get_running_loop().create_connection(
        lambda: Socket(job.target, job.listen, '{"op":"event"', lambda _: receipt.received()),
        HOST,
        job.target.port,
    )
    await first_of(socket.ready, socket.failed)
    socket.failed.add_done_callback(lambda failed: receipt.fail(failed.exception() or OSError()))
    return lambda: None


async def _open_events(job: TransportJob, receipt: Receipt) -> Callable[[], None]:
    request = get_head(job.target, "?from=now", "text/event-stream")
    _, reader = await asyncio.get_running_loop().create_connection(
        lambda: Events(request, receipt.received, receipt.fail), HOST, job.target.port
    )
    await first_of(reader.ready, receipt.failed)
    return lambda: None


async def _open_poll(job: TransportJob, receipt: Receipt) -> Callable[[], None]:
    """Open the next poll from the cursor of the last answer; a first one, which waits for nothing,
    asks for the cursor: a busy hub may take a poll from now after the event.
    """
    loop = asyncio.get_running_loop()
    placed: asyncio.Future[None] = loop.create_future()

    def answered(_: Connection) -> None:
        receipt.received() if placed.done() else placed.set_result(None)

    _, poll = await loop.create_connection(
        lambda: Connection(answered, receipt.fail), HOST, job.target.port
    )

    def again(start: str = "", timeout_s: float = POLL_S) -> None:
        start = start or _CURSOR.search(poll.answer)[1].decode()  # type: ignore[index]
        poll.send(get_head(job.target, f"?from={start}&timeout={timeout_s}", "application/json"))

    again("now", 0)
    await first_of(placed, receipt.failed)
    return again


OPEN = {"websocket": _open_socket, "sse": _open_events, "poll": _open_poll}


async def first_of(
    expected: "asyncio.Future[None]",
    failed: "asyncio.Future[None]",
    *,
    patience_s: float = RECEIPT_TIMEOUT_S,
) -> None:
    """Wait for the expected result. Raise the failure, or TimeoutError."""
    async with asyncio.timeout(patience_s):
        await asyncio.wait({expected, failed}, return_when=asyncio.FIRST_COMPLETED)
    if failed.done():
        failed.result()
