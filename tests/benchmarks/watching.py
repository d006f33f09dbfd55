"""The resources of processes during a measurement: memory together, and CPU."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

_SAMPLED_S = 0.5
MB = 1e6


class Took:
    """The resources of processes, sampled twice a second."""

    def __init__(self) -> None:
        self.peak = 0  # bytes of all of them at once; what is shared counts once (PSS)
        self.cpu_s: dict[int, float] = {}  # by process


@contextmanager
def watched(beside: tuple[int, ...]) -> Iterator[Took]:
    """Watch processes that start in the block, and the given ones with their children."""
    own = psutil.Process()
    others = {process.pid for process in own.children(recursive=True)}
    took, over = Took(), threading.Event()

    def watch() -> None:
        while not over.wait(_SAMPLED_S):
            found = [child for child in own.children(recursive=True) if child.pid not in others]
            found += [child for pid in beside for child in _tree(pid)]
            there = {process.pid: process for process in found}
            took.peak = max(took.peak, sum(map(_memory, there.values())))
            for pid, process in there.items():
                took.cpu_s[pid] = max(took.cpu_s.get(pid, 0.0), _cpu_s(process))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def _tree(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _memory(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0


def _cpu_s(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        used = process.cpu_times()
        return float(used.user + used.system)
    return 0.0
