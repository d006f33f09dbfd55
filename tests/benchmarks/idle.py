"""`idle`: the share of a core that a whole hub takes while nothing is requested. Plain."""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

import psutil

from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World
from tests.chaos.hub import Crew, HubUnderTest

SHARE_MAX = 1.0  # per cent of a core
CREW = Crew(web=2, forwarders=2, workers=2)  # what `manage.py up` runs


def cases(world: World, pace: Pace) -> list[Case]:
    return [
        Case(
            name="idle_hub",
            unit="%",
            product=_idle(pace),
            baselines={"allowed": lambda: Reading(SHARE_MAX)},
            floor=1.0,
            lower_is_better=True,
        )
    ]


def _idle(pace: Pace) -> Measure:
    """Measure all processes together, those that were started and ended meanwhile included."""
    seconds = 10 * pace.seconds

    def measure() -> Reading:
        data = Path(tempfile.mkdtemp(prefix="eventhub-idle-"))
        hub = HubUnderTest(data, CREW)
        try:
            asyncio.run(hub.ready())
            # it rests some seconds after its start; autovacuum analyses its new tables within 70
            time.sleep(min(2.5 * seconds, 100.0))
            before, began_s = _used_ms(hub.supervisor), time.monotonic()
            time.sleep(seconds)
            after, passed_s = _used_ms(hub.supervisor), time.monotonic() - began_s
        finally:
            hub.stop()
            shutil.rmtree(data, ignore_errors=True)
        parts = {name: (ms - before.get(name, 0.0)) / passed_s / 10 for name, ms in after.items()}
        return Reading(sum(parts.values()), {f"{name}_%": part for name, part in parts.items()})

    return measure


def _used_ms(supervisor: int) -> dict[str, float]:
    """Return the CPU time of a hub's processes, by kind; exact, where `times` counts ticks. The
    time of ended processes is counted by their parents.
    """
    root = psutil.Process(supervisor)
    used: dict[str, float] = {}
    for process in (root, *root.children(recursive=True)):
        try:
            name = _name(process)
            threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
            ran_ms = sum(int(file.read_text().split()[0]) / 1e6 for file in threads)
            ended = process.cpu_times()
        except (OSError, psutil.Error):
            continue
        ended_ms = 1_000 * (ended.children_user + ended.children_system)
        used[name] = used.get(name, 0.0) + ran_ms + ended_ms
    return used


def _name(process: psutil.Process) -> str:
    words = process.cmdline()
    known = ("web", "forward", "worker", "beat")
    for word in known:
        if word in words:
            return word
    name = process.name()
    return name if name in ("postgres", "redis-server") else "supervisor"
