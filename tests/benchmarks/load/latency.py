"""Events that are each pending to one callback and one websocket: the highest rate, and the time of
each from when it was due to be sent. Plain.
"""

import asyncio
import re
from array import array
from collections import deque

from tests.benchmarks.load.http import (
    HOST,
    Connection,
    RequestFailed,
    cpu_time_s,
    now_ns,
    percentiles_ms,
    request_head,
)
from tests.benchmarks.load.jobs import LatencyJob
from tests.benchmarks.load.receiver import receive
from tests.benchmarks.load.transports import first_of
from tests.benchmarks.load.wire import Socket

_SEQUENCE = re.compile(rb'"sequence":\s?(\d+)')
MARK = '{"op":"event"'
DRAIN_S = 20.0
LOOK_S = 0.01
SLEEP_MIN_S = 0.001


class Numbered(Socket):
    """A socket that reports the sequence of each event frame."""

    def __init__(self, job: LatencyJob, came: "Came") -> None:
        super().__init__(job.target, job.listen, MARK, lambda _: None)
        self._came = came

    def _frames(self, data: bytes, at: int) -> int:
        end = super()._frames(data, at)
        for found in _SEQUENCE.finditer(data, at, end):
            self._came.frame(int(found[1]))
        return end


class Came:
    """The arrival of each event, by sequence; events whose POST is unanswered wait for it."""

    def __init__(self) -> None:
        self.callbacks: dict[int, int] = {}
        self.frames: dict[int, int] = {}
        self.doubled = 0

    def callback(self, path: str, body: bytes) -> None:
        """Record a callback; the fields before the event come first."""
        found = _SEQUENCE.search(body)
        if found is not None:
            sequence = int(found[1])
            self.doubled += sequence in self.callbacks
            self.callbacks[sequence] = now_ns()

    def frame(self, sequence: int) -> None:
        self.frames.setdefault(sequence, now_ns())


class Producer:
    """Posts bodies in turn over a few connections; `due` by sequence."""

    def __init__(self, job: LatencyJob) -> None:
        self.due: dict[int, int] = {}
        self.answered: dict[int, int] = {}
        self.posted = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests = [
            request_head(job.target, len(body.encode())) + body.encode() for body in job.bodies
        ]
        self._idle: list[Connection] = []
        self._under_way: dict[int, int] = {}  # by connection: when its event was due
        self._waiting: deque[int] = deque()
        self._job = job

    async def open(self) -> None:
        for _ in range(self._job.connections):
            _, opened = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self._answered, self.fail), HOST, self._job.target.port
            )
            self._idle.append(opened)

    @property
    def idle(self) -> bool:
        return bool(self._idle) and not self._waiting

    @property
    def done(self) -> bool:
        return len(self.due) == self.posted

    def post(self, due_ns: int) -> None:
        """Post as soon as a connection is free."""
        self.posted += 1
        self._waiting.append(due_ns)
        self._send()

    def fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    def _send(self) -> None:
        while self._waiting and self._idle:
            connection = self._idle.pop()
            self._under_way[id(connection)] = self._waiting.popleft()
            sent = self.posted - len(self._waiting)
            connection.send(self._requests[sent % len(self._requests)])

    def _answered(self, connection: Connection) -> None:
        found = _SEQUENCE.search(connection.answer) or re.search(
            rb'"first":\s?(\d+)', connection.answer
        )
        if found is None:
            self.fail(RequestFailed(connection.answer.decode("latin-1")))
            return
        sequence = int(found[1])
        self.due[sequence] = self._under_way.pop(id(connection))
        self.answered[sequence] = now_ns()
        self._idle.append(connection)
        self._send()


async def run(job: LatencyJob) -> dict[str, float]:
    """Return latencies if a rate is given; otherwise the rate that the hub handles while no more
    than `ahead` are in flight.
    """
    came, producer = Came(), Producer(job)
    server = await receive(job.port, came.callback)
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(lambda: Numbered(job, came), HOST, job.target.port)
    await first_of(socket.ready, socket.failed)
    await producer.open()
    cpu_s, began_ns = cpu_time_s(), now_ns()
    warm_ns = began_ns + int(job.warmup_s * 1e9)
    end_ns = warm_ns + int(job.seconds * 1e9)
    await (_paced(job, producer, end_ns) if job.rate else _flood(job, producer, came, end_ns))
    load_cpu = (cpu_time_s() - cpu_s) / (now_ns() - began_ns) * 1e9
    ended_ns = now_ns()
    await _drained(producer, came)
    server.close()
    for failed in (producer.failed, socket.failed):
        if failed.done():
            failed.result()
    first = {"first_ns": min(came.callbacks.values())} if came.callbacks else {}
    within = [at for at in came.callbacks.values() if warm_ns <= at < ended_ns]
    return {
        "all": producer.posted,
        "per_s": len(within) / (ended_ns - warm_ns) * 1e9,
        "load_cpu": load_cpu,
        "lost_callbacks": len(producer.due.keys() - came.callbacks.keys()),
        "lost_frames": len(producer.due.keys() - came.frames.keys()),
        "doubled": came.doubled,
        **first,
        **_latencies("callback", producer.due, came.callbacks, warm_ns),
        **_latencies("after_answer", producer.answered, came.callbacks, warm_ns),
        **_latencies("websocket", producer.due, came.frames, warm_ns),
    }


async def _paced(job: LatencyJob, producer: Producer, end_ns: int) -> None:
    due_ns, step_ns = now_ns(), int(1e9 / job.rate)
    while due_ns < end_ns and not producer.failed.done():
        while due_ns <= now_ns():
            producer.post(due_ns)
            due_ns += step_ns
        await asyncio.sleep(max((due_ns - now_ns()) / 1e9, 0))


async def _flood(job: LatencyJob, producer: Producer, came: Came, end_ns: int) -> None:
    while now_ns() < end_ns and not producer.failed.done():
        there = min(len(came.callbacks), len(came.frames))
        while producer.idle and producer.posted - there < job.ahead:
            producer.post(now_ns())
        await asyncio.sleep(0 if producer.posted - there < job.ahead else SLEEP_MIN_S)


async def _drained(producer: Producer, came: Came) -> None:
    """Wait until all that was posted has arrived, or far too long."""
    until_ns = now_ns() + int(DRAIN_S * 1e9)
    while now_ns() < until_ns and not producer.failed.done():
        there = min(len(came.callbacks), len(came.frames))
        if producer.done and there >= producer.posted:
            return
        await asyncio.sleep(LOOK_S)


def _latencies(
    name: str, due: dict[int, int], came: dict[int, int], since_ns: int
) -> dict[str, float]:
    took = array("q")
    for sequence, due_ns in due.items():
        if due_ns >= since_ns and sequence in came:
            took.append(max(came[sequence] - due_ns, 0))
    return {f"{name}_{part}": value for part, value in percentiles_ms(took).items()}
