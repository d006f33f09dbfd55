"""Samples of a hub with callbacks while it runs: pending deliveries, and the memory of all
processes; and the latencies of healthy endpoints.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import LiteralString, NamedTuple

import psycopg

from sparkjobs.report.plot import PlotLabels, PlotSeries
from tests.chaos import memory
from tests.chaos.callbacks.arrivals import Arrivals
from tests.chaos.figures import draw, percentile
from tests.chaos.hub import HubUnderTest

SAMPLE_S = 2.0
MEMORY_EVERY = 10  # samples; a look at all processes takes half a second of a core
P99_RATIO_MAX = 2.0
P99_NOISE_S = 0.01
JUDGED_S = 600.0  # memory is judged in a run that lasts so long, ...
SETTLED_SHARE = 1 / 3  # ... after this part of it
HUB_MIB_PER_MINUTE_MAX = 6.0  # of all processes together
PENDING: LiteralString = """
    SELECT count(*) FILTER (WHERE endpoint_id <> ALL (%(sick)s)),
           count(*) FILTER (WHERE endpoint_id = ANY (%(sick)s))
      FROM deliveries WHERE state = 'pending'"""


class Depth(NamedTuple):
    """Pending deliveries at a time, in seconds since the beginning; `uss`: bytes of all processes,
    the last known.
    """

    at_s: float
    healthy: int
    sick: int
    uss: int


class Sampler:
    """Samples until cancelled. `sick` returns the ids of the endpoints that fail."""

    def __init__(self, hub: HubUnderTest, sick: Callable[[], Collection[int]]) -> None:
        self.depths: list[Depth] = []
        self._hub = hub
        self._sick = sick
        self._began = time.monotonic()
        self.watch = memory.Watch(hub.supervisor)

    async def run(self) -> None:
        number, uss = 0, 0
        while True:
            if number % MEMORY_EVERY == 0:
                uss = await asyncio.to_thread(self._memory)
            try:
                [(healthy, sick)] = await self._pending()
                at_s = time.monotonic() - self._began
                self.depths.append(Depth(at_s, healthy, sick, uss))
            except (psycopg.Error, OSError, TimeoutError):
                pass  # PostgreSQL is away
            number += 1
            await asyncio.sleep(SAMPLE_S)

    async def _pending(self) -> list[tuple[int, int]]:
        async with asyncio.timeout(SAMPLE_S * 5), await self._hub.connect() as connection:
            found = await connection.execute(PENDING, {"sick": list(self._sick())})
            return await found.fetchall()

    def _memory(self) -> int:
        self.watch.sample()
        return self.watch.last_total

    @property
    def mib_per_minute(self) -> float | None:
        """The growth of all processes together after the first third; None: too few samples."""
        samples = [memory.Sample(one.at_s, one.uss) for one in self.depths]
        if len(samples) < 10:
            return None
        end_s = samples[-1].at_s
        return memory.slope_of(samples, end_s * SETTLED_SHARE, end_s)

    def memory_wrong(self) -> list[str]:
        """Return whether the hub's memory grew in a long run."""
        slope = self.mib_per_minute
        if slope is None or self.depths[-1].at_s < JUDGED_S or slope < HUB_MIB_PER_MINUTE_MAX:
            return []
        return [f"all processes together grow by {slope:.1f} MiB a minute"]

    def plot(self, path: Path) -> None:
        """Draw the pending deliveries and the memory."""
        seconds = [one.at_s for one in self.depths]
        series = [
            PlotSeries("to healthy endpoints", [float(one.healthy) for one in self.depths]),
            PlotSeries("to sick endpoints", [float(one.sick) for one in self.depths]),
        ]
        draw(path, seconds, series, PlotLabels("Pending deliveries", "deliveries", "seconds"))
        used = PlotSeries("all processes", [one.uss / memory.MIB for one in self.depths])
        place = path.with_name(f"{path.stem}-memory{path.suffix}")
        draw(place, seconds, [used], PlotLabels("Private memory of the hub", "MiB", "seconds"))


class Calm(NamedTuple):
    """The 99th percentile of the seconds from the first offer of an event to its arrival, at
    healthy endpoints, without faults: before there were sick ones, and beside them.
    """

    without: dict[str, float]
    beside: dict[str, float]

    def wrong(self) -> list[str]:
        return [
            f"{name} waits {self.beside[name] * 1000:.0f} ms beside the sick,"
            f" {seconds * 1000:.0f} ms without"
            for name, seconds in self.without.items()
            if self.beside[name] > P99_RATIO_MAX * seconds + P99_NOISE_S
        ]


def p99_of(
    arrivals: Arrivals, names: Sequence[str], since: float, until: float
) -> dict[str, float]:
    """Return the 99th percentile of each endpoint, of events offered in an interval."""
    found: dict[str, list[float]] = {name: [] for name in names}
    for landing in arrivals.landings:
        if landing.endpoint in found and since <= landing.tried_at < until:
            found[landing.endpoint].append(landing.at - landing.tried_at)
    return {name: percentile(seconds, 0.99) for name, seconds in found.items()}
