"""A hub with the real PostgreSQL and Redis and a tiny web process: it tests supervision alone.

`up_stand_in.py up --data … --port …` is the supervisor; it starts `up_stand_in_web.py` for its
processes.
"""

import argparse
import os
import sys
from pathlib import Path

from eventhub.supervisor.hub import UpOptions, run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["up"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--restarts", type=int)
    given, _ = parser.parse_known_args()
    options = UpOptions(
        given.data,
        port=given.port,
        forwarders=0,
        connectors=0,
        workers=0,
        restarts_max=given.restarts,
        manage=Path(__file__).with_name("up_stand_in_web.py"),
        preload=os.environ.get("STAND_IN_PRELOAD", ""),
    )
    sys.exit(run(options))


if __name__ == "__main__":
    main()
