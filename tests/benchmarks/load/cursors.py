"""A socket that listens from a cursor again and again, each time until the first event. Plain."""

import asyncio
from array import array

from tests.benchmarks.load.http import HOST, now_ns, percentiles_ms
from tests.benchmarks.load.jobs import CursorJob, Target
from tests.benchmarks.load.transports import first_of
from tests.benchmarks.load.wire import TEXT, Socket, frame

PERIOD_S = 0.012  # two messages each: below the hub's 200 a second
_STOP = frame(TEXT, b'{"op":"stop","listener":"bench"}')


class Repeating(Socket):
    """A socket that knows when a listener's first event arrived, and when the listener ended."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, "", '{"op":"event"', self._received_events)
        self.first: asyncio.Future[None]
        self.stopped: asyncio.Future[None]
        self.first_ns = 0

    def begin(self, listen: bytes) -> int:
        """Listen; return the time."""
        loop = asyncio.get_running_loop()
        self.first, self.stopped = loop.create_future(), loop.create_future()
        began_ns = now_ns()
        self.transport.write(listen)
        return began_ns

    def _received_events(self, events: int) -> None:
        if not self.first.done():
            self.first_ns = now_ns()
            self.first.set_result(None)

    def _other(self, opcode: int, payload: bytes) -> None:
        if payload.startswith(b'{"op":"stopped"'):
            self.stopped.set_result(None)
        else:
            super()._other(opcode, payload)


async def run(job: CursorJob) -> dict[str, float]:
    """Return the time from the message that starts a listener to its first event: `p50_ms.0` of the
    first one, and so on. They take turns, so they all meet the same conditions of the machine.
    """
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(lambda: Repeating(job.target), HOST, job.target.port)
    await first_of(socket.ready, socket.failed)
    took = [(frame(TEXT, listen.encode()), array("q")) for listen in job.listens]
    warmup = max(job.samples // 10, 1)
    for sample in range(warmup + job.samples):
        for listen, samples in took:
            next_s = loop.time() + PERIOD_S
            began_ns = socket.begin(listen)
            await first_of(socket.first, socket.failed)
            if sample >= warmup:
                samples.append(socket.first_ns - began_ns)
            socket.transport.write(_STOP)
            await first_of(socket.stopped, socket.failed)
            await asyncio.sleep(max(0.0, next_s - loop.time()))
    figures = {
        f"{name}.{at}": value
        for at, (_, samples) in enumerate(took)
        for name, value in percentiles_ms(samples).items()
    }
    return {"all": (warmup + job.samples) * len(took), **figures}
