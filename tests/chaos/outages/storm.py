"""The command `python -m tests.chaos storm`: see docs/chaos.md, "No storm"."""

import argparse
import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from sparkjobs.report.plot import PlotLabels, PlotSeries
from tests.chaos import report
from tests.chaos.callbacks.receivers import Endpoint
from tests.chaos.callbacks.sink import Mood
from tests.chaos.figures import draw, per_second
from tests.chaos.hub import Crew
from tests.chaos.outages.clock import Hours, Step
from tests.chaos.outages.scene import CREW, Scene, Tenant

SICK = "sick"
FAILS = Mood(status_500=1.0)
WELL = Mood(delays=1.0, delay_s=0.04)  # 20 ms on average: a receiver that does some work
HEALTHY = ("one", "two", "three")
HOUR_S = 3_600.0
PARTS = 12  # of the hour, between which the run waits, so that the traffic lasts as long as it
WARM_S_MAX = 8.0  # of traffic before a measurement; a shorter measurement has as long before it
REQUESTS_MAX = 40  # in the first hour; the documentation says some 30
P99_RATIO_MAX = 1.2
P99_NOISE_S = 0.005  # two runs of the same load differ by this much
AT_ONCE_MAX = 32  # requests to one endpoint, by each worker
DEFAULT_DELIVERIES = 100_000


class Storm(NamedTuple):
    """The measurements. Latencies are 99th percentiles by healthy endpoint, in seconds. `stepping`:
    without the failing endpoint, while the clock makes the steps that it made during `failing`.
    """

    hour: list[float]  # the requests of the first hour, seconds since its begin
    returned_at: float
    drained_s: float
    accepted: list[float]  # per second, since the return
    without: dict[str, float]
    stepping: dict[str, float]
    failing: dict[str, float]
    draining: dict[str, float]
    most_at_once: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deliveries", type=int, default=DEFAULT_DELIVERIES)
    parser.add_argument("--seconds", type=float, default=120.0, help="of each measurement")
    parser.add_argument("--rate", type=float, default=30.0, help="events a second of each tenant")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="SVG; the drain is FILE-drain")


