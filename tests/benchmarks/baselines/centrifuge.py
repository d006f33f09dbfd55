"""The command `python -m tests.benchmarks.baselines.centrifuge PORT`: becomes a server of
Centrifugo's library, the program that EVENTHUB_BENCH_CENTRIFUGE names (centrifuge.go).
Plain.
"""

import os
import sys

CONNECT = '{"id":1,"connect":{}}'  # what a client sends first
MARK = '{"push":'  # how a frame of an event begins


def available() -> bool:
    """Return whether there is such a program."""
    return "EVENTHUB_BENCH_CENTRIFUGE" in os.environ


def main() -> None:
    program = os.environ["EVENTHUB_BENCH_CENTRIFUGE"]
    os.execv(program, [program, sys.argv[-1]])


if __name__ == "__main__":
    main()
