"""The command `python -m tests.chaos --soak SECONDS`: memory stays constant, healthy readers stay
fast and callbacks are delivered while other readers read nothing, or one byte a second.
"""

import argparse
import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from tests.chaos import memory, report
from tests.chaos.callbacks.receivers import (
    SINKS,
    Endpoint,
    Receivers,
    RequestedEndpoints,
    SinkProcess,
    create_receivers,
)
from tests.chaos.callbacks.sink import Mood
from tests.chaos.events import Interest
from tests.chaos.hub import WEB_PARTS, Crew
from tests.chaos.readers import PROTOBUF, Manner, Seen, close_quietly
from tests.chaos.slow import SlowReader
from tests.chaos.world import STREAMS, Load, Reader, World

SAMPLE_S = 5.0
SAMPLES_MIN = 8  # of a short run
PROGRESS_S = 60.0  # between lines about the progress
SETTLED_S = 180.0  # growth is judged after so long, or after half of a shorter run
SLOPE_MAX = 1.0  # MiB a minute
TOLD_MIN = 2
NOTICED_S = 30.0  # a slow reader is notified once in so long, at the least
P50_S_MAX = 0.1
P99_S_MAX = 1.0
HEALTHY = (
    Reader("healthy-json", "alpha", Manner()),
    Reader("healthy-binary", "beta", Manner(PROTOBUF)),
)
SLOW: tuple[tuple[str, float | None], ...] = (("reads-nothing", None), ("a-byte-a-second", 1.0))


CREW = Crew(web=len(WEB_PARTS), forwarders=2, workers=2)
TICK: dict[str, Any] = {"type": "tick"}
# a third of the events: most of them to endpoints that are good, some to one that often is not
CALLBACKS = RequestedEndpoints(
    STREAMS,
    {
        "good": Endpoint(),
        "troubled": Endpoint(mood=Mood(0.05, 0.02, 0.02, 0.05)),
        "lane": Endpoint(ordered=True, mood=Mood(0.005, 0.002, 0.002, 0.01, 0.2)),
        "quiet-lane": Endpoint(ordered=True),
    },
    (
        ("good", {"streams": list(STREAMS), **TICK, "attributes": {"color": "red"}}),
        ("good", {"streams": ["alpha"], **TICK, "attributes": {"place.city": "Ulm", "size": 3}}),
        ("troubled", {"streams": ["alpha", "gamma"], **TICK, "attributes": {"size": 3}}),
        ("lane", {"streams": ["alpha"], **TICK, "attributes": {"size": 2}}),
        ("quiet-lane", {"streams": ["beta"], **TICK, "attributes": {"color": "blue", "size": 5}}),
    ),
)


class Scene(NamedTuple):
    """A hub under load with healthy readers, slow ones, and the receivers of callbacks."""

    world: World
    slow: list[SlowReader]
    stalling: list["asyncio.Task[None]"]
    receivers: Receivers


async def soak(options: argparse.Namespace, data: Path, crew: Crew = CREW) -> int:
    """Run, judge and print. Return the exit status."""
    async with _scene(options, data, crew) as scene:
        world, arrivals = scene.world, scene.receivers.arrivals
        watch = memory.Watch(world.hub.supervisor)
        loaded_s = await _load(scene, watch, options.soak)
        problems = await _judged(scene)
    growths = watch.growth(min(SETTLED_S, loaded_s / 2))
    problems += too_fast(growths) + unwatched(growths, parts_of(crew))
    problems += _ill_treated(scene.slow, options.soak)
    latencies = {name: _latency(seen) for name, seen in world.readers.items()}
    problems += _delayed(latencies)
    summary: dict[str, Any] = {
        "seconds": loaded_s,
        "offered_per_s": world.journal.offered / loaded_s,
        "acknowledged_per_s": len(world.journal.promised) / loaded_s,
        "latency_s": latencies,
        "slow": {reader.seen.name: _about(reader) for reader in scene.slow},
        "delivered_per_s": len(arrivals.taken) / loaded_s,
        "delivered": len(arrivals.taken),
        "repeats": arrivals.repeats,
        "answers": arrivals.answers,
        "slopes_mib_per_minute": {growth.name: growth.slope for growth in growths},
        "samples": {growth.name: [list(s) for s in growth.samples] for growth in growths},
    }
    _show(summary, growths)
    return report.end(options.json, summary, problems)


@asynccontextmanager
async def _scene(options: argparse.Namespace, data: Path, crew: Crew) -> AsyncIterator[Scene]:
    """Open a scene in which nothing is offered yet."""
    async with AsyncExitStack() as stack:
        sink = stack.enter_context(closing(SinkProcess(data / "sink.ndjson", options.seed)))
        load = Load(options.rate, HEALTHY, crew, {"EVENTHUB_CALLBACK_ALLOW": SINKS})
        dice = random.Random(options.seed)
        world = await stack.enter_async_context(World.open(data, load, dice))
        async with aiohttp.ClientSession(headers=world.headers) as http:
            receivers = await create_receivers(http, world.hub, sink, CALLBACKS)
        stack.callback(receivers.arrivals.close)
        slow = [
            SlowReader(world.hub, Seen(name, "alpha", Interest()), drip_s) for name, drip_s in SLOW
        ]
        keys = await asyncio.gather(
            *(asyncio.to_thread(world.hub.create_key, reader.seen.name) for reader in slow)
        )
        for seen in world.readers.values():
            seen.keep_latencies = True
        stalling = [
            asyncio.create_task(reader.run(key)) for reader, key in zip(slow, keys, strict=True)
        ]
        stack.push_async_callback(close_quietly, stalling)
        yield Scene(world, slow, stalling, receivers)


