"""`python -m tests.benchmarks.load < job.json`: run one job, print its figures as JSON."""

import asyncio
import gc
import json
import sys

import uvloop

from tests.benchmarks.load import http, library, sockets
from tests.benchmarks.load.jobs import HttpJob, SocketsJob, Target


def main() -> None:
    kind, fields = json.load(sys.stdin)
    fields["target"] = Target(*fields["target"])
    gc.disable()  # a short life, and nothing made per request but bytes
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if kind == "http":
            figures = runner.run(http.run(HttpJob(**fields)))
        else:
            job = SocketsJob(**fields)
            figures = runner.run(library.run(job) if job.library else sockets.run(job))
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