def tenants(rate: float) -> list[Tenant]:
    """Return one with a failing endpoint, and others with steady traffic."""
    default: dict[str, Any] = {"mood": FAILS, "retry_schedule": None}
    healthy = [
        Tenant(
            name,
            {
                f"{name}-parallel": Endpoint(),
                f"{name}-by-key": Endpoint(ordered=True, order_by="color"),
            },
            rate,
        )
        for name in HEALTHY
    ]
    return [Tenant(SICK, {SICK: Endpoint(**default)}), *healthy]


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run, judge and print. Return the exit status."""
    async with Scene.open(data, lambda _: tenants(options.rate), options.seed) as scene:
        found = await storm(scene, options.deliveries, options.seconds)
        problems = await judged(scene, found, CREW)
    show(found, options.deliveries)
    if options.plot is not None:
        plot(options.plot, found, options.deliveries)
    summary = {"seed": options.seed, "deliveries": options.deliveries, **found._asdict()}
    return report.end(options.json, summary, problems)


async def storm(scene: Scene, deliveries: int, seconds: float) -> Storm:
    """Let an endpoint with so many pending deliveries fail for an hour, and return."""
    warm_s = min(WARM_S_MAX, seconds)
    await scene.patch(SICK, SICK, {"enabled": False})
    scene.traffic.start()
    await asyncio.sleep(warm_s)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    without = began, time.monotonic()
    await scene.fill(SICK, deliveries)
    await asyncio.sleep(warm_s)
    before = len(scene.clock.steps)
    failing = await _fail(scene, seconds)
    steps = scene.clock.steps[before - 1 :]
    requests = scene.arrivals.requests.get(SICK, [])
    hour = [scene.clock.seconds_at(at) - scene.clock.seconds_at(failing[0]) for at in requests]
    returned_at, drained_at = await _return(scene)
    await asyncio.sleep(warm_s)
    stepping = await _step_again(scene, steps, failing)
    await asyncio.sleep(1.0)
    await scene.settle_traffic()
    await asyncio.sleep(1.0)
    scene.arrivals.read_on()
    accepted = [at for key, at in scene.arrivals.taken.items() if key[0] == SICK]
    return Storm(
        hour=[at for at in hour if at <= HOUR_S],
        returned_at=returned_at,
        drained_s=drained_at - returned_at,
        accepted=per_second(accepted, returned_at, int(drained_at - returned_at)),
        without=scene.latencies(*without),
        stepping=scene.latencies(*stepping),
        failing=scene.latencies(*failing),
        draining=scene.latencies(returned_at, drained_at),
        most_at_once=scene.arrivals.most_at_once.get(SICK, 0),
    )


async def _fail(scene: Scene, seconds: float) -> tuple[float, float]:
    """Enable the failing endpoint, and let an hour pass in so many seconds. Return when."""
    endpoints = [scene.places[SICK].ids[SICK]]
    began = time.monotonic()
    await scene.patch(SICK, SICK, {"enabled": True})
    for part in range(1, PARTS + 1):
        await Hours(scene.clock, endpoints).run(HOUR_S / PARTS)
        await asyncio.sleep(max(0.0, began + seconds * part / PARTS - time.monotonic()))
        scene.raise_broken()
    return began, time.monotonic()


async def _step_again(
    scene: Scene, steps: Sequence[Step], measured: tuple[float, float]
) -> tuple[float, float]:
    """Let the clock make the same steps, after the first one of these, at the same distances in
    time. A step holds tables for a moment and has all sessions plan again, which is the clock's
    doing. Return from when to when, as long as `measured`.
    """
    began = time.monotonic()
    for last, step in pairwise(steps):
        await asyncio.sleep(max(0.0, began + step.at - measured[0] - time.monotonic()))
        await asyncio.to_thread(scene.clock.advance, step.ahead_s - last.ahead_s)
    await asyncio.sleep(max(0.0, began + measured[1] - measured[0] - time.monotonic()))
    scene.raise_broken()
    return began, time.monotonic()


async def _return(scene: Scene) -> tuple[float, float]:
    """Let the endpoint answer 200, and the clock reach its next probe; wait for the last delivery.
    Return when the clock did, and when the last one was accepted.
    """
    await scene.set_mood(SICK, WELL)
    endpoints = [scene.places[SICK].ids[SICK]]
    due = await asyncio.to_thread(scene.clock.due, endpoints)
    returned_at = time.monotonic()
    await asyncio.to_thread(scene.clock.advance, (due.next_s or 0.0) + 0.001)

    async def advance() -> None:
        """Let the clock reach those that failed, which keep their schedule."""
        due = await asyncio.to_thread(scene.clock.due, endpoints)
        if not due.is_due and due.next_s is not None:
            await asyncio.to_thread(scene.clock.advance, due.next_s + 0.001)

    await scene.accepted(SICK, advance)
    return returned_at, time.monotonic()


async def judged(scene: Scene, found: Storm, crew: Crew) -> list[str]:
    """Return what is wrong."""
    problems = await scene.missing(SICK, *HEALTHY) + scene.arrivals.taken_problems()
    problems += scene.journal.problems
    if not 5 <= len(found.hour) <= REQUESTS_MAX:
        problems.append(f"{len(found.hour)} requests in the first hour of failing")
    if found.most_at_once > AT_ONCE_MAX * crew.workers:
        problems.append(f"{found.most_at_once} requests at once")
    problems += slower("while it fails", found.stepping, found.failing)
    problems += slower("while it drains", found.without, found.draining)
    return problems


def slower(when: str, without: dict[str, float], beside: dict[str, float]) -> list[str]:
    """Return the endpoints that wait longer than they may beside the failing one."""
    return [
        f"{name} waits {beside[name] * 1000:.0f} ms {when}, {seconds * 1000:.0f} ms without"
        for name, seconds in without.items()
        if beside[name] > P99_RATIO_MAX * seconds + P99_NOISE_S
    ]


def show(found: Storm, deliveries: int) -> None:
    """Print the figures."""
    print(f"{deliveries} deliveries pending: {len(found.hour)} requests in the first hour")
    print(
        f"drained within {found.drained_s:.0f} s, {max(found.accepted):.0f}/s at most,"
        f" {found.most_at_once} at once at most; the first seconds:"
        f" {', '.join(f'{count:.0f}' for count in found.accepted[:8])}"
    )
    print(
        f"{'p99 of':<20}{'stepping':>10}{'failing':>10}{'ratio':>7}"
        f"{'without':>10}{'draining':>10}{'ratio':>7}"
    )
    for name in found.without:
        pairs = ((found.stepping, found.failing), (found.without, found.draining))
        cells = [
            f"{alone[name] * 1000:>7.1f} ms{beside[name] * 1000:>7.1f} ms"
            f"{beside[name] / alone[name]:>7.2f}"
            for alone, beside in pairs
        ]
        print(f"{name:<20}{''.join(cells)}")


def plot(path: Path, found: Storm, deliveries: int) -> None:
    """Draw the requests of the hour, and the drain."""
    minutes = [at / 60 for at in found.hour]
    counts = [float(number) for number in range(1, len(minutes) + 1)]
    title = f"Requests to an endpoint that fails with {deliveries:,} pending"
    labels = PlotLabels(title, "requests", "minutes")
    draw(path, minutes, [PlotSeries("requests", counts)], labels)
    seconds = [float(second) for second in range(len(found.accepted))]
    pending = [deliveries - sum(found.accepted[: each + 1]) for each in range(len(found.accepted))]
    series = [
        PlotSeries("accepted a second", found.accepted),
        PlotSeries("pending, in hundreds", [count / 100 for count in pending]),
    ]
    drain = path.with_name(f"{path.stem}-drain{path.suffix}")
    draw(drain, seconds, series, PlotLabels("After its return", "deliveries", "seconds"))
