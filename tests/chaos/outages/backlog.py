"""The command `python -m tests.chaos backlog`: see docs/chaos.md, "A large backlog"."""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import aiohttp

from sparkjobs.report.plot import PlotLabels, PlotSeries
from tests.chaos import report
from tests.chaos.callbacks.receivers import Endpoint
from tests.chaos.callbacks.sink import Mood
from tests.chaos.events import Name, event_of
from tests.chaos.figures import draw, per_second, percentile
from tests.chaos.outages.scene import Scene, Tenant
from tests.chaos.until import NeverCame, until_true

BULK, QUIET = "bulk", "quiet"  # with the backlog; the one whose requests are timed
FAILS, WELL = Mood(status_500=1.0), Mood()
ENDPOINTS = 20  # half of them ordered by a key
# so that a partition has 512 MiB, and a client's backlog of 1,000,000 fits: 700 MiB with its events
QUOTA_BYTES = 8 * 1024**3
CALLS_PER_S = 20.0
P99_RATIO_MAX = 5.0
P99_IDLE_S_MIN = 0.005  # a shorter idle value says nothing: one pause of the scheduler is longer
SIZE_RATIO_MAX = 1.2
SIZE_NOISE_BYTES = 1024 * 1024  # some pages of each table and index
STILL_S = 120.0
RETIRED_AFTER_S = 31 * 86_400.0  # deliveries and attempts are retained for 30 days
RETIRE_S = 300.0
TABLES = ("deliveries", "attempts", "lanes", "circuits", "callback_workers")
SIZES: LiteralString = """
    SELECT t.name, COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint
      FROM unnest(%s::text[]) AS t (name)
      LEFT JOIN pg_class c ON c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
       AND c.relname ~ ('^' || t.name || '(_p?[0-9]+)?$')
     GROUP BY t.name"""
Call = Callable[[], Awaitable[Any]]


class Latencies(NamedTuple):
    """The seconds of each kind of request."""

    found: dict[str, list[float]]

    @property
    def p99(self) -> dict[str, float]:
        return {name: percentile(seconds, 0.99) for name, seconds in self.found.items()}


class Backlog(NamedTuple):
    """The measurements. `sizes`: bytes by table, by moment."""

    deliveries: int
    filled_s: float
    drained_s: float
    accepted: list[float]  # per second
    idle: dict[str, float]
    draining: dict[str, float]
    sizes: dict[str, dict[str, int]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deliveries", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of idle requests")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="SVG")