async def _load(scene: Scene, watch: memory.Watch, for_s: float) -> float:
    """Offer events and sample memory. Return the seconds it took."""
    began = time.monotonic()
    report_at = began + PROGRESS_S
    scene.world.clock.start()
    while time.monotonic() - began < for_s or len(watch.looks_s) < SAMPLES_MIN:
        await asyncio.sleep(min(SAMPLE_S, for_s / SAMPLES_MIN))
        await asyncio.to_thread(watch.sample)
        scene.receivers.arrivals.read_on()
        _raise_ended(scene.world, scene.stalling)
        if time.monotonic() >= report_at:
            report_at += PROGRESS_S
            print(_progress(scene, watch, for_s), flush=True)
    return time.monotonic() - began


def _progress(scene: Scene, watch: memory.Watch, for_s: float) -> str:
    events, callbacks = scene.world.journal.offered, len(scene.receivers.arrivals.taken)
    return (
        f"{watch.looks_s[-1]:.0f} of {for_s:.0f} s: {events} events offered, {callbacks} callbacks,"
        f" {watch.last_total / memory.MIB:.0f} MiB private to the hub's processes"
    )


async def _judged(scene: Scene) -> list[str]:
    """Judge the log, its readers and the deliveries when all answers have arrived."""
    world = scene.world
    await world.settle()
    await close_quietly(scene.stalling)
    problems = await world.judge.judge(world.journal, list(world.readers.values()))
    problems += await scene.receivers.judge.rest(scene.receivers.arrivals, [])
    return [*problems, *world.journal.problems, *_failed_emits(world)]


def _raise_ended(world: World, stalling: list["asyncio.Task[None]"]) -> None:
    world.raise_broken()
    for task in stalling:
        if task.done():
            task.result()


def _failed_emits(world: World) -> list[str]:
    return [f"an emit failed: {failure}" for failure in world.journal.failures[:5]]


def too_fast(growths: list[memory.Growth]) -> list[str]:
    return [
        f"{growth.name} grows by {growth.slope:.2f} MiB a minute"
        for growth in growths
        if growth.slope is not None and growth.slope >= SLOPE_MAX
    ]


def parts_of(crew: Crew) -> list[str]:
    """Return the names of all parts of a hub."""
    kinds = {"web": crew.web, "forward": crew.forwarders, "worker": crew.workers}
    many = [f"{kind}-{number + 1}" for kind, count in kinds.items() for number in range(count)]
    return ["supervisor", "postgres", "redis", "beat", *many]


def unwatched(growths: list[memory.Growth], parts: list[str]) -> list[str]:
    """Check that every part has a process that lived through the whole window."""
    watched = {growth.name.split()[0] for growth in growths if growth.slope is not None}
    return [f"{part} did not run all the time" for part in parts if part not in watched]


def _ill_treated(slow: list[SlowReader], for_s: float) -> list[str]:
    """Check that each slow reader was asked to resume, more than once in a long run, and received
    its events in order.
    """
    problems = [problem for reader in slow for problem in (*reader.problems, *reader.seen.problems)]
    rarely = [reader for reader in slow if reader.reported < min(TOLD_MIN, for_s // NOTICED_S)]
    return problems + [f"{r.seen.name} was asked to resume {r.reported} times" for r in rarely]


def _latency(seen: Seen) -> dict[str, float]:
    """Return the seconds from an event's first attempt to its receipt."""
    found = sorted(seen.latencies_s) or [float("inf")]
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: found[min(int(len(found) * part), len(found) - 1)] for name, part in at.items()}


def _delayed(latencies: dict[str, dict[str, float]]) -> list[str]:
    return [
        f"{name} waited: {latency}"
        for name, latency in latencies.items()
        if latency["p50"] > P50_S_MAX or latency["p99"] > P99_S_MAX
    ]


def _about(reader: SlowReader) -> dict[str, int]:
    return {
        "connections": reader.connections,
        "resume_notices": reader.reported,
        "bytes_read": reader.bytes_read,
        "events": reader.seen.count,
    }


def _show(summary: dict[str, Any], growths: list[memory.Growth]) -> None:
    print(
        f"{summary['seconds']:.0f} s, offered {summary['offered_per_s']:.0f}/s, "
        f"acknowledged {summary['acknowledged_per_s']:.0f}/s"
    )
    for name, latency in summary["latency_s"].items():
        print(name, ", ".join(f"{key} {value * 1000:.1f} ms" for key, value in latency.items()))
    for name, about in summary["slow"].items():
        print(name, ", ".join(f"{key} {value}" for key, value in about.items()))
    print(
        f"callbacks {summary['delivered_per_s']:.0f}/s, delivered {summary['delivered']}, "
        f"repeats {summary['repeats']}, answers {summary['answers']}"
    )
    for growth in growths:
        if growth.slope is not None:
            print(memory.plot(growth))
