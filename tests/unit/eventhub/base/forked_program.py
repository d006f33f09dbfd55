"""What test_forking has forked: a program that reports what it sees."""

import gc
import json
import os
import signal
import sys
import threading
from pathlib import Path

from tests.unit.eventhub.base import forked_module


def main(action: str, *words: str) -> None:
    match action:
        case "report":
            print(json.dumps(report()))
        case "exit":
            sys.exit(json.loads(words[0]))
        case "raise":
            raise RuntimeError("a reason")
        case "die":
            os.kill(os.getpid(), int(words[0]))
        case "read":
            print(os.read(int(words[0]), 100).decode())
        case "wait":
            Path(words[0]).write_text(str(os.getpid()))
            signal.pause()


def report() -> dict[str, object]:
    return {
        "adopted": forked_module.adopted,
        "argv": sys.argv[1:],
        "environment": dict(os.environ),
        "frozen": gc.get_freeze_count() > 0,
        "collects": gc.isenabled(),
        "group": os.getpgid(0) == os.getpid(),
        "input": sys.stdin.read(),
        "loaded_by_parent": os.getpid() != forked_module.LOADED_BY,
        "descriptors": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()),
        "child_signals": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "threads": threading.active_count(),
        "command_line": Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").decode().split("\0"),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
