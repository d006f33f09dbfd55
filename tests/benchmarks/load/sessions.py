"""Consumer sessions that wait, or whose events are timed, on the hub's websockets or, for
comparison, as durable consumers of NATS JetStream. Plain.

Session s takes the events of device s % devices and of kind s // devices, so an event is for one
session. It has a number, by which its time is found.
"""

import asyncio
import json
import random
import socket
from collections.abc import Iterator
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
from tests.benchmarks.load.idle import settled
from tests.benchmarks.load.jobs import SessionsJob
from tests.benchmarks.load.nats import NatsSide
from tests.benchmarks.load.session_sockets import Arrivals, SessionSocket

ACK_INTERVAL_S = 0.5
CONNECT_S = 120.0
DRAIN_S = 100.0  # sessions that return pass all that they missed
WARM_S = 90.0  # until the events of the warm-up have arrived: it has each session's first
OPENING_MAX = 20  # sockets that connect their sessions at once
STALLED_BUFFER_BYTES = 4_096  # of sockets that stall: the kernel's smallest
PROBE_S = 0.25  # between two looks of a stalled socket, whether the hub has closed it
RETURN_S_MAX = 5.0  # each returns after another pause: clients do not come all at once
CLOSED_S = 90.0  # until the hub has closed all: it waits for the answers to its pings
SAMPLES = 10  # of the server's memory


