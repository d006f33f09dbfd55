"""`python -m tests.chaos --soak SECONDS`: memory stays level and healthy readers stay fast while
others read nothing, or a byte a second."""

import argparse
import asyncio
import random
import time
from pathlib import Path
from typing import Any

from tests.chaos import memory, report
from tests.chaos.events import Interest
from tests.chaos.readers import PROTOBUF, Manner, Seen, close_quietly
from tests.chaos.slow import SlowReader
from tests.chaos.world import Load, Reader, World

SAMPLE_S = 5.0
SETTLED_S = 180.0  # growth is judged after so long, or after half of a shorter run
SLOPE_MAX = 1.0  # MiB a minute
TOLD_MIN = 2
P50_S_MAX = 0.1
P99_S_MAX = 1.0
HEALTHY = (
    Reader("healthy-json", "alpha", Manner()),
    Reader("healthy-binary", "beta", Manner(PROTOBUF)),
)
SLOW: tuple[tuple[str, float | None], ...] = (("reads-nothing", None), ("a-byte-a-second", 1.0))


async def soak(options: argparse.Namespace, data: Path) -> int:
    """Run, judge, print. Returns the exit status."""
    async with World.open(data, Load(options.rate, HEALTHY), random.Random(options.seed)) as world:
        slow = [
            SlowReader(world.hub, Seen(name, "alpha", Interest()), drip_s) for name, drip_s in SLOW
        ]
        keys = [await asyncio.to_thread(world.hub.create_key, reader.seen.name) for reader in slow]
        for seen in world.readers.values():
            seen.keep_latencies = True
        stalling = [
            asyncio.create_task(reader.run(key)) for reader, key in zip(slow, keys, strict=True)
        ]
        watch = memory.Watch(world.hub.supervisor)
        began = time.monotonic()
        world.clock.start()
        while time.monotonic() - began < options.soak:
            await asyncio.sleep(SAMPLE_S)
            await asyncio.to_thread(watch.sample)
            _raise_ended(world, stalling)
        loaded_s = time.monotonic() - began
        await world.settle()
        await close_quietly(stalling)
        problems = await world.judge.judge(world.journal, list(world.readers.values()))
        problems += [*world.journal.problems, *_failed_emits(world)]
    growths = watch.growth(min(SETTLED_S, options.soak / 2))
    problems += _too_fast(growths) + _ill_treated(slow)
    latencies = {name: _latency(seen) for name, seen in world.readers.items()}
    problems += _delayed(latencies)
    summary: dict[str, Any] = {
        "seconds": loaded_s,
        "offered_per_s": world.journal.offered / loaded_s,
        "acknowledged_per_s": len(world.journal.promised) / loaded_s,
        "latency_s": latencies,
        "slow": {reader.seen.name: _about(reader) for reader in slow},
        "slopes_mib_per_minute": {growth.name: growth.slope for growth in growths},
        "samples": {growth.name: [list(s) for s in growth.samples] for growth in growths},
        "problems": problems,
    }
    _show(summary, growths)
    if options.json:
        report.write(options.json, summary)
    return 1 if problems else 0


def _raise_ended(world: World, stalling: list["asyncio.Task[None]"]) -> None:
    world.raise_broken()
    for task in stalling:
        if task.done():
            task.result()


def _failed_emits(world: World) -> list[str]:
    return [f"an emit failed: {failure}" for failure in world.journal.failures[:5]]


def _too_fast(growths: list[memory.Growth]) -> list[str]:
    return [
        f"{growth.name} grows by {growth.slope:.2f} MiB a minute"
        for growth in growths
        if growth.slope is not None and growth.slope >= SLOPE_MAX
    ]


def _ill_treated(slow: list[SlowReader]) -> list[str]:
    """Each slow reader was told to resume, more than once, and saw its events in order."""
    problems = [problem for reader in slow for problem in (*reader.problems, *reader.seen.problems)]
    rarely = [reader for reader in slow if reader.told < TOLD_MIN]
    return problems + [f"{r.seen.name} was told to resume {r.told} times" for r in rarely]


def _latency(seen: Seen) -> dict[str, float]:
    """From an event's first attempt to its receipt, in seconds."""
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
        "told_to_resume": reader.told,
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
    for growth in growths:
        if growth.slope is not None:
            print(memory.plot(growth))
    for problem in summary["problems"]:
        print(f"PROBLEM: {problem}")
