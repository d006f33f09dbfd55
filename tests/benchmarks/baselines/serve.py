"""The command `python -m tests.benchmarks.baselines.serve module:app PORT`: serves a baseline with
the server options of `manage.py web`.
"""

import logging
import sys

import uvicorn

from eventhub.base import limits


def main() -> None:
    logging.getLogger("uvicorn").setLevel("WARNING")
    uvicorn.run(
        f"tests.benchmarks.baselines.{sys.argv[1]}",
        host="127.0.0.1",
        port=int(sys.argv[2]),
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        limit_concurrency=limits.CONNECTIONS_PER_PROCESS_MAX,
        timeout_graceful_shutdown=limits.GRACEFUL_S_MAX,
    )


if __name__ == "__main__":
    main()