class HubSide:
    """The hub: its sockets with sessions, and a producer."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._job = arrivals.job
        self._producers: list[Connection] = []
        self._waiting: list[bytes] = []
        self._stalled: list[SessionSocket] = []
        self.returned_ms: list[float] = []  # of each socket that returned, to connect its sessions
        self.sockets: list[SessionSocket] = []

    async def open(self, sessions: range) -> None:
        """Connect so many more sessions, those on one socket in turn."""
        opening: list[asyncio.Future[None]] = []
        for part in _parts(sessions, self._job.per_socket):
            opening.append((await self._socket(part)).ready)
            if len(opening) == OPENING_MAX:
                await asyncio.wait_for(asyncio.gather(*opening), CONNECT_S)
                opening = []
        await asyncio.wait_for(asyncio.gather(*opening), CONNECT_S)

    async def start(self) -> None:
        """Connect the producers."""
        for _ in range(self._job.producers):
            _, one = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self._answered, self._arrivals.fail), HOST, self._job.target.port
            )
            self._producers.append(one)

    def post(self, events: list[tuple[int, int, int]]) -> None:
        """Emit events in one request."""
        bodies = [event_body(number, device, kind) for number, device, kind in events]
        body = b"[" + b",".join(bodies) + b"]"
        self._waiting.append(request_head(self._job.target, len(body)) + body)
        self._send()

    @property
    def acknowledging(self) -> list[SessionSocket]:
        return [*self.sockets]

    async def _socket(self, part: range) -> SessionSocket:
        key = self._job.keys[part[0] // self._job.per_client]
        headers = {**self._job.target.headers, "authorization": f"Bearer {key}"}
        target = self._job.target._replace(headers=headers)
        made = SessionSocket(target, part, self._arrivals, self._job.stream)
        plain = socket.socket()
        if self._arrivals.stalled(part[0]):
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_BUFFER_BYTES)
        plain.connect((HOST, target.port))
        plain.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: made, sock=plain)
        self.sockets.append(made)
        return made

    async def stall(self) -> None:
        """Have the sockets stall that are to, until the hub has closed them."""
        self._stalled = [one for one in self.sockets if self._arrivals.stalled(one.sessions[0])]
        await asyncio.gather(*(self._stall(one) for one in self._stalled))

    async def _stall(self, stalled: SessionSocket) -> None:
        stalled.stall()
        async with asyncio.timeout(CLOSED_S):
            while not stalled.lost.done():
                stalled.probe()
                await asyncio.wait({stalled.lost}, timeout=PROBE_S)
        self.sockets.remove(stalled)

    async def return_stalled(self) -> None:
        """Have the sessions of the sockets that stalled return."""
        await asyncio.gather(*(self._return(one.sessions) for one in self._stalled))

    async def _return(self, sessions: range) -> None:
        await asyncio.sleep(random.uniform(0, RETURN_S_MAX))
        began_ns = now_ns()
        again = await self._socket(sessions)
        await asyncio.wait_for(again.ready, CONNECT_S)
        self.returned_ms.append((now_ns() - began_ns) / 1e6)

    def _send(self) -> None:
        """Send what waits; each producer in turn, because the hub closes silent connections."""
        for _ in range(len(self._producers)):
            producer = self._producers.pop(0)
            self._producers.append(producer)
            if producer.idle and self._waiting:
                producer.send(self._waiting.pop(0))
                break

    def _answered(self, _: Connection) -> None:
        self._send()


def event_body(number: int, device: int, kind: int) -> bytes:
    """Return an event of about 300 bytes."""
    attributes = {"n": number, "device": device, "kind": kind}
    event = {"domain": "fleet", "type": "reading", "attributes": attributes}
    return json.dumps({**event, "body": {"text": "x" * 190}}, separators=(",", ":")).encode()


def _parts(sessions: range, size: int) -> Iterator[range]:
    for at in range(sessions.start, sessions.stop, size):
        yield range(at, min(at + size, sessions.stop))


async def run(job: SessionsJob) -> dict[str, float]:
    """Return the server's memory for each session, if no rate is given; else the latency of each
    event from when it was due, and how the server's memory grew meanwhile.
    """
    arrivals = Arrivals(job)
    side: Any = NatsSide(arrivals, event_body) if job.nats else HubSide(arrivals)
    return await (_timed(side, arrivals) if job.rate else _idle(side, arrivals))


async def _idle(side: Any, arrivals: Arrivals) -> dict[str, float]:
    job, server = arrivals.job, psutil.Process(arrivals.job.pid)
    few = min(job.sessions // 10, job.per_client)
    few -= few % job.per_socket
    await side.open(range(few))
    await settled(server)
    before = server.memory_full_info().uss
    began_ns = now_ns()
    await side.open(range(few, job.sessions))
    connected_s = (now_ns() - began_ns) / 1e9
    await settled(server)
    after = server.memory_full_info().uss
    cpu_s, began_ns = _cpu_s(server), now_ns()
    await asyncio.wait({arrivals.failed}, timeout=job.seconds)
    passed_s = (now_ns() - began_ns) / 1e9
    _raise(arrivals)
    more = job.sessions - few
    return {
        "kb_each": (after - before) / 1_000 / more,
        "uss_mb": after / 1e6,
        "connected_per_s": more / connected_s,
        "idle_cores": (_cpu_s(server) - cpu_s) / passed_s,
        "growth_mb": (server.memory_full_info().uss - after) / 1e6,
        "all": job.sessions,
    }


async def _timed(side: Any, arrivals: Arrivals) -> dict[str, float]:
    job, server = arrivals.job, psutil.Process(arrivals.job.pid)
    await side.open(range(job.sessions))
    await side.start()
    acknowledging = asyncio.create_task(_acknowledging(side))
    began_ns = now_ns()
    await _paced(side, arrivals, max(job.warmup_s, (job.sessions + job.batch) / job.rate))
    await _drained(arrivals, WARM_S)
    warm_s = (now_ns() - began_ns) / 1e9
    arrivals.warm = len(arrivals.due)
    cpu_s, used_s, began_ns = cpu_time_s(), _cpu_s(server), now_ns()
    memory = [server.memory_full_info().uss]

    async def paced_until(done: "asyncio.Task[None] | None") -> None:
        while len(memory) <= SAMPLES or (done is not None and not done.done()):
            await _paced(side, arrivals, job.seconds / SAMPLES)
            memory.append(server.memory_full_info().uss)
        if done is not None:
            done.result()

    await paced_until(asyncio.create_task(side.stall()) if job.stalled else None)
    passed_s = (now_ns() - began_ns) / 1e9
    frames = len(arrivals.took)
    figures = {
        "server_cores": (_cpu_s(server) - used_s) / passed_s,
        "load_cpu": (cpu_time_s() - cpu_s) / passed_s,
        "frame_us": (_cpu_s(server) - used_s) / max(frames, 1) * 1e6,
        "events_per_s": (len(arrivals.due) - arrivals.warm) / passed_s,
        "frames_per_s": frames / passed_s,
    }
    if job.stalled:
        await paced_until(asyncio.create_task(side.return_stalled()))
    await _drained(arrivals, DRAIN_S)
    acknowledging.cancel()
    if job.stalled:
        returning = percentiles_ms(arrivals.took[frames:])
        figures |= {f"returning_{name}": value for name, value in returning.items()}
        figures["returned"] = len(side.returned_ms)
        figures["return_ms"] = max(side.returned_ms)
    return {
        **percentiles_ms(arrivals.took[:frames]),
        **figures,
        "warm_s": warm_s,
        "lost_frames": arrivals.expected - len(arrivals.received),
        "doubled": arrivals.doubled,
        "uss_mb": memory[-1] / 1e6,
        "growth_mb": (memory[-1] - memory[len(memory) // 2]) / 1e6,
        "all": len(arrivals.received),
    }


async def _paced(side: Any, arrivals: Arrivals, seconds: float) -> None:
    """Emit events at the rate of the job for so long."""
    job = arrivals.job
    due_ns, step_ns = now_ns(), int(job.batch / job.rate * 1e9)
    end_ns = due_ns + int(seconds * 1e9)
    while due_ns < end_ns:
        while due_ns <= now_ns():
            side.post(arrivals.next_events(job.batch, due_ns))
            due_ns += step_ns
        await asyncio.sleep(max((due_ns - now_ns()) / 1e9, 0))
        _raise(arrivals)


async def _drained(arrivals: Arrivals, seconds: float) -> None:
    """Wait until all events have arrived, for so long at most."""
    until_ns = now_ns() + int(seconds * 1e9)
    while len(arrivals.received) < arrivals.expected and now_ns() < until_ns:
        await asyncio.sleep(0.02)
        _raise(arrivals)


async def _acknowledging(side: Any) -> None:
    """Acknowledge each socket's events in turn: consumers do not all do so at once."""
    while True:
        sockets = side.acknowledging
        for each in sockets:
            each.acknowledge()
            await asyncio.sleep(ACK_INTERVAL_S / len(sockets))


def _cpu_s(server: psutil.Process) -> float:
    used = server.cpu_times()
    return float(used.user + used.system)


def _raise(arrivals: Arrivals) -> None:
    if arrivals.failed.done():
        arrivals.failed.result()
