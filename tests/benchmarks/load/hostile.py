"""Hostile requests to the routes that take filters, one after the other. Plain."""

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from tests.benchmarks.load import latency
from tests.benchmarks.load.http import HOST, RequestFailed, now_ns
from tests.benchmarks.load.jobs import Attack, HostileJob, LatencyJob, Target
from tests.benchmarks.load.wire import PATH

PATHS = {
    "register": "/v1/registrations",
    "check": "/v1/filters/check",
    "dry-run": "/v1/filters/dry-run",
}
TOO_BIG = "closed 1009"  # what a websocket says of a message that is too long
CUT = "closed 1006"  # the same: what was not read yet resets the connection, and 1009 may be lost
TIMEOUT_S = 30.0


class Attacker:
    """An attacker with one connection and one websocket. `seen`: route, name, milliseconds,
    code.
    """

    def __init__(self, job: HostileJob, http: aiohttp.ClientSession) -> None:
        self.seen: list[tuple[str, str, float, str]] = []
        self._job = job
        self._http = http
        self._base = f"http://{HOST}:{job.target.port}"
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def once(self) -> None:
        """Send every request once."""
        due_s = time.monotonic()
        for attack in self._job.attacks:
            await asyncio.sleep(due_s - time.monotonic())
            due_s = max(due_s, time.monotonic() - 1.0) + 1 / self._job.per_s
            if attack.route == "listen" and (self._socket is None or self._socket.closed):
                self._socket = await self._http.ws_connect(self._base + PATH, max_msg_size=0)
            began_ns = now_ns()
            send = self._answered if attack.route == "listen" else self._asked
            code = await send(attack)
            self.seen.append((attack.route, attack.name, (now_ns() - began_ns) / 1e6, code))
            if code not in attack.codes:
                raise RequestFailed(f"{attack.route} answered {attack.name} with {code}")

    async def _asked(self, attack: Attack) -> str:
        async with self._http.post(self._base + PATHS[attack.route], data=attack.body) as answer:
            found: dict[str, Any] = orjson.loads(await answer.read())
        problem = found if answer.status >= 400 else found.get("mistake") or {}
        return str(problem.get("code", "accepted"))

    async def _answered(self, attack: Attack) -> str:
        assert self._socket is not None
        await self._socket.send_str(attack.body)
        while True:
            message = await self._socket.receive(timeout=TIMEOUT_S)
            if message.type != aiohttp.WSMsgType.TEXT:
                return f"closed {self._socket.close_code}"
            found = orjson.loads(message.data)
            if found["op"] in ("error", "listening"):
                return str(found.get("code", "accepted"))


async def run(job: HostileJob) -> dict[str, float]:
    """Return the figures of other clients while the attack continues until they have been
    measured.
    """
    others = LatencyJob(*job.others)
    others = others._replace(target=Target(*others.target))
    attacks = [Attack(*attack) for attack in job.attacks]
    headers = {"Authorization": f"Bearer {job.key}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as http:
        attacker = Attacker(job._replace(attacks=attacks), http)
        measuring = asyncio.create_task(latency.run(others))
        while not measuring.done() or not attacker.seen:
            await attacker.once()
        await asyncio.to_thread(Path(job.file).write_bytes, orjson.dumps(attacker.seen))
        return await measuring
