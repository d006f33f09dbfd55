"""Requests over keep-alive connections with minimal parsing: the bytes are prepared, and only the
status and length of an answer are read. Plain.
"""

import asyncio
import resource
import time
from array import array
from collections.abc import Callable

from tests.benchmarks.load.jobs import HttpJob, Target

HOST = "127.0.0.1"
FIRST_NUMBER = 10**12  # rising numbers keep their width, and with it the request its length
now_ns = time.perf_counter_ns


class RequestFailed(Exception):
    """The answer is not 200, or the connection ended."""


def request_head(target: Target, length: int) -> bytes:
    lines = [
        f"POST {target.path} HTTP/1.1",
        f"host: {HOST}:{target.port}",
        f"content-length: {length}",
        *(f"{name}: {value}" for name, value in target.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def get_head(target: Target, query: str, accept: str) -> bytes:
    """Return a GET of the target's path with a query."""
    lines = [
        f"GET {target.path}{query} HTTP/1.1",
        f"host: {HOST}:{target.port}",
        f"accept: {accept}",
        f"authorization: {target.headers['authorization']}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def requests(job: HttpJob) -> Callable[[], bytes]:
    """Return a function that returns the next request's bytes."""
    body = job.body.encode()
    if job.after is None:
        request = request_head(job.target, len(body)) + body
        return lambda: request
    after = job.after.encode()
    before = request_head(job.target, len(body) + len(after) + 13) + body
    number = FIRST_NUMBER

    def rising() -> bytes:
        nonlocal number
        number += 1
        return b"%b%d%b" % (before, number, after)

    return rising


def answer_length(data: bytes) -> int | None:
    """Return the length of the first answer in the data, None while it is incomplete."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    if not data.startswith(b"HTTP/1.1 200"):
        raise RequestFailed(data[:400].decode("latin-1"))
    head = data[:end].lower()
    at = head.find(b"content-length:") + 15
    stop = head.find(b"\r\n", at)
    whole = end + 4 + int(head[at:stop] if stop > 0 else head[at:])
    return whole if len(data) >= whole else None


class Connection(asyncio.Protocol):
    """A connection. `answered` is called for every answer and may send the next request."""

    def __init__(self, answered: Callable[["Connection"], None], failed: Callable[..., None]):
        self._answered = answered
        self._failed = failed
        self._data = b""
        self.answer = b""  # the last one
        self.sent_ns = 0
        self.idle = True
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def send(self, request: bytes) -> None:
        self.idle = False
        self.sent_ns = now_ns()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._data:
            data = self._data + data
        try:
            length = answer_length(data)
        except RequestFailed as error:
            self._failed(error)
            return
        self._data = b"" if length is not None else data
        if length is not None:
            self.idle = True
            self.answer = data
            self._answered(self)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.idle:
            self._failed(RequestFailed(f"connection lost: {error}"))


async def run(job: HttpJob) -> dict[str, float]:
    """Return requests per second, latencies in ms, and how busy this process was (1.0: one
    core).
    """
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    request = requests(job)
    took = array("q")

    def answered(connection: Connection) -> None:
        took.append(now_ns() - connection.sent_ns)
        connection.send(request())

    def give_up(error: Exception) -> None:
        if not failed.done():
            failed.set_exception(error)

    opened = [
        (await loop.create_connection(lambda: Connection(answered, give_up), HOST, job.target.port))
        for _ in range(job.connections)
    ]
    for _, connection in opened:
        connection.send(request())
    await asyncio.wait({failed}, timeout=job.warmup_s)
    warmup = len(took)
    del took[:]
    began_ns, cpu_s = now_ns(), cpu_time_s()
    await asyncio.wait({failed}, timeout=job.seconds)
    while not took and not failed.done():  # a busy machine may have answered none in a short time
        await asyncio.wait({failed}, timeout=job.seconds)
    if failed.done():
        failed.result()
    return rate_of(took, began_ns, cpu_s, warmup)


def rate_of(took_ns: "array[int]", began_ns: int, cpu_s: float, warmup: int) -> dict[str, float]:
    """Return the figures of a run that began then, with this process's CPU time at that moment and
    so many requests before.
    """
    seconds = (now_ns() - began_ns) / 1e9
    return {
        "per_s": len(took_ns) / seconds,
        "all": warmup + len(took_ns),
        "load_cpu": (cpu_time_s() - cpu_s) / seconds,
        **percentiles_ms(took_ns),
    }


def cpu_time_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def percentiles_ms(took_ns: "array[int]") -> dict[str, float]:
    """Return p50 and p99 of nanoseconds; empty without samples."""
    ordered = sorted(took_ns)
    if not ordered:
        return {}
    at = {"p50_ms": 0.5, "p99_ms": 0.99}
    return {name: ordered[int(len(ordered) * part)] / 1e6 for name, part in at.items()}
