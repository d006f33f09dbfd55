"""Measures the private memory of every process of a hub, and how fast it grows."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil

from eventhub.base.forking import SERVER
from tests.integration.up_process import guarded_name

MIB = 1024 * 1024
BARS = "▁▂▃▄▅▆▇█"
COVERED_MIN = 0.9  # a process must live through so much of the window to be judged


class Sample(NamedTuple):
    """Bytes at a time in seconds since the start."""

    at_s: float
    uss: int


class Growth(NamedTuple):
    """The growth of one process. `slope`: MiB per minute; None: it was too short-lived."""

    name: str
    samples: list[Sample]
    slope: float | None


class Watch:
    """Samples by process; call `sample` every few seconds."""

    def __init__(self, supervisor: int) -> None:
        self._supervisor = psutil.Process(supervisor)
        self._began = time.monotonic()
        self.looks_s: list[float] = []  # when, since the beginning
        self.last_total = 0  # bytes of all processes at the last look
        self._names: dict[int, str] = {}
        self._samples: dict[int, list[Sample]] = {}

    def sample(self) -> None:
        """Sample all processes."""
        at_s = time.monotonic() - self._began
        self.looks_s.append(at_s)
        self.last_total = 0
        self._look(self._supervisor, "supervisor", at_s)
        for process in self._supervisor.children(recursive=True):
            with suppress(psutil.Error):  # it is just starting, or ends
                if str(SERVER) in process.cmdline():
                    self._look(process, "fork server", at_s)
                elif part := guarded_name(process):
                    self._look(process, f"guardian of {part}", at_s)
                    for below in process.children(recursive=True):
                        self._look(below, part, at_s)

    def _look(self, process: psutil.Process, part: str, at_s: float) -> None:
        with suppress(psutil.Error):
            uss = private_bytes(process, shares=part == "postgres")
            self._names.setdefault(process.pid, _name(process, part))
            self._samples.setdefault(process.pid, []).append(Sample(at_s, uss))
            self.last_total += uss

    def growth(self, after_s: float) -> list[Growth]:
        """Return the growth of each process since then, the fastest first."""
        looks = [at_s for at_s in self.looks_s if at_s >= after_s]
        found = [
            Growth(self._names[pid], samples, slope_of(samples, looks[0], looks[-1]))
            for pid, samples in self._samples.items()
        ]
        return sorted(found, key=lambda growth: -(growth.slope or 0))


def private_bytes(process: psutil.Process, *, shares: bool) -> int:
    """Return the unique set size. A page of shared memory (PostgreSQL's buffers) that only this
    process has touched is not counted: it belongs to the server, and is bounded.
    """
    uss = int(process.memory_full_info().uss)
    if not shares:
        return uss
    maps = process.memory_maps(grouped=False)
    shared = [area for area in maps if area.perms.endswith("s")]
    return uss - sum(area.private_clean + area.private_dirty for area in shared)


def _name(process: psutil.Process, part: str) -> str:
    if part != "postgres":
        return f"{part} [{process.pid}]"
    words = " ".join(process.cmdline()).split()
    is_child = words[:1] == ["postgres:"]
    return f"postgres {' '.join(words[1:3]) if is_child else 'postmaster'} [{process.pid}]"


def slope_of(samples: Sequence[Sample], after_s: float, until_s: float) -> float | None:
    """Return the slope of a linear regression over the samples since then, in MiB per minute."""
    window = [sample for sample in samples if sample.at_s >= after_s]
    if len(window) < 3 or window[-1].at_s - window[0].at_s < COVERED_MIN * (until_s - after_s):
        return None
    mean_at = sum(sample.at_s for sample in window) / len(window)
    mean_uss = sum(sample.uss for sample in window) / len(window)
    above = sum((s.at_s - mean_at) * (s.uss - mean_uss) for s in window)
    below = sum((s.at_s - mean_at) ** 2 for s in window)
    return above / below * 60 / MIB


def plot(growth: Growth, width: int = 50) -> str:
    """Return a line of text: slope, smallest and largest size, and the curve."""
    sizes = [sample.uss for sample in growth.samples]
    low, high = min(sizes), max(sizes)
    step = max(1, len(sizes) // width)
    span = max(high - low, MIB)  # so that noise looks flat
    curve = "".join(
        BARS[min(int((size - low) / span * len(BARS)), len(BARS) - 1)] for size in sizes[::step]
    )
    slope = "      " if growth.slope is None else f"{growth.slope:+6.2f}"
    return f"{slope} MiB/min {low / MIB:>6.1f} to {high / MIB:>6.1f} MiB  {curve}  {growth.name}"