def tenants() -> list[Tenant]:
    """Return the one with the backlog, and one whose requests are timed."""
    endpoints = {
        f"bulk-{number}": Endpoint(ordered=True, order_by="size") if number % 2 else Endpoint()
        for number in range(ENDPOINTS)
    }
    return [Tenant(BULK, endpoints), Tenant(QUIET, {})]


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run, judge and print. Return the exit status."""
    events = options.deliveries // ENDPOINTS
    quota = {"EVENTHUB_QUOTA_BYTES": str(QUOTA_BYTES)}
    async with Scene.open(data, lambda _: tenants(), options.seed, **quota) as scene:
        found = await backlog(scene, events, options.seconds)
        problems = await judged(scene, found)
    show(found)
    if options.plot is not None:
        plot(options.plot, found)
    return report.end(options.json, {"seed": options.seed, **found._asdict()}, problems)


async def backlog(scene: Scene, events: int, seconds: float) -> Backlog:
    """Let receivers fail until so many events are pending for each; then let them drain, and their
    partitions be retired.
    """
    await scene.fill(BULK, max(events // 20, 10))  # so that the tables are not empty before
    await _accepted(scene)
    sizes = {"before": await _sizes(scene)}
    idle = Latencies({})
    await _time(scene, idle, lambda: asyncio.sleep(seconds))
    await scene.set_mood(BULK, FAILS)
    began = time.monotonic()
    await scene.fill(BULK, events)
    filled_s = time.monotonic() - began
    sizes["full"] = await _sizes(scene)
    await scene.set_mood(BULK, WELL)
    draining = Latencies({})
    back_at = time.monotonic()
    await _time(scene, draining, lambda: _drain(scene))
    drained_at = time.monotonic()
    sizes["drained"] = await _sizes(scene)
    await _retire(scene)
    sizes["retired"] = await _sizes(scene)
    taken = scene.arrivals.taken.items()
    accepted = [at for key, at in taken if key[1] == BULK and at >= back_at]
    return Backlog(
        deliveries=events * ENDPOINTS,
        filled_s=filled_s,
        drained_s=drained_at - back_at,
        accepted=per_second(accepted, back_at, int(drained_at - back_at)),
        idle=idle.p99,
        draining=draining.p99,
        sizes=sizes,
    )


async def _drain(scene: Scene) -> None:
    """Change every endpoint, which is called at once then, and wait for the last delivery."""
    for name in scene.places[BULK].ids:
        await scene.patch(BULK, name, {"description": "it is back"})
    await _accepted(scene)


async def _accepted(scene: Scene) -> None:
    """Wait until every delivery is accepted, as long as some are. Raise NeverCame."""
    ids, accepted = scene.places[BULK].ids, scene.arrivals.accepted
    expected = (await scene.heads())[BULK] * len(ids)
    count, moved_at = 0, time.monotonic()

    async def done() -> bool:
        nonlocal count, moved_at
        await asyncio.sleep(0.5)
        if (now := sum(accepted[name] for name in ids)) != count:
            count, moved_at = now, time.monotonic()
        if time.monotonic() - moved_at > STILL_S:
            raise NeverCame(f"{expected - count} deliveries, nothing for {STILL_S:.0f} s")
        return count >= expected

    await until_true(done, "the last delivery", float("inf"))


async def _time(scene: Scene, latencies: Latencies, work: Callable[[], Awaitable[None]]) -> None:
    """Time requests to the API, at a steady rate, while some work is done."""
    working = asyncio.ensure_future(work())
    calls = _calls(scene)
    sending: set[asyncio.Task[None]] = set()
    number = 0
    began = time.monotonic()
    while not working.done():
        name = list(calls)[number % len(calls)]
        number += 1
        task = asyncio.create_task(_timed(calls[name], latencies.found.setdefault(name, [])))
        sending.add(task)
        task.add_done_callback(sending.discard)
        pause_s = began + number / CALLS_PER_S - time.monotonic()
        await asyncio.wait([working], timeout=max(pause_s, 0.0))
    await asyncio.gather(*sending)
    await working


async def _timed(call: Call, found: list[float]) -> None:
    began = time.monotonic()
    await call()
    found.append(time.monotonic() - began)


def _calls(scene: Scene) -> dict[str, Call]:
    """Return the requests that are timed, by name: an emit, and reads of those who manage."""
    quiet, bulk = scene.places[QUIET].http, scene.places[BULK]
    url, numbers = scene.hub.url, iter(range(1, 1 << 60))
    endpoint = bulk.ids["bulk-0"]

    async def emit() -> None:
        name = Name(QUIET, 1, next(numbers))
        event = event_of(name, at=time.monotonic(), with_id=False)
        await _ok(quiet, "POST", f"{url}/v1/streams/{QUIET}/events", event)

    def read(path: str) -> Call:
        return lambda: _ok(bulk.http, "GET", f"{url}/v1/{path}", None)

    return {
        "emit": emit,
        "endpoints": read("endpoints"),
        "endpoint": read(f"endpoints/{endpoint}"),
        "deliveries": read(f"deliveries?endpoint={endpoint}&limit=50"),
        "dead letters": read("dead-letters"),
        "overview": read("overview"),
    }


async def _ok(http: aiohttp.ClientSession, method: str, url: str, body: Any) -> None:
    async with http.request(method, url, json=body) as response:
        await response.read()
        response.raise_for_status()


async def _sizes(scene: Scene) -> dict[str, int]:
    """Return the bytes of each table with its indexes and partitions."""
    return dict(await scene.hub.rows(SIZES, list(TABLES)))  # type: ignore[arg-type]


async def _retire(scene: Scene) -> None:
    """Wait until the next partition is in use; then let 31 days pass, twice, and have a worker
    retire what is to be retired: the first time seals the open segments of quiet streams.
    """
    [(partition,)] = await scene.hub.rows(
        "SELECT max(h.partition_id) FROM heads h JOIN streams s ON s.id = h.stream_id"
        " WHERE s.name = %s",
        BULK,
    )

    async def advanced() -> bool:
        await asyncio.sleep(0.5)
        [(current,)] = await scene.hub.rows("SELECT current_partition FROM log_state")
        return bool(current > partition)

    async def sealed() -> bool:
        await asyncio.sleep(0.5)
        [(left,)] = await scene.hub.rows(
            "SELECT count(*) FROM segments WHERE partition_id = %s AND sealed_at IS NULL", partition
        )
        return bool(left == 0)

    async def a_month_later() -> None:
        await asyncio.to_thread(scene.clock.advance, RETIRED_AFTER_S)
        done = await asyncio.to_thread(scene.hub.celery, "call", "delivery.retire")
        done.check_returncode()

    await until_true(advanced, "a new partition to be in use", RETIRE_S)
    await a_month_later()
    await until_true(sealed, "the segments to be sealed", RETIRE_S)
    await a_month_later()

    async def retired() -> bool:
        await asyncio.sleep(0.5)
        [(left,)] = await scene.hub.rows(
            "SELECT count(*) FROM pg_class WHERE relname = %s", f"deliveries_p{partition}"
        )
        return bool(left == 0)

    await until_true(retired, f"deliveries_p{partition} to be retired", RETIRE_S)


async def judged(scene: Scene, found: Backlog) -> list[str]:
    """Return what is wrong."""
    problems = await scene.missing(BULK) + scene.arrivals.taken_problems()
    problems += scene.journal.problems
    for name, idle in found.idle.items():
        if found.draining[name] > P99_RATIO_MAX * max(idle, P99_IDLE_S_MIN):
            problems.append(
                f"{name} takes {found.draining[name] * 1000:.0f} ms, {idle * 1000:.0f} ms idle"
            )
    before, after = found.sizes["before"], found.sizes["retired"]
    problems += [
        f"{name} has {after[name]} bytes, {before[name]} before"
        for name in TABLES
        if after[name] > SIZE_RATIO_MAX * before[name] + SIZE_NOISE_BYTES
    ]
    return problems


def show(found: Backlog) -> None:
    """Print the figures."""
    rate = found.deliveries / found.drained_s
    print(
        f"{found.deliveries} deliveries pending after {found.filled_s:.0f} s,"
        f" drained within {found.drained_s:.0f} s, {rate:.0f}/s"
    )
    print(f"{'p99 of':<20}{'idle':>12}{'draining':>12}{'ratio':>8}")
    for name, idle in found.idle.items():
        beside = found.draining[name]
        print(f"{name:<20}{idle * 1000:>9.1f} ms{beside * 1000:>9.1f} ms{beside / idle:>8.2f}")
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
