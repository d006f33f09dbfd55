"""The command `python -m tests.chaos backlog`: see docs/chaos.md, "A large backlog"."""

import argparse
import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from sparkjobs.report.plot import PlotLabels, PlotSeries
from tests.chaos import report
from tests.chaos.callbacks.receivers import Endpoint
from tests.chaos.callbacks.sink import Mood
from tests.chaos.figures import draw, per_second
from tests.chaos.outages.retirement import TABLES, retire, sizes_of
from tests.chaos.outages.scene import Scene, Tenant
from tests.chaos.outages.timed import DELIVERY, Sides, Timed

# with the backlog; the one whose emits and deliveries are timed; without endpoints
BULK, QUIET, FILLER = "bulk", "quiet", "filler"
FAILS, WELL = Mood(status_500=1.0), Mood()
ENDPOINTS = 20  # half of them ordered by a key
# so that a partition has 512 MiB, and a client's backlog of 1,000,000 fits: 700 MiB with its events
QUOTA_BYTES = 8 * 1024**3
QUOTA_BYTES_MIN = 64 * 1024**2  # of a smaller run, whose partitions are smaller by as much
DELIVERIES = 1_000_000
IDLE, FAILING, DRAINING = "idle", "failing", "draining"
P99_RATIO_MAX = 5.0
P99_IDLE_S_MIN = 0.005  # a shorter idle value says nothing: one pause of the scheduler is longer
SIZE_RATIO_MAX = 1.2
SIZE_NOISE_BYTES = 1024 * 1024  # some pages of each table and index


class Plan(NamedTuple):
    """The course of a run. `events`: to each endpoint; `seconds`: of each measurement but that of
    the drain; `quota_bytes`: of the hub.
    """

    events: int
    seconds: float
    quota_bytes: int


class Backlog(NamedTuple):
    """The measurements. `p99`: seconds by kind of request, by phase. `sizes`: bytes by table, by
    moment.
    """

    deliveries: int
    filled_s: float
    drained_s: float
    accepted: list[float]  # per second
    p99: dict[str, dict[str, float]]
    sizes: dict[str, dict[str, int]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deliveries", type=int, default=DELIVERIES)
    parser.add_argument("--seconds", type=float, default=120.0, help="of requests before the drain")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="SVG")


