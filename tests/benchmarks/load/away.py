"""A session that was away: the time from its connection to the first event, in turn with listeners
that start at the same cursor; then many events through one session, acknowledged. Plain.
"""

import asyncio
import json
from array import array
from typing import Any

import psutil

from tests.benchmarks.load.http import HOST, now_ns, percentiles_ms
from tests.benchmarks.load.jobs import AwayJob, Target
from tests.benchmarks.load.transports import first_of
from tests.benchmarks.load.wire import TEXT, Socket, frame

MARK = '{"op":"event"'
READ_TIMEOUT_S = 120.0
ACK_EVENTS = 50  # half of the default window
SAMPLES = 20  # of the server's memory


class AwaySocket(Socket):
    """A socket that knows when the first event of the request under way arrived."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, "", MARK, self._count)
        self.first: asyncio.Future[int]
        self.ended: asyncio.Future[None]
        self.counted = 0
        self.on_events: Any = None

    async def time_first(self, begin: dict[str, Any], end: dict[str, Any]) -> int:
        """Return the nanoseconds from a request to its first event; end it then."""
        loop = asyncio.get_running_loop()
        self.first, self.ended = loop.create_future(), loop.create_future()
        began_ns = now_ns()
        self.say(begin)
        await first_of(self.first, self.failed)  # type: ignore[arg-type]
        took_ns = self.first.result() - began_ns
        self.say(end)
        await first_of(self.ended, self.failed)
        return took_ns

    def say(self, fields: dict[str, Any]) -> None:
        self.transport.write(frame(TEXT, json.dumps(fields).encode()))

    def _count(self, events: int) -> None:
        self.counted += events
        if not self.first.done():
            self.first.set_result(now_ns())
        if self.on_events is not None:
            self.on_events()

    def _other(self, opcode: int, payload: bytes) -> None:
        if payload.startswith((b'{"op":"stopped"', b'{"op":"disconnected"')):
            self.ended.set_result(None)
        else:
            super()._other(opcode, payload)


async def run(job: AwayJob) -> dict[str, float]:
    """Return the percentiles of sessions, and of listeners as `listener_…`."""
    server = psutil.Process(job.pid)
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(lambda: AwaySocket(job.target), HOST, job.target.port)
    await first_of(socket.ready, socket.failed)
    sessions, listeners = array("q"), array("q")
    before = server.memory_full_info().uss
    for name in job.sessions:
        connect = {"op": "connect", "session": name}
        sessions.append(await socket.time_first(connect, {"op": "disconnect", "session": name}))
        listen = {"op": "listen", "listener": "a", **job.listen}
        listeners.append(await socket.time_first(listen, {"op": "stop", "listener": "a"}))
    figures = {**percentiles_ms(sessions), "all": 2 * len(job.sessions)}
    figures |= {f"listener_{name}": each for name, each in percentiles_ms(listeners).items()}
    if job.read_events:
        figures |= await _read(job, socket, server)
        figures["growth_mb"] = (server.memory_full_info().uss - before) / 1e6
    return figures


async def _read(job: AwayJob, socket: AwaySocket, server: psutil.Process) -> dict[str, float]:
    """Read events through one session, whose stream holds nothing else that matches."""
    name, done = job.sessions[0], asyncio.get_running_loop().create_future()
    ack = {"op": "ack", "session": name, "stream": job.listen["stream"]}
    socket.first = asyncio.get_running_loop().create_future()
    socket.counted, acknowledged = 0, 0
    every, memory = max(job.read_events // SAMPLES, 1), [server.memory_full_info().uss]

    def count() -> None:
        nonlocal acknowledged
        if socket.counted - acknowledged >= ACK_EVENTS:
            acknowledged = socket.counted
            socket.say({**ack, "sequence": acknowledged * job.matching_every})
            if acknowledged // every >= len(memory):
                memory.append(server.memory_full_info().uss)
        if socket.counted >= job.read_events and not done.done():
            done.set_result(None)

    socket.on_events = count
    began_ns = now_ns()
    socket.say({"op": "connect", "session": name})
    await first_of(done, socket.failed, patience_s=READ_TIMEOUT_S)
    seconds = (now_ns() - began_ns) / 1e9
    return {
        "read_per_s": socket.counted / seconds,
        "peak_mb": max(memory) / 1e6,
    }
