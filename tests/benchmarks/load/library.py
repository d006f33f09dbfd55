"""One socket and one producer through an ordinary client library (aiohttp): the view of a caller in
Python, where `sockets.py` measures the server alone.
"""

from array import array

import aiohttp

from tests.benchmarks.load.http import HOST, now_ns, percentiles_ms
from tests.benchmarks.load.jobs import SocketsJob
from tests.benchmarks.load.wire import PATH

TIMEOUT_S = 10.0


async def run(job: SocketsJob) -> dict[str, float]:
    """Return the latency from just before a POST to its parsed event frame; one event at a time."""
    base = f"http://{HOST}:{job.target.port}"
    took = array("q")
    warmup = max(job.samples // 10, 1)
    async with (
        aiohttp.ClientSession(headers=job.target.headers) as http,
        http.ws_connect(base + PATH) as socket,
    ):
        if job.listen:
            await socket.send_str(job.listen)
            while (await socket.receive_json(timeout=TIMEOUT_S))["op"] != "listening":
                pass
        for sample in range(warmup + job.samples):
            began_ns = now_ns()
            async with http.post(base + job.target.path, data=job.body.encode()) as answer:
                await answer.read()
            if answer.status != 200:
                raise RuntimeError(f"answered {answer.status}")
            frame = await socket.receive_json(timeout=TIMEOUT_S)
            while job.listen and frame["op"] != "event":
                frame = await socket.receive_json(timeout=TIMEOUT_S)
            if sample >= warmup:
                took.append(now_ns() - began_ns)
    return {"all": warmup + job.samples, **percentiles_ms(took)}
