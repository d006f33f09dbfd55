"""The command `python -m tests.chaos callbacks`: see docs/chaos.md, "Callbacks"."""

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import report
from tests.chaos.callbacks.harm import HARMS, plan_of
from tests.chaos.callbacks.rounds import Round, lane_recoveries, rest, run_round, stream_recoveries
from tests.chaos.callbacks.samples import Calm, p99_of
from tests.chaos.callbacks.world import HEALTHY, CallbackWorld

REST_ROUNDS = 10
WARM_S = 8.0
SICKEN_S = 20.0  # until the circuits of the sick have opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--rate", type=float, default=810.0, help="events offered per second")
    parser.add_argument("--seconds-per-round", type=float, default=6.0, help="beside the harm")
    parser.add_argument("--rest", type=int, default=REST_ROUNDS, help="rounds between two rests")
    parser.add_argument("--calm", type=float, default=60.0, help="s without faults, twice; 0: none")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="SVG; memory is FILE-memory")
    parser.add_argument("--only", action="append", default=[], choices=sorted(HARMS))


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run all rounds, or until one fails. Return the exit status."""
    dice = random.Random(options.seed)
    rounds: list[Round] = []
    problems: list[str] = []
    began = time.monotonic()
    async with CallbackWorld.open(data, options.rate, options.seed) as world:
        calm = await begin(world, options.calm)
        for number in range(1, options.rounds + 1):
            world.go()
            plan = plan_of(dice, options.only)
            own = random.Random(dice.random())
            found = await run_round(world, number, plan, own, options.seconds_per_round)
            rounds.append(found)
            print(_line(found), flush=True)
            last = number == options.rounds or bool(found.problems)
            if last or number % options.rest == 0:
                took_s, problems = await rest(world)
                print(_rest_line(world, took_s, problems), flush=True)
            if found.problems or problems:
                break
        evidence = [problem for one in rounds for problem in one.problems] + problems
        evidence += calm.wrong() + world.sampler.memory_wrong()
        summary = summary_of(world, options, rounds)
        summary["seconds"] = time.monotonic() - began
        summary["mib_per_minute"] = world.sampler.mib_per_minute
    if options.plot is not None:
        world.sampler.plot(options.plot)
    print(_calm_table(calm))
    print(_table(rounds, summary["stream_recovery_s"], summary["lane_recovery_s"]))  # type: ignore[arg-type]
    print(", ".join(f"{k} {v}" for k, v in summary.items() if isinstance(v, int | float)))
    print(f"changes of registrations: {summary['changes']}")
    summary["calm"] = calm._asdict()
    summary["depths"] = [one._asdict() for one in world.sampler.depths]
    summary["rounds"] = [one._asdict() for one in rounds]
    return report.end(options.json, summary, evidence)


async def begin(world: CallbackWorld, seconds: float) -> Calm:
    """Start the load, and add the sick receivers. Return the latencies of the healthy ones for so
    many seconds before and after.
    """
    world.go()
    if not seconds:
        await world.add_sick()
        return Calm({}, {})
    windows = []
    for waited_s in (WARM_S, SICKEN_S):
        if windows:
            await world.add_sick()
        await asyncio.sleep(waited_s)
        since = time.monotonic()
        await asyncio.sleep(seconds)
        windows.append((since, time.monotonic()))
    await asyncio.sleep(1.0)
    return Calm(*(p99_of(world.arrivals, HEALTHY, *window) for window in windows))


def _calm_table(calm: Calm) -> str:
    lines = [f"{'p99 of':<20}{'without':>11}{'beside':>11}{'ratio':>8}"]
    for name, seconds in calm.without.items():
        beside = calm.beside[name]
        cells = f"{seconds * 1000:>8.1f} ms{beside * 1000:>8.1f} ms{beside / seconds:>8.2f}"
        lines.append(f"{name:<20}{cells}")
    return "\n".join(lines)


def summary_of(
    world: CallbackWorld, options: argparse.Namespace, rounds: Sequence[Round]
) -> dict[str, object]:
    expected = world.judge.expected.expected
    matched = {(stream, sequence) for _, stream, sequence in expected}
    loaded_s = world.clock.elapsed_s()
    return {
        "seed": options.seed,
        "offered": world.journal.offered,
        "offered_per_s": round(world.journal.offered / loaded_s, 1),
        "acknowledged": len(world.journal.promised),
        "matched": len(matched),
        "matched_per_s": round(len(matched) / loaded_s, 1),
        "expected": len(expected),
        "for_several_registrations": sum(
            len(registrations) > 1 for registrations in expected.values()
        ),
        "delivered": len(world.arrivals.taken),
        "arrivals": world.arrivals.count,
        "repeats": world.arrivals.repeats,
        "repeat_ratio": round(world.arrivals.repeats / max(len(world.arrivals.firsts), 1), 5),
        "answers": world.arrivals.answers,
        "versions_judged": len(world.registrar.changes),
        "changes": world.registrar.counts,
        "loaded_s": round(loaded_s, 1),
        "stream_recovery_s": stream_recoveries(world, rounds),
        "lane_recovery_s": lane_recoveries(world, rounds),
    }


def _line(found: Round) -> str:
    return (
        f"{found.number:>3}  {found.harm:<32} offered {found.offered_per_s:>5.0f}/s  "
        f"delivered {found.delivered:>6}  repeated {found.repeated:>5}  "
        f"recovery {found.recovery_s:>5.2f} s  "
        f"{report.verdict(found.problems)}  ({found.victim})"
    )


def _rest_line(world: CallbackWorld, took_s: float, problems: list[str]) -> str:
    return (
        f"     at rest after {took_s:.1f} s: {len(world.journal.promised)} acknowledged, "
        f"{len(world.judge.expected.expected)} expected, {len(world.arrivals.taken)} delivered, "
        f"{world.arrivals.repeats} repeats  {report.verdict(problems)}"
    )


def _table(rounds: Sequence[Round], streams: dict[int, float], lanes: dict[int, float]) -> str:
    """Return, by fault, alone and in a pair: how often, and the seconds until deliveries
    continued.
    """
    those = {harm: [one for one in rounds if harm in one.harm.split(" + ")] for harm in HARMS}
    columns = [
        report.total("of pairs", lambda one: "+" in one.harm),
        *report.seconds("recovery", lambda one: one.recovery_s),
        *report.seconds("streams", lambda one: streams[one.number]),
        *report.seconds("lanes", lambda one: lanes[one.number]),
    ]
    return report.table("harm", those, columns)
