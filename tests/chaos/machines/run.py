"""The command `python -m tests.chaos machines`: see docs/chaos.md, "Machines"."""

import argparse
import asyncio
import random
import time
from pathlib import Path
from typing import NamedTuple

from tests.chaos import report
from tests.chaos.callbacks.rounds import first_after
from tests.chaos.judge import last_judgement, shorten
from tests.chaos.machines.machine import PARTS, Machine
from tests.chaos.machines.world import MachinesWorld
from tests.chaos.rounds import silence
from tests.chaos.until import NeverCame, until
from tests.chaos.world import STREAMS

PART_S_MAX = 60.0


class Round(NamedTuple):
    """The measurements of a round."""

    number: int
    victim: str
    acknowledged: int
    found_again: int  # events whose repeat found its duplicate
    delivered: int  # first arrivals at endpoints
    repeated: int
    reconnected: int  # connections of listeners that ended without being closed by them
    silence_s: float  # the longest time without any answer to an emit
    callbacks_s: float  # from the kill until each stream had a callback of an event offered later
    start_s: float  # of the killed machine, until it is ready
    seconds: float
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rate", type=float, default=300.0, help="events offered per second")
    parser.add_argument("--seconds-per-round", type=float, default=12.0, help="beside the restart")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run all rounds, or until one fails. Return the exit status."""
    dice = random.Random(options.seed)
    print(f"seed {options.seed}, data {data}", flush=True)
    rounds: list[Round] = []
    async with MachinesWorld.open(data, options.rate, options.seed) as world:
        for number in range(1, options.rounds + 1):
            victim = dice.choice(world.machines)
            own = random.Random(dice.random())
            rounds.append(await run_round(world, number, victim, own, options.seconds_per_round))
            print(_line(rounds[-1]), flush=True)
            if rounds[-1].problems:
                break
        problems = [problem for one in rounds for problem in one.problems]
        problems += await last_judgement(world.machines[0].hub, world.key, world.journal)
        changes = world.registrar.counts
    print(_table(rounds))
    print(f"changes of registrations: {changes}")
    summary = {
        "seed": options.seed,
        "offered": world.journal.offered,
        "acknowledged": len(world.journal.promised),
        "changes": changes,
        "rounds": [one._asdict() for one in rounds],
    }
    return report.end(options.json, summary, problems)


async def run_round(
    world: MachinesWorld, number: int, victim: Machine, dice: random.Random, seconds: float
) -> Round:
    """Kill one machine under load, leave the other alone for a while, start the first again, and
    judge when all is quiet. `seconds`: of load, beside the start.
    """
    began, journal, arrivals = time.monotonic(), world.journal, world.arrivals
    promised, again = len(journal.promised), journal.duplicates
    failures, lost = len(journal.failures), _lost(world)
    arrived, firsts = arrivals.count, len(arrivals.firsts)
    problems: list[str] = []
    killed_at, start_s = began, float("inf")
    journal.note("round", number=number, victim=victim.data.name)
    world.go()
    try:
        await asyncio.sleep(seconds * dice.uniform(0.1, 0.3))
        killed_at = time.monotonic()
        await victim.kill(dice)
        journal.note("killed", victim=victim.data.name)
        await asyncio.sleep(seconds * dice.uniform(0.3, 0.5))
        starting = time.monotonic()
        await victim.start()
        start_s = time.monotonic() - starting
        await asyncio.sleep(seconds * dice.uniform(0.1, 0.3))
        await world.settle()
    except NeverCame as error:
        problems.append(str(error))
    silence_s = silence(journal.ack_times, began, time.monotonic())
    problems += await _judged(world, failures)
    for problem in problems:
        journal.note("problem", text=problem)
    new = len(arrivals.firsts) - firsts
    return Round(
        number=number,
        victim=victim.data.name,
        acknowledged=len(journal.promised) - promised,
        found_again=journal.duplicates - again,
        delivered=new,
        repeated=arrivals.count - arrived - new,
        reconnected=_lost(world) - lost,
        silence_s=silence_s,
        callbacks_s=max(first_after(arrivals, name, killed_at) for name in STREAMS) - killed_at,
        start_s=start_s,
        seconds=time.monotonic() - began,
        problems=problems,
    )


async def _judged(world: MachinesWorld, failures: int) -> list[str]:
    """Judge the log, the listeners, the callbacks and the registrations at rest. `failures`: the
    number of failed attempts before this round.
    """
    journal, problems = world.journal, []
    for machine in world.machines:
        for part in PARTS:
            try:
                await until(
                    lambda hub=machine.hub, part=part: hub.pid(part) is not None,  # type: ignore[misc]
                    f"{part} of {machine.data.name}",
                    PART_S_MAX,
                )
            except NeverCame as error:
                problems.append(str(error))
    problems += await world.judge.judge(journal, world.readers)
    problems += await world.callbacks.rest(world.arrivals, world.registrar.changes)
    problems += shorten(
        [
            f"an emit failed as it must not: {one}"
            for one in journal.failures[failures:]
            if one.status and not (one.status == 503 and one.retry_after)
        ]
    )
    for found in (journal.problems, world.registrar.problems):
        problems += shorten(found)
        found.clear()
    return problems


def _lost(world: MachinesWorld) -> int:
    return sum(seen.lost_connections for seen in world.readers)


def _line(one: Round) -> str:
    return (
        f"{one.number:>3}  {one.victim}  acknowledged {one.acknowledged:>6}  found again "
        f"{one.found_again:>4}  delivered {one.delivered:>6}  repeated {one.repeated:>4}  "
        f"reconnected {one.reconnected:>3}  silence {one.silence_s:>5.2f} s  callbacks "
        f"{one.callbacks_s:>5.2f} s  start {one.start_s:>5.2f} s  {report.verdict(one.problems)}"
    )


def _table(rounds: list[Round]) -> str:
    victims = sorted({one.victim for one in rounds})
    columns = [
        report.total("acknowledged", lambda one: one.acknowledged),
        report.total("found again", lambda one: one.found_again),
        report.total("delivered", lambda one: one.delivered),
        report.total("repeated", lambda one: one.repeated),
        report.total("reconnected", lambda one: one.reconnected),
        *report.seconds("silence", lambda one: one.silence_s),
        *report.seconds("callbacks", lambda one: one.callbacks_s),
        *report.seconds("start", lambda one: one.start_s),
    ]
    those = {name: [one for one in rounds if one.victim == name] for name in victims}
    return report.table("killed", those, columns)
