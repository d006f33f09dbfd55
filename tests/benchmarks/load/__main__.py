"""The command `python -m tests.benchmarks.load < job.json`: runs one job and prints its figures as
JSON.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from tests.benchmarks.load import (
    away,
    churn,
    cursors,
    hostile,
    hostile_agents,
    http,
    idle,
    latency,
    library,
    nats_publish,
    neighbour,
    pull,
    replay,
    sessions,
    sockets,
    transports,
)
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


RUNS: dict[type[Job], Callable[[Any], Coroutine[None, None, dict[str, float]]]] = {
    HttpJob: http.run,
    NatsPublishJob: nats_publish.run,
    TransportJob: transports.run,
    IdleJob: idle.run,
    ReplayJob: replay.run,
    CursorJob: cursors.run,
    ChurnJob: churn.run,
    LatencyJob: latency.run,
    HostileJob: hostile.run,
    AgentsJob: hostile_agents.run,
    NeighbourJob: neighbour.run,
    CrowdJob: neighbour.crowd,
    SessionsJob: sessions.run,
    AwayJob: away.run,
    PullJob: pull.run,
}


def run(job: Job) -> Coroutine[None, None, dict[str, float]]:
    if isinstance(job, SocketsJob):
        return library.run(job) if job.library else sockets.run(job)
    return RUNS[type(job)](job)


if __name__ == "__main__":
    main()
