"""`python -m tests.benchmarks.load < job.json`: run one job, print its figures as JSON."""

import asyncio
import gc
import json
import sys
from collections.abc import Coroutine

import uvloop

from tests.benchmarks.load import (
    churn,
    cursors,
    doors,
    hostile,
    http,
    idle,
    latency,
    library,
    replay,
    sockets,
)
from tests.benchmarks.load.jobs import (
    KINDS,
    ChurnJob,
    CursorJob,
    DoorJob,
    HostileJob,
    HttpJob,
    IdleJob,
    Job,
    LatencyJob,
    ReplayJob,
    Target,
)


def main() -> None:
    kind, fields = json.load(sys.stdin)
    fields["target"] = Target(*fields["target"])
    job = KINDS[kind](**fields)
    gc.disable()  # a short life, and nothing made per request but bytes
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        json.dump(runner.run(run(job)), sys.stdout)


def run(job: Job) -> Coroutine[None, None, dict[str, float]]:
    match job:
        case HttpJob():
            return http.run(job)
        case DoorJob():
            return doors.run(job)
        case IdleJob():
            return idle.run(job)
        case ReplayJob():
            return replay.run(job)
        case CursorJob():
            return cursors.run(job)
        case ChurnJob():
            return churn.run(job)
        case LatencyJob():
            return latency.run(job)
        case HostileJob():
            return hostile.run(job)
    return library.run(job) if job.library else sockets.run(job)


if __name__ == "__main__":
    main()
