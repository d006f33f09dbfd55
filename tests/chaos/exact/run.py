"""The command `python -m tests.chaos exact`: see docs/chaos.md, "Exactness"."""

import argparse
import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import LiteralString, NamedTuple

import aiohttp

from tests.chaos import report
from tests.chaos.callbacks.arrivals import Arrivals, Key
from tests.chaos.callbacks.expected import rows_wrong
from tests.chaos.callbacks.receivers import SINKS, Endpoint, SinkProcess, ask, create_endpoints
from tests.chaos.callbacks.tables import shoot
from tests.chaos.callbacks.world import CREW
from tests.chaos.exact.flow import STREAM, Flow
from tests.chaos.exact.trial import LANE, Found, Scene, Trial, expected_keys, script_of
from tests.chaos.hub import HubUnderTest
from tests.chaos.judge import shorten
from tests.chaos.readers import close_quietly
from tests.chaos.until import NeverCame, until, until_true

ENDPOINTS = {"one": Endpoint(), "two": Endpoint(), LANE: Endpoint(ordered=True)}
SEGMENT_EVENTS_MAX = 20_000  # segments roll every few seconds
TAIL_S = 0.02
WARM_S = 2.0
DRAIN_S = 90.0
SIDE_BY_SIDE = 2  # trials at once: an event matches registrations of both

PENDING: LiteralString = "SELECT count(*) FROM deliveries WHERE state <> 'delivered'"


