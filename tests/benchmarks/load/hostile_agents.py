"""Events of one client whose outputs, frames and answers are timed, while events of another start
its agents. Plain.
"""

import asyncio
import re
from array import array
from http import HTTPStatus
from typing import Any

import aiohttp
import orjson

from tests.benchmarks.load.http import HOST, RequestFailed, cpu_time_s, now_ns, percentiles_ms
from tests.benchmarks.load.jobs import AgentsJob, Target
from tests.benchmarks.load.wire import PATH

_OF_OUTPUT = re.compile(r'"bindings":.*?"sequence":\s?(\d+)')
_OF_EVENT = re.compile(r'"sequence":\s?(\d+)')
_OF_ANSWER = re.compile(r'"(?:sequence|first)":\s?(\d+)')
DRAIN_S = 20.0
LOOK_S = 0.01


class Times:
    """When each event was due, answered, received, and when its output was, by sequence."""

    def __init__(self) -> None:
        self.due: dict[int, int] = {}
        self.answered: dict[int, int] = {}
        self.frames: dict[int, int] = {}
        self.outputs: dict[int, int] = {}
        self.doubled = 0

    def output(self, text: str) -> None:
        found = _OF_OUTPUT.search(text)
        if found is not None:
            self.doubled += int(found[1]) in self.outputs
            self.outputs[int(found[1])] = now_ns()

    def frame(self, text: str) -> None:
        found = _OF_EVENT.search(text)
        if found is not None:
            self.frames[int(found[1])] = now_ns()


class _Client:
    """One client's connections."""

    def __init__(self, job: AgentsJob, http: aiohttp.ClientSession) -> None:
        self._base = f"http://{HOST}:{job.target.port}"
        self._http = http

    async def post(self, path: str, body: bytes) -> int:
        async with self._http.post(self._base + path, data=body) as answer:
            found = _OF_ANSWER.search(await answer.text())
            if found is None:
                raise RequestFailed(await answer.text())
            return int(found[1])

    async def patch(self, path: str, body: bytes) -> None:
        async with self._http.patch(self._base + path, data=body) as answer:
            if answer.status != HTTPStatus.OK:
                raise RequestFailed(await answer.text())

    async def listen(self, message: dict[str, Any], take: Any, ready: asyncio.Event) -> None:
        async with self._http.ws_connect(self._base + PATH) as socket:
            await socket.send_str(orjson.dumps(message).decode())
            async for received in socket:
                if '"op":"listening"' in received.data:
                    ready.set()
                elif received.data.startswith('{"op":"event"'):
                    take(received.data)
                elif '"op":"error"' in received.data:
                    raise RequestFailed(received.data)


async def run(job: AgentsJob) -> dict[str, float]:
    """Return the latencies of the one client, and how many events the other one emitted."""
    times = Times()
    headers = {**Target(*job.target).headers}
    other = {**headers, "authorization": f"Bearer {job.other_key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as own,
        aiohttp.ClientSession(headers=other) as foreign,
    ):
        client, attacker = _Client(job, own), _Client(job, foreign)
        begun = [asyncio.Event(), asyncio.Event()]
        listening = [
            asyncio.create_task(client.listen(job.outputs, times.output, begun[0])),
            asyncio.create_task(client.listen(job.events, times.frame, begun[1])),
        ]
        waiting = [asyncio.create_task(one.wait()) for one in begun]
        await asyncio.wait([*listening, *waiting], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*waiting)
        attacking = [
            asyncio.create_task(_emit_attacks(job, attacker)),
            asyncio.create_task(_resume(job, attacker)),
        ]
        cpu_s, began_ns = cpu_time_s(), now_ns()
        warm_ns = began_ns + int(job.warmup_s * 1e9)
        await _paced(job, client, times, warm_ns + int(job.seconds * 1e9))
        load_cpu = (cpu_time_s() - cpu_s) / (now_ns() - began_ns) * 1e9
        for _ in range(int(DRAIN_S / LOOK_S)):
            if len(times.outputs) >= len(times.due):
                break
            await asyncio.sleep(LOOK_S)
        for task in attacking:
            task.cancel()
        ended = await asyncio.gather(*attacking, return_exceptions=True)
        for one in (*ended, *(task.exception() for task in listening if task.done())):
            if isinstance(one, Exception):
                raise one
        for task in listening:
            task.cancel()
    return {
        "all": len(times.due),
        "load_cpu": load_cpu,
        "lost": len(times.due.keys() - times.outputs.keys()),
        "doubled": times.doubled,
        **_latencies("output", times.due, times.outputs, warm_ns),
        **_latencies("frame", times.due, times.frames, warm_ns),
        **_latencies("answer", times.due, times.answered, warm_ns),
    }


async def _paced(job: AgentsJob, client: _Client, times: Times, end_ns: int) -> None:
    due_ns, step_ns, number = now_ns(), int(1e9 / job.per_s), 0
    posting: set[asyncio.Task[None]] = set()

    async def one(due: int, body: bytes) -> None:
        sequence = await client.post(job.target.path, body)
        times.due[sequence], times.answered[sequence] = due, now_ns()

    while due_ns < end_ns:
        while due_ns <= now_ns():
            body = job.body.replace("NUMBER", str(number % job.patterns)).encode()
            posting.add(asyncio.create_task(one(due_ns, body)))
            due_ns, number = due_ns + step_ns, number + 1
        await asyncio.sleep(max((due_ns - now_ns()) / 1e9, 0))
        posting = {task for task in posting if not task.done() or task.exception()}
        for task in posting:
            if task.done():
                task.result()
    await asyncio.gather(*posting)


async def _emit_attacks(job: AgentsJob, attacker: _Client) -> None:
    while job.attacks_per_s:
        await attacker.post(job.attacked, job.attack.encode())
        await asyncio.sleep(1 / job.attacks_per_s)


async def _resume(job: AgentsJob, attacker: _Client) -> None:
    """Suspend agents and resume them, one after the other: each resumes as a new version."""
    while job.resumed_per_s:
        for pattern in job.resumed:
            for suspended in (b"true", b"false"):
                await attacker.patch(f"/v1/patterns/{pattern}", b'{"suspended": %b}' % suspended)
                await asyncio.sleep(1 / job.resumed_per_s)


def _latencies(
    name: str, due: dict[int, int], came: dict[int, int], since_ns: int
) -> dict[str, float]:
    took = array("q")
    for sequence, due_ns in due.items():
        if due_ns >= since_ns and sequence in came:
            took.append(max(came[sequence] - due_ns, 0))
    return {f"{name}_{part}": value for part, value in percentiles_ms(took).items()}
