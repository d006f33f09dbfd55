"""One client's paced requests, and the load of another client that must not delay them. Plain.

Each runs in a process of its own; the requests of both are prepared, and any answer counts.
"""

import asyncio
import re
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable

from tests.benchmarks.load.http import HOST, RequestFailed, now_ns, percentiles_ms
from tests.benchmarks.load.jobs import CrowdJob, NeighbourJob, Target
from tests.benchmarks.load.wire import Socket

LOOK_S = 0.01
MARK = '{"op":"event"'
_STATUS = re.compile(rb"HTTP/1\.1 (\d+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def request_of(target: Target, method: str, body: str) -> bytes:
    """Return a whole request."""
    lines = [
        f"{method} {target.path} HTTP/1.1",
        f"host: {HOST}:{target.port}",
        f"content-length: {len(body)}",
        *(f"{name}: {value}" for name, value in target.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


class Caller(asyncio.Protocol):
    """A connection that accepts any answer: `answered(caller, status)`."""

    def __init__(self, answered: Callable[["Caller", int], None]) -> None:
        self._answered = answered
        self._data = b""
        self.due_ns = 0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def send(self, request: bytes) -> None:
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._data[:end]
        status, length = _STATUS.match(head), _LENGTH.search(head)
        if status is None:
            raise RequestFailed(head.decode("latin-1"))
        if len(self._data) >= end + 4 + (int(length[1]) if length else 0):
            self._data = b""
            self._answered(self, int(status[1]))

    def connection_lost(self, error: Exception | None) -> None:
        self._answered(self, 0)


class Taker(Socket):
    """A listener that reads its frames without parsing, so that the hub is the busy side."""

    taken_bytes = 0

    def data_received(self, data: bytes) -> None:
        if self.ready.done():
            self.taken_bytes += len(data)
        else:
            super().data_received(data)


class Paced:
    """Sends requests when they are due, each as soon as a connection is free, and times them."""

    def __init__(self, job: NeighbourJob, warm_ns: int) -> None:
        self.took = array("q")
        self.seen: Counter[int] = Counter()
        self.waiting: deque[int] = deque()
        self.idle: deque[Caller] = deque()  # each in turn: the hub closes those that say nothing
        self._request = request_of(job.target, job.method, job.body)
        self._warm_ns = warm_ns

    def send(self) -> None:
        while self.waiting and self.idle:
            caller = self.idle.popleft()
            caller.due_ns = self.waiting.popleft()
            caller.send(self._request)

    def answered(self, caller: Caller, status: int) -> None:
        if not caller.due_ns:
            return
        self.seen[status] += 1
        if caller.due_ns >= self._warm_ns:
            self.took.append(now_ns() - caller.due_ns)
        caller.due_ns = 0
        if status and not caller.transport.is_closing():
            self.idle.append(caller)
            self.send()


async def run(job: NeighbourJob) -> dict[str, float]:
    """Return latencies from when each request was due; `refused`: answers that were no success."""
    due_ns, step_ns = now_ns(), int(1e9 / job.per_s)
    warm_ns = due_ns + int(job.warmup_s * 1e9)
    end_ns = warm_ns + int(job.seconds * 1e9)
    paced, loop = Paced(job, warm_ns), asyncio.get_running_loop()
    for _ in range(job.connections):
        _, opened = await loop.create_connection(
            lambda: Caller(paced.answered), HOST, job.target.port
        )
        paced.idle.append(opened)
    while due_ns < end_ns:
        while due_ns <= now_ns():
            paced.waiting.append(due_ns)
            due_ns += step_ns
        paced.send()
        await asyncio.sleep(max((due_ns - now_ns()) / 1e9, 0))
    for _ in range(int(job.patience_s / LOOK_S)):
        if len(paced.idle) == job.connections:
            break
        await asyncio.sleep(LOOK_S)
    codes = {f"status_{status}": float(count) for status, count in paced.seen.items()}
    refused = sum(count for status, count in paced.seen.items() if not 200 <= status < 300)
    unanswered = len(paced.waiting) + job.connections - len(paced.idle)
    return {**percentiles_ms(paced.took), **codes, "refused": refused, "unanswered": unanswered}


async def crowd(job: CrowdJob) -> dict[str, float]:
    """Open the given number of connections, each with the next request after an answer; or, with
    `listen`, so many sockets at once that listen and read. End after `seconds`.
    """
    if job.listen:
        return await _sockets(job)
    loop = asyncio.get_running_loop()
    request = request_of(job.target, job.method, job.body)
    seen: Counter[int] = Counter()
    end_s = time.monotonic() + job.seconds
    left = job.requests_max or 1 << 62

    def answered(caller: Caller, status: int) -> None:
        nonlocal left
        seen[status] += 1
        left -= 1
        if status and left > 0 and time.monotonic() < end_s and not caller.transport.is_closing():
            caller.send(request)

    opened = []
    for number in range(job.connections):
        local = (f"127.0.0.{2 + number % job.addresses}", 0) if job.addresses else None
        _, caller = await loop.create_connection(
            lambda: Caller(answered), HOST, job.target.port, local_addr=local
        )
        opened.append(caller)
    began_ns = now_ns()
    for caller in opened:
        caller.send(request)
    await asyncio.sleep(job.seconds)
    seconds = (now_ns() - began_ns) / 1e9
    codes = {f"status_{status}": float(count) for status, count in seen.items()}
    return {"per_s": sum(seen.values()) / seconds, **codes}


async def _sockets(job: CrowdJob) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    began_ns = now_ns()
    took, last = array("q"), 0
    sockets: list[Taker] = []

    async def one(number: int) -> None:
        target = job.target
        if job.keys:
            key = job.keys[number % len(job.keys)]
            target = target._replace(headers={"authorization": f"Bearer {key}"})
        _, socket = await loop.create_connection(
            lambda: Taker(target, job.listen, MARK, lambda _: None), HOST, job.target.port
        )
        sockets.append(socket)
        await asyncio.wait({socket.ready, socket.failed}, return_when=asyncio.FIRST_COMPLETED)
        if socket.ready.done():
            took.append(now_ns() - began_ns)

    tasks = [asyncio.create_task(one(number)) for number in range(job.connections)]
    await asyncio.sleep(job.seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    last = max(took, default=0)
    failed = [socket for socket in sockets if socket.failed.done()]
    for socket in failed:
        socket.failed.exception()
    taken = sum(socket.taken_bytes for socket in sockets)
    return {
        "listening": float(len(took)),
        "last_listening_ms": last / 1e6,
        "failed": float(len(failed)),
        "mb_per_s": taken / 1e6 / job.seconds,
    }
