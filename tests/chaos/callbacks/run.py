"""`python -m tests.chaos callbacks`: see docs/chaos.md, "Callbacks"."""

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import report
from tests.chaos.callbacks.harm import HARMS, plan_of
from tests.chaos.callbacks.rounds import Round, lane_recoveries, rest, run_round, stream_recoveries
from tests.chaos.callbacks.world import CallbackWorld

REST_ROUNDS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--rate", type=float, default=810.0, help="events offered per second")
    parser.add_argument("--seconds-per-round", type=float, default=6.0, help="beside the harm")
    parser.add_argument("--rest", type=int, default=REST_ROUNDS, help="rounds between two rests")
    parser.add_argument("--only", action="append", default=[], choices=sorted(HARMS))


async def run(options: argparse.Namespace, data: Path) -> int:
    """All rounds, or until one fails. Returns the exit status."""
    dice = random.Random(options.seed)
    rounds: list[Round] = []
    problems: list[str] = []
    began = time.monotonic()
    async with CallbackWorld.open(data, options.rate, options.seed) as world:
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
        summary = summary_of(world, options, rounds)
        summary |= {"seconds": time.monotonic() - began, "problems": evidence}
    print(_table(rounds, summary["stream_recovery_s"], summary["lane_recovery_s"]))  # type: ignore[arg-type]
    print(", ".join(f"{k} {v}" for k, v in summary.items() if isinstance(v, int | float)))
    print(f"changes of registrations: {summary['changes']}")
    if options.json:
        report.write(options.json, {**summary, "rounds": [one._asdict() for one in rounds]})
    for problem in evidence:
        print(f"PROBLEM: {problem}")
    return 1 if evidence else 0


def summary_of(
    world: CallbackWorld, options: argparse.Namespace, rounds: Sequence[Round]
) -> dict[str, object]:
    owed = world.judge.debts.owed
    matched = {(stream, sequence) for _, stream, sequence in owed}
    loaded_s = world.clock.elapsed_s()
    return {
        "seed": options.seed,
        "offered": world.journal.offered,
        "offered_per_s": round(world.journal.offered / loaded_s, 1),
        "acknowledged": len(world.journal.promised),
        "matched": len(matched),
        "matched_per_s": round(len(matched) / loaded_s, 1),
        "owed": len(owed),
        "for_several_registrations": sum(len(tickets) > 1 for tickets in owed.values()),
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
    verdict = "ok" if not found.problems else f"{len(found.problems)} PROBLEMS"
    return (
        f"{found.number:>3}  {found.harm:<32} offered {found.offered_per_s:>5.0f}/s  "
        f"delivered {found.delivered:>6}  repeated {found.repeated:>5}  "
        f"recovery {found.recovery_s:>5.2f} s  {verdict}  ({found.victim})"
    )


def _rest_line(world: CallbackWorld, took_s: float, problems: list[str]) -> str:
    verdict = "ok" if not problems else f"{len(problems)} PROBLEMS"
    return (
        f"     at rest after {took_s:.1f} s: {len(world.journal.promised)} acknowledged, "
        f"{len(world.judge.debts.owed)} owed, {len(world.arrivals.taken)} delivered, "
        f"{world.arrivals.repeats} repeats  {verdict}"
    )


def _table(rounds: Sequence[Round], streams: dict[int, float], lanes: dict[int, float]) -> str:
    """By harm, alone and as one of a pair: how often, and how long until deliveries went on."""
    lines = [
        f"{'harm':<20}{'rounds':>7}{'of pairs':>9}{'recovery median':>17}{'worst':>8}"
        f"{'streams median':>16}{'worst':>8}{'lanes median':>15}{'worst':>8}{'problems':>10}"
    ]
    for harm in HARMS:
        those = [one for one in rounds if harm in one.harm.split(" + ")]
        if not those:
            continue
        recoveries = sorted(one.recovery_s for one in those)
        all_streams = sorted(streams[one.number] for one in those)
        ordered = sorted(lanes[one.number] for one in those)
        middle = len(those) // 2
        lines.append(
            f"{harm:<20}{len(those):>7}{sum('+' in one.harm for one in those):>9}"
            f"{recoveries[middle]:>15.2f} s{recoveries[-1]:>6.2f} s"
            f"{all_streams[middle]:>14.2f} s{all_streams[-1]:>6.2f} s"
            f"{ordered[middle]:>13.2f} s{ordered[-1]:>6.2f} s"
            f"{sum(len(one.problems) for one in those):>10}"
        )
    return "\n".join(lines)