def tenants() -> list[Tenant]:
    """Return the one with the backlog, one whose requests are timed, and one that only emits."""
    endpoints = {
        f"bulk-{number}": Endpoint(ordered=True, order_by="size") if number % 2 else Endpoint()
        for number in range(ENDPOINTS)
    }
    quiet = {
        "quiet-parallel": Endpoint(),
        "quiet-by-key": Endpoint(ordered=True, order_by="color"),
    }
    return [Tenant(BULK, endpoints), Tenant(QUIET, quiet), Tenant(FILLER, {})]


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run, judge and print. Return the exit status."""
    events = options.deliveries // ENDPOINTS
    quota = max(QUOTA_BYTES * options.deliveries // DELIVERIES, QUOTA_BYTES_MIN)
    given = {"EVENTHUB_QUOTA_BYTES": str(quota)}
    async with Scene.open(data, lambda _: tenants(), options.seed, **given) as scene:
        found = await backlog(scene, Plan(events, options.seconds, quota))
        problems = await judged(scene, found)
    show_sizes(found)
    if options.plot is not None:
        plot(options.plot, found)
    return report.end(options.json, {"seed": options.seed, **found._asdict()}, problems)


async def backlog(scene: Scene, plan: Plan) -> Backlog:
    """Let receivers fail until so many events are pending for each; then let them drain, and their
    partitions be retired. Print what is measured.
    """
    await scene.fill(BULK, max(plan.events // 20, 10))  # so that the tables are not empty before
    await scene.accepted(BULK)
    sizes = {"before": await sizes_of(scene)}
    timed = Timed(scene, Sides(BULK, QUIET))
    await timed.phase(IDLE, asyncio.sleep(plan.seconds))
    filled_s = await _fill(scene, plan.events)
    print(f"{plan.events * ENDPOINTS} deliveries pending after {filled_s:.0f} s", flush=True)
    sizes["full"] = await sizes_of(scene)
    await timed.phase(FAILING, asyncio.sleep(plan.seconds))
    await scene.set_mood(BULK, WELL)
    back_at = time.monotonic()
    await timed.phase(DRAINING, _drain(scene))
    taken = scene.arrivals.taken.items()
    accepted = [at for key, at in taken if key[1] == BULK and at >= back_at]
    drained_s = max(accepted) - back_at
    show_drain(timed.p99, len(accepted), drained_s)
    sizes["drained"] = await sizes_of(scene)
    await retire(scene, BULK, FILLER, plan.quota_bytes)
    sizes["retired"] = await sizes_of(scene)
    return Backlog(
        deliveries=plan.events * ENDPOINTS,
        filled_s=filled_s,
        drained_s=drained_s,
        accepted=per_second(accepted, back_at, int(drained_s)),
        p99=timed.p99,
        sizes=sizes,
    )


async def _fill(scene: Scene, events: int) -> float:
    """Let half of the endpoints be disabled and the others fail, and emit so many events; return
    the seconds until their deliveries were written.
    """
    await scene.set_mood(BULK, FAILS)
    for name in list(scene.places[BULK].ids)[::4] + list(scene.places[BULK].ids)[1::4]:
        await scene.patch(BULK, name, {"enabled": False})
    began = time.monotonic()
    await scene.fill(BULK, events)
    return time.monotonic() - began


async def _drain(scene: Scene) -> None:
    """Change every endpoint, which is called at once then, and wait for the last delivery."""
    for name in scene.places[BULK].ids:
        await scene.patch(BULK, name, {"enabled": True, "description": "it is back"})
    await scene.accepted(BULK)


async def judged(scene: Scene, found: Backlog) -> list[str]:
    """Return what is wrong."""
    problems = await scene.missing(BULK, QUIET) + scene.arrivals.taken_problems()
    problems += scene.journal.problems
    problems += slower(found.p99)
    before, after = found.sizes["before"], found.sizes["retired"]
    problems += [
        f"{name} has {after[name]} bytes, {before[name]} before"
        for name in TABLES
        if after[name] > SIZE_RATIO_MAX * before[name] + SIZE_NOISE_BYTES
    ]
    return problems


def slower(p99: dict[str, dict[str, float]]) -> list[str]:
    """Return the kinds of requests that take longer beside the backlog than they may. Deliveries
    are not judged while it drains: they share workers and receiver with it.
    """
    return [
        f"{kind} takes {p99[phase][kind] * 1000:.0f} ms while {phase}, {idle * 1000:.0f} ms idle"
        for phase in (FAILING, DRAINING)
        for kind, idle in p99[IDLE].items()
        if p99[phase][kind] > P99_RATIO_MAX * max(idle, P99_IDLE_S_MIN)
        and not (phase == DRAINING and kind.startswith(DELIVERY))
    ]


def show_drain(p99: dict[str, dict[str, float]], deliveries: int, seconds: float) -> None:
    """Print the speed of the drain, and the 99th percentiles of all phases; ratios are those that
    are judged.
    """
    rate = deliveries / seconds
    print(f"{deliveries} deliveries drained within {seconds:.0f} s, {rate:.0f}/s")
    beside = (FAILING, DRAINING)
    print(f"{'p99 of':<28}{IDLE:>12}" + "".join(f"{phase:>12}{'ratio':>7}" for phase in beside))
    for kind, idle in p99[IDLE].items():
        cells = [
            f"{seconds * 1000:>9.1f} ms{seconds / max(idle, P99_IDLE_S_MIN):>7.2f}"
            for seconds in (p99[phase][kind] for phase in beside)
        ]
        print(f"{kind:<28}{idle * 1000:>9.1f} ms{''.join(cells)}", flush=True)


def show_sizes(found: Backlog) -> None:
    """Print the sizes of tables."""
    print(f"{'MiB of':<20}" + "".join(f"{moment:>12}" for moment in found.sizes))
    for name in TABLES:
        cells = "".join(f"{sizes[name] / 2**20:>12.2f}" for sizes in found.sizes.values())
        print(f"{name:<20}{cells}")


def plot(path: Path, found: Backlog) -> None:
    """Draw the drain over time."""
    seconds = [float(second) for second in range(len(found.accepted))]
    left, pending = float(found.deliveries), []
    for count in found.accepted:
        left -= count
        pending.append(left / 1_000)
    series = [
        PlotSeries("pending, in thousands", pending),
        PlotSeries("accepted a second", found.accepted),
    ]
    title = f"{found.deliveries:,} pending deliveries after the return of their receivers"
    draw(path, seconds, series, PlotLabels(title, "deliveries", "seconds"))
