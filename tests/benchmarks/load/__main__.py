"""The command `python -m tests.benchmarks.load < job.json`: runs one job and prints its figures as
JSON.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Coroutine
from importlib import import_module

import uvloop

from tests.benchmarks.load.jobs import (
    KINDS,
    AgentsJob,
    AwayJob,
    ChurnJob,
    CrowdJob,
    CursorJob,
    HostileJob,
    HttpJob,
    IdleJob,
    Job,
    LatencyJob,
    NatsLatencyJob,
    NatsPublishJob,
    NeighbourJob,
    PullJob,
    ReplayJob,
    SessionsJob,
    SocketsJob,
    Target,
    TransportJob,
)


def main() -> None:
    kind, fields = json.load(sys.stdin)
    fields["target"] = Target(*fields["target"])
    job = KINDS[kind](**fields)
    gc.disable()  # a short life, and nothing made per request but bytes
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        json.dump(runner.run(run(job)), sys.stdout)


# where each kind is run: only that module is loaded, for a run of all starts dozens of processes
RUNS: dict[type[Job], str] = {
    HttpJob: "http.run",
    NatsPublishJob: "nats_publish.run",
    NatsLatencyJob: "nats_latency.run",
    TransportJob: "transports.run",
    IdleJob: "idle.run",
    ReplayJob: "replay.run",
    CursorJob: "cursors.run",
    ChurnJob: "churn.run",
    LatencyJob: "latency.run",
    HostileJob: "hostile.run",
    AgentsJob: "hostile_agents.run",
    NeighbourJob: "neighbour.run",
    CrowdJob: "neighbour.crowd",
    SessionsJob: "sessions.run",
    AwayJob: "away.run",
    PullJob: "pull.run",
    SocketsJob: "sockets.run",
}


def run(job: Job) -> Coroutine[None, None, dict[str, float]]:
    name = RUNS[type(job)]
    if isinstance(job, SocketsJob) and job.library:
        name = "library.run"
    module, _, function = name.partition(".")
    found: Coroutine[None, None, dict[str, float]]
    found = getattr(import_module(f"tests.benchmarks.load.{module}"), function)(job)
    return found


if __name__ == "__main__":
    main()