class Outcome(NamedTuple):
    """The result of a run."""

    found: list[Found]
    flow_per_s: float
    flowed: int
    deliveries: int
    repeats: int
    seconds: float
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=100, help="registrations")
    parser.add_argument("--rate", type=float, default=5_200.0, help="events per second")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run all trials. Return the exit status."""
    async with scene_of(data, options.rate, options.seed) as scene:
        outcome = await exact(options.times, options.seed, scene)
    harmed = [one for one in outcome.found if one.script.harmed]
    changed = [one for one in outcome.found if one.script.change is not None]
    resumed = [one for one in outcome.found if one.script.resumes]
    summary: dict[str, object] = {
        "seed": options.seed,
        "times": len(outcome.found),
        "while_the_leader_was_killed": len(harmed),
        "changed": len(changed),
        "listens_resumed": len(resumed),
        "events_per_s": round(outcome.flow_per_s, 1),
        "events": outcome.flowed,
        "deliveries": outcome.deliveries,
        "repeats": outcome.repeats,
        "seconds": round(outcome.seconds, 1),
    }
    print(", ".join(f"{name} {value}" for name, value in summary.items()))
    return report.end(options.json, summary, outcome.problems)


async def exact(times: int, seed: int, scene: Scene) -> Outcome:
    """Run the trials, some concurrently, while events flow; then judge all of them."""
    dice = random.Random(seed)
    flowing = asyncio.create_task(scene.flow.run())
    tailing = asyncio.create_task(_tail(scene.arrivals))
    await asyncio.sleep(WARM_S)
    began, before = time.monotonic(), len(scene.flow.events)
    found: list[Found] = []
    while len(found) < times and not flowing.done():
        count = min(SIDE_BY_SIDE, times - len(found))
        scripts = [script_of(len(found) + n, dice) for n in range(count)]
        trials = [Trial(scene, script, random.Random(dice.random())) for script in scripts]
        found += await asyncio.gather(*(trial.run() for trial in trials))
        for one in found[-count:]:
            print(_line(one), flush=True)
    took_s, flowed = time.monotonic() - began, len(scene.flow.events) - before
    await close_quietly([flowing])
    problems = [f"{one.script.number}: {p}" for one in found for p in one.problems]
    problems += scene.flow.problems[:5] + await judged(scene, found)
    await close_quietly([tailing])
    arrivals = scene.arrivals
    return Outcome(
        found, flowed / took_s, flowed, len(arrivals.firsts), arrivals.repeats, took_s, problems
    )


async def judged(scene: Scene, found: Sequence[Found]) -> list[str]:
    """Check, when everything is delivered, that nothing is missing or in excess at the sink and in
    the tables.
    """
    problems: list[str] = []

    async def delivered() -> bool:
        [(pending,)] = await scene.hub.rows(PENDING)
        return bool(pending == 0)

    try:
        await until_true(delivered, "the last delivery", DRAIN_S)
        await until(lambda: scene.arrivals.read_on() == 0, "the sink to be quiet", DRAIN_S)
    except NeverCame as error:
        problems.append(str(error))
    versions = [version for one in found for version in one.versions]
    expected_rows = expected_keys(versions, scene)
    problems += sink_wrong(expected_rows, scene.arrivals)
    shot = await asyncio.to_thread(shoot, scene.hub, {STREAM: 0})
    by_id = {(scene.endpoints[name], sequence): registrations
             for (name, _, sequence), registrations in expected_rows.items()}  # fmt: skip
    problems += shorten(rows_wrong(STREAM, by_id, shot.streams[STREAM].rows, shot.segments))
    return problems + scene.arrivals.taken_problems()


def sink_wrong(expected_rows: dict[Key, list[int]], arrivals: Arrivals) -> list[str]:
    """Return where arrivals differ from the expected ones."""
    problems = [f"{key} never arrived" for key in expected_rows.keys() - arrivals.taken]
    problems += [
        f"{key} was not asked for" for key in arrivals.firsts.keys() - expected_rows.keys()
    ]
    problems += [
        f"{key} came for {arrivals.firsts[key].registrations} instead of {registrations}"
        for key, registrations in expected_rows.items()
        if key in arrivals.firsts and arrivals.firsts[key].registrations != tuple(registrations)
    ]
    return shorten(problems)


@asynccontextmanager
async def scene_of(data: Path, rate: float, seed: int) -> AsyncIterator[Scene]:
    """Open a hub with one stream and endpoints at a sink; stop everything at the end."""
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(data.mkdir, parents=True, exist_ok=True)
        sink = SinkProcess(data / "sink.ndjson", seed)
        stack.callback(sink.close)
        hub = HubUnderTest(data / "hub", CREW, EVENTHUB_CALLBACK_ALLOW=SINKS)
        stack.callback(hub.stop)
        await hub.ready()
        key = await asyncio.to_thread(hub.create_key, "exact")
        yield await stack.enter_async_context(scene_at(hub, key, sink, rate))


@asynccontextmanager
async def scene_at(
    hub: HubUnderTest, key: str, sink: SinkProcess, rate: float
) -> AsyncIterator[Scene]:
    """Open a scene on a running hub, with a sink of its own."""
    async with AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {key}"}
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        policy = {"segment_events_max": SEGMENT_EVENTS_MAX}
        await ask(http, "PUT", f"{hub.url}/v1/streams/{STREAM}", policy)
        ids = await create_endpoints(http, hub.url, sink.url, ENDPOINTS)
        lanes = frozenset(name for name, one in ENDPOINTS.items() if one.ordered)
        arrivals = Arrivals(sink.file, lanes)
        stack.callback(arrivals.close)
        yield Scene(hub, http, Flow(hub.url, key, rate), arrivals, ids)


async def _tail(arrivals: Arrivals) -> None:
    while True:
        arrivals.read_on()
        await asyncio.sleep(TAIL_S)


def _line(one: Found) -> str:
    script = one.script
    ends = ", ".join("({}, {}]".format(*bound) for v in one.versions for bound in v.bounds.values())
    change = "" if script.change is None else f"  then {script.change}"
    resumed = "  resumed" if script.resumes else ""
    return (
        f"{script.number:>3}  {script.endpoint:<5} {ends:<42} {len(one.expected_rows):>5} events  "
        f"{report.verdict(one.problems)}  {one.victim}{resumed}{change}"
    )
