"""The command `python -m tests.benchmarks.inprocess`: Log.append without HTTP, by emitters that
wait for each reply; prints figures as JSON. It runs in a process of its own, like a web process.
"""

import asyncio
import gc
import json
import sys
from array import array
from typing import NamedTuple

import uvloop

from eventhub.base import logs
from eventhub.base.env import read_env
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.log import Log
from tests.benchmarks.events import stored
from tests.benchmarks.load.http import cpu_time_s, now_ns, percentiles_ms

MASK = 1 << 63


class Work(NamedTuple):
    """The work: `emitters` append `events` at once each, repeatedly."""

    stream_id: int
    emitters: int
    events: int
    seconds: float
    warmup_s: float


async def run(work: Work) -> dict[str, float]:
    env = read_env()
    took = array("q")
    request = [Draft(work.stream_id, MASK, stored())] * work.events
    began_ns = now_ns() + int(work.warmup_s * 1e9)
    ended_ns = began_ns + int(work.seconds * 1e9)
    async with (
        Log.open(database_url=env.database_url, direct_url=env.database_direct_url) as log,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(work.emitters):
            group.create_task(_emit(log, request, took, (began_ns, ended_ns)))
        await asyncio.sleep(work.warmup_s)
        cpu_s = cpu_time_s()
        await asyncio.sleep(work.seconds)
        cpu_s = cpu_time_s() - cpu_s
    events = len(took) * work.events
    return {
        "per_s": events / work.seconds,
        "cpu": cpu_s / work.seconds,
        "cpu_us": cpu_s / max(events, 1) * 1e6,
        **percentiles_ms(took),
    }


async def _emit(log: Log, request: list[Draft], took: "array[int]", span: tuple[int, int]) -> None:
    """Append until the span is over; replies within it count."""
    began_ns, ended_ns = span
    now = now_ns()
    while now < ended_ns:
        asked_ns = now
        await log.append(request)
        now = now_ns()
        if began_ns <= now < ended_ns:
            took.append(now - asked_ns)


def main() -> None:
    logs.configure("text", "warning")  # to stderr: standard output is for the figures
    work = Work(*json.loads(sys.argv[1]))
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(work))))


if __name__ == "__main__":
    main()
