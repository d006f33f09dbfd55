"""Events at a constant rate in batches, while registrations are created, changed and deleted at
another. Plain.

Nothing is judged here: everything sent, answered and received goes into a file.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import orjson

from tests.benchmarks.hub import settled
from tests.benchmarks.load.bulk import Bulk
from tests.benchmarks.load.http import HOST, RequestFailed, cpu_time_s, now_ns
from tests.benchmarks.load.jobs import ChurnJob
from tests.benchmarks.load.receiver import receive

TICK_S = 0.1
LIFE_TICKS = 10  # from a registration's creation to its change, and from there to its end
IN_FLIGHT = 24
SETTLE_S = 240.0
SETTLE_LOOK_S = 0.1


class Run:
    """The state of one job."""

    def __init__(self, job: ChurnJob) -> None:
        self._job = job
        self.batches: list[
            tuple[int, int, int, int, int]
        ] = []  # which, first, last, sent, acknowledged
        self.calls: list[tuple[str, int, list[int]]] = []
        self.ops: list[tuple[str, str]] = []  # by line: what, and of which key
        self.bulk = Bulk(job.target)
        self.emitting = True
        self.steady = 0  # lines that were sent at the rate; the others end what is left

    async def emit(self) -> None:
        """Send batches in turn until stopped; late ones are sent at once."""
        slots, due_s, at = asyncio.Semaphore(IN_FLIGHT), time.monotonic(), 0
        url = f"http://{HOST}:{self._job.target.port}{self._job.target.path}"
        async with (
            aiohttp.ClientSession(headers=self._job.target.headers) as http,
            asyncio.TaskGroup() as group,
        ):

            async def send(which: int) -> None:
                sent_ns = now_ns()
                async with http.post(url, data=self._job.bodies[which].encode()) as answer:
                    found = orjson.loads(await answer.read())
                slots.release()
                if answer.status != 200:
                    raise RequestFailed(f"an emit was answered {answer.status}: {found}")
                [run] = found["ranges"]
                self.batches.append((which, run["first"], run["last"], sent_ns, now_ns()))

            while self.emitting:
                await slots.acquire()
                group.create_task(send(at % len(self._job.bodies)))
                at += 1
                due_s += self._job.batch / self._job.rate
                await asyncio.sleep(due_s - time.monotonic())

    async def change(self) -> None:
        """Send lines, tick after tick: a third creates, a third changes and a third deletes; then
        delete everything that is left.
        """
        await self.bulk.open()
        hearing = asyncio.create_task(self.bulk.hear())
        made: deque[list[str]] = deque()
        changed: deque[list[str]] = deque()
        names, due_s = self._names(), time.monotonic()
        until_s = due_s + self._job.seconds
        each = round(self._job.changes * TICK_S / 3)
        while (now_s := time.monotonic()) < until_s and not hearing.done():
            made.append([next(names) for _ in range(each)])
            lines = [self._line("create", name) for name in made[-1]]
            if len(made) > LIFE_TICKS:
                changed.append(made.popleft())
                lines += [self._line("change", name) for name in changed[-1]]
            if len(changed) > LIFE_TICKS:
                lines += [self._line("end", name) for name in changed.popleft()]
            await self.bulk.send(lines)
            due_s += TICK_S * len(lines) / (3 * each)  # the first ticks have fewer lines
            await asyncio.sleep(due_s - now_s)
        self.steady = len(self.ops)
        for left in (*made, *changed):
            await self.bulk.send([self._line("end", name) for name in left])
        await self.bulk.end()
        await hearing

    def changes_per_s(self) -> float:
        """Return the rate of the steady changes, until the last was acknowledged."""
        _, began_ns = self.bulk.sent[0]
        ended_ns = next(at for through, at in self.bulk.acknowledged if through >= self.steady)
        return self.steady / (ended_ns - began_ns) * 1e9

    def _names(self) -> Iterator[str]:
        number = 0
        while True:
            yield f"{self._job.prefix}{number}"
            number += 1

    def _line(self, op: str, key: str) -> bytes:
        """Return a line; its filter follows from its number."""
        self.ops.append((op, key))
        job, number = self._job, int(key.removeprefix(self._job.prefix))
        asked: dict[str, object] = {"op": op, "key": key}
        if op == "create":
            asked |= {"streams": [job.stream], "endpoint": job.endpoints[number % 2]}
        if op != "end":
            other = 1 + number // job.hot % (job.hot - 1) if op == "change" else 0
            asked["attributes"] = {"device": f"hot-{(number + other) % job.hot}"}
        return orjson.dumps(asked)

    def received(self, path: str, body: bytes) -> None:
        acknowledged = orjson.loads(body)
        self.calls.append((path, acknowledged["sequence"], acknowledged["registrations"]))

    def written(self) -> bytes:
        bulk = {
            "sent": self.bulk.sent,
            "acknowledged": self.bulk.acknowledged,
            "refused": self.bulk.refused,
        }
        seen = {"batches": self.batches, "calls": self.calls, "ops": self.ops, "bulk": bulk}
        return orjson.dumps(seen)


async def run(job: ChurnJob) -> dict[str, float]:
    """Return rates, and how busy this process was; the events of the run are in the job's file."""
    made = Run(job)
    server = await receive(job.port, made.received)
    emitting = asyncio.create_task(made.emit())
    await asyncio.wait([emitting], timeout=job.warmup_s)
    began_ns, began_s, cpu_s = now_ns(), time.monotonic(), cpu_time_s()
    await made.change()
    seconds = (now_ns() - began_ns) / 1e9
    load_cpu = (cpu_time_s() - cpu_s) / seconds
    emitted = sum(last - first + 1 for _, first, last, sent, _ in made.batches if sent >= began_ns)
    made.emitting = False
    await emitting
    await _settled(lambda: settled(job.database, job.stream_id))
    server.close()
    await asyncio.to_thread(Path(job.file).write_bytes, made.written())
    return {
        "all": len(made.batches),
        "began_s": began_s,
        "ended_s": began_s + seconds,
        "emitted_per_s": emitted / seconds,
        "changes_per_s": made.changes_per_s(),
        "load_cpu": load_cpu,
    }


async def _settled(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + SETTLE_S
    while not await asyncio.to_thread(true):
        if time.monotonic() > until_s:
            raise RequestFailed("not everything was matched and delivered")
        await asyncio.sleep(SETTLE_LOOK_S)
