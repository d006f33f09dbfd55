"""Sockets that count event frames, and a producer that posts the events. Plain."""

import asyncio
import re
import socket
import time
from array import array
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import psutil

from tests.benchmarks.load.http import (
    HOST,
    Connection,
    cpu_time_s,
    now_ns,
    percentiles_ms,
    request_head,
)
from tests.benchmarks.load.jobs import SocketsJob
from tests.benchmarks.load.wire import TEXT, Socket, frame

_APPENDED = re.compile(rb'"appended_at":\s?"([^"]+)"')
READY_TIMEOUT_S = 30.0
OPENING_MAX = 50  # sockets that shake hands at once
DRAIN_TIMEOUT_S = 10.0
LAG_S = 0.1  # between two reads of a socket that lags
LAGGING_BUFFER_BYTES = 4_096  # of sockets that lag: the kernel's smallest


class StampedSocket(Socket):
    """A socket that notes when each event arrives, and the time at which it was appended."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.arrived: list[tuple[int, bytes]] = []  # nanoseconds since 1970; the event's own time

    def took_ns(self) -> "array[int]":
        """Return the time of each event from the assignment of its sequence to its arrival."""
        return array("q", (at_ns - _time_ns(appended) for at_ns, appended in self.arrived))

    def _frames(self, data: bytes, at: int) -> int:
        now_ns = time.time_ns()
        end = super()._frames(data, at)
        self.arrived += [(now_ns, found[1]) for found in _APPENDED.finditer(data, at, end)]
        return end


def _time_ns(text: bytes) -> int:
    return int(datetime.fromisoformat(text.decode()).timestamp() * 1e6) * 1_000


class LaggingSocket(Socket):
    """A socket that listens twice and then reads a little at a time, or nothing."""

    reads = True

    def lag(self, history: str) -> None:
        """Begin the second listen; read no more than the kernel's smallest buffer at a time."""
        self.transport.write(frame(TEXT, history.encode()))
        self.transport.pause_reading()
        if self.reads:
            asyncio.get_running_loop().call_later(LAG_S, self._read_once)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.ready.done() and self.reads and self.transport.is_reading():
            self.transport.pause_reading()

    def _read_once(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
            asyncio.get_running_loop().call_later(LAG_S, self._read_once)


class Fanout:
    """The state of one job. One event loop; everything happens in callbacks of connections."""

    def __init__(self, job: SocketsJob) -> None:
        self._job = job
        self._request = request_head(job.target, len(job.body.encode())) + job.body.encode()
        self._producers: list[Connection] = []
        self.sockets: list[Socket] = []
        self._lagging: list[LaggingSocket] = []
        self.frames = 0  # delivered to all sockets together
        self.posted = 0  # events
        self.took = array("q")
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._posting = False
        self._one_done = asyncio.Event()
        self._began_ns = 0
        self._due = 0  # frames and answers that the one event still misses

    async def open(self) -> None:
        """Connect all sockets; a socket counts once its listener has started."""
        job, loop = self._job, asyncio.get_running_loop()
        received = self._timed if job.samples else self._counted
        kind = StampedSocket if job.samples and job.sockets == 1 else Socket
        ports = [job.target.port, *job.ports]
        for number in range(job.sockets):
            _, opened = await loop.create_connection(
                lambda: kind(job.target, job.listen, job.mark, received),
                HOST,
                ports[number % len(ports)],
            )
            self.sockets.append(opened)
            if len(self.sockets) % OPENING_MAX == 0:
                await _all_ready(self.sockets[-OPENING_MAX:])
        await _all_ready(self.sockets)
        for opened in self.sockets:
            opened.failed.add_done_callback(self._give_up)
        await self._open_lagging()
        answered = self._one_answered if job.samples else self._answered
        for _ in range(job.connections):
            _, producer = await loop.create_connection(
                lambda: Connection(answered, self._fail), HOST, job.target.port
            )
            self._producers.append(producer)

    async def _open_lagging(self) -> None:
        job, loop = self._job, asyncio.get_running_loop()
        for number in range(job.lagging):
            connected = socket.socket()
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LAGGING_BUFFER_BYTES)
            connected.setblocking(False)
            await loop.sock_connect(connected, (HOST, job.target.port))
            _, lagging = await loop.create_connection(
                lambda: LaggingSocket(job.target, job.listen, job.mark, lambda _: None),
                sock=connected,
            )
            await _all_ready([lagging])
            lagging.reads = number % 2 == 1
            lagging.lag(job.history)
            self._lagging.append(lagging)
        if job.lagging:
            await asyncio.sleep(LAG_S * 5)  # until the hub has filled the buffers

    async def flood(self) -> dict[str, float]:
        """Return frames per second of all sockets together while the producers keep the server
        busy.
        """
        job = self._job
        self._posting = True
        self._post_more()
        await asyncio.wait({self.failed}, timeout=job.warmup_s)
        frames, began_ns, cpu_s = self.frames, now_ns(), cpu_time_s()
        used_s = _cpu_s(job.pids)
        await asyncio.wait({self.failed}, timeout=job.seconds)
        seconds = (now_ns() - began_ns) / 1e9
        used_s = _cpu_s(job.pids) - used_s
        figures = {
            "cpu_us": used_s / max(self.frames - frames, 1) * 1e6,
            "per_s": (self.frames - frames) / seconds,
            "load_cpu": (cpu_time_s() - cpu_s) / seconds,
        }
        self._posting = False
        await self._drain()
        lost = self.posted * job.sockets - self.frames
        return {**figures, "all": self.frames, "lost_frames": lost}

    async def one_by_one(self) -> dict[str, float]:
        """Return the latency of each receipt from just before its POST; the next event waits for
        all.
        """
        warmup = max(self._job.samples // 10, 1)
        for sample in range(warmup + self._job.samples):
            if sample == warmup:
                del self.took[:]
            self._one_done.clear()
            self._due = len(self.sockets) + 1
            self._began_ns = now_ns()
            self._producers[0].send(self._request)
            waiting = asyncio.ensure_future(self._one_done.wait())
            both: set[asyncio.Future[Any]] = {waiting, self.failed}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if self.failed.done():
                self.failed.result()
        figures = {"all": warmup + self._job.samples, **percentiles_ms(self.took)}
        if self._lagging:
            figures["still_lagging"] = sum(not one.failed.done() for one in self._lagging)
        for each in self.sockets:
            if isinstance(each, StampedSocket):
                within = percentiles_ms(each.took_ns()[-self._job.samples :])
                figures |= {f"in_hub_{name}": value for name, value in within.items()}
        return figures

    def _post_more(self) -> None:
        job = self._job
        for producer in self._producers:
            if not self._posting or self.posted - self.frames / job.sockets >= job.ahead:
                return
            if producer.idle:
                self.posted += job.events_per_body
                producer.send(self._request)

    def _answered(self, producer: Connection) -> None:
        self._post_more()

    def _counted(self, frames: int) -> None:
        self.frames += frames
        self._post_more()

    def _timed(self, frames: int) -> None:
        self.took.append(now_ns() - self._began_ns)
        self._one_less()

    def _one_answered(self, producer: Connection) -> None:
        self._one_less()

    def _one_less(self) -> None:
        self._due -= 1
        if not self._due:
            self._one_done.set()

    async def _drain(self) -> None:
        """Wait for everything posted, so that a frame that never arrives shows as lost."""
        deadline_ns = now_ns() + int(DRAIN_TIMEOUT_S * 1e9)
        while self.frames < self.posted * self._job.sockets and now_ns() < deadline_ns:
            await asyncio.sleep(0.05)
            if self.failed.done():
                self.failed.result()

    def _give_up(self, socket_failed: "asyncio.Future[None]") -> None:
        error = socket_failed.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


def _cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU time of processes."""
    used = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(float(one.user + one.system) for one in used)


async def _all_ready(sockets: Iterable[Socket]) -> None:
    async with asyncio.timeout(READY_TIMEOUT_S):
        for each in sockets:
            await asyncio.wait({each.ready, each.failed}, return_when=asyncio.FIRST_COMPLETED)
            if each.failed.done():
                each.failed.result()


async def run(job: SocketsJob) -> dict[str, float]:
    fanout = Fanout(job)
    await fanout.open()
    return await (fanout.one_by_one() if job.samples else fanout.flood())
