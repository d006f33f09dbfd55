"""A round: load, a fault at a random moment, recovery, silence, judgement."""

import asyncio
import random
import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.faults import Done, Fault, restarted
from tests.chaos.hub import WEB_PARTS
from tests.chaos.judge import shorten
from tests.chaos.until import NeverCame, until
from tests.chaos.world import World

RECOVERY_S_MAX = 60.0
ANSWER_S_MAX = 16.0  # while PostgreSQL is away: 503 within about 15 s
NOTICED_S = 2.0  # from the loss of the database until open sockets are notified, at most
PARTS = ("postgres", "redis", *WEB_PARTS)


class Marks(NamedTuple):
    """Counters of the journal and the readers at the start of a round."""

    at: float
    offered: int
    promised: int
    failures: int
    duplicates: int
    unknown: int
    attempts: int
    lost: dict[str, int]
    statuses: dict[str, int]


class Round(NamedTuple):
    """The measurements of a round. Rates in events per second."""

    number: int
    fault: str
    victim: str
    offered: int
    offered_per_s: float
    acknowledged: int
    acknowledged_per_s: float
    refused: int  # attempts
    found_again: int  # events whose repeat found its duplicate
    recovery_s: float  # from the end of the fault to the first answer to an attempt made after it
    silence_s: float  # the longest time without any answer
    seconds: float
    problems: list[str]


class Plan(NamedTuple):
    """The plan of a round. `seconds`: of load, in addition to the fault and the recovery."""

    number: int
    name: str
    fault: Fault
    seconds: float


async def run_round(world: World, plan: Plan, dice: random.Random) -> Round:
    """Run a round and judge it when all is quiet."""
    number, name, fault, seconds = plan
    marks = mark(world)
    problems: list[str] = []
    done, recovery_s, loaded_s = Done("none"), float("inf"), 0.0
    world.journal.note("round", number=number, fault=name)
    world.clock.start()
    try:
        await asyncio.sleep(seconds * dice.uniform(0.1, 0.6))
        ready = {part: world.hub.readiness(part) for part in PARTS}
        done = await fault.run(world.hub, dice)
        world.journal.note("fault", fault=name, victim=done.victim)
        recovery_s = await recovery(world, time.monotonic())
        await asyncio.sleep(seconds * dice.uniform(0.2, 0.5))
        await restarted(world.hub, done, ready)
        loaded_s = time.monotonic() - marks.at
        await world.settle()
    except NeverCame as error:
        problems.append(str(error))
    world.clock.pause()
    answered_s = time.monotonic() - marks.at
    problems += await world.judge.judge(world.journal, list(world.readers.values()))
    problems += misbehaved(world, marks, fault, done)
    for problem in problems:
        world.journal.problem(problem)
    journal = world.journal
    offered = journal.offered - marks.offered
    promised = len(journal.promised) - marks.promised
    return Round(
        number=number,
        fault=name,
        victim=done.victim,
        offered=offered,
        offered_per_s=offered / max(loaded_s or answered_s, 0.001),
        acknowledged=promised,
        acknowledged_per_s=promised / answered_s,
        refused=len(journal.failures) - marks.failures,
        found_again=journal.duplicates - marks.duplicates,
        recovery_s=recovery_s,
        silence_s=silence(journal.ack_times, marks.at, marks.at + answered_s),
        seconds=time.monotonic() - marks.at,
        problems=problems,
    )


def mark(world: World) -> Marks:
    journal = world.journal
    return Marks(
        at=time.monotonic(),
        offered=journal.offered,
        promised=len(journal.promised),
        failures=len(journal.failures),
        duplicates=journal.duplicates,
        unknown=len(journal.unknown),
        attempts=journal.attempts,
        lost={seen.name: seen.lost_connections for seen in world.stayers},
        statuses={seen.name: len(seen.statuses) for seen in world.stayers},
    )


async def recovery(world: World, fault_ended_at: float) -> float:
    """Return the seconds from the end of the fault to the first answer to a later attempt."""
    known = len(world.journal.ack_sent)

    def answered() -> bool:
        world.raise_broken()
        return any(sent > fault_ended_at for sent in world.journal.ack_sent[known:])

    await until(answered, "an emit to be acknowledged after the fault", RECOVERY_S_MAX)
    return time.monotonic() - fault_ended_at


def silence(ack_times: Sequence[float], began: float, ended: float) -> float:
    """Return the longest time without an answer."""
    times = [began, *ack_times[bisect_right(ack_times, began) :], ended]
    return max(after - before for before, after in pairwise(times))


def misbehaved(world: World, marks: Marks, fault: Fault, done: Done) -> list[str]:
    """Return what emitters and open sockets noticed beyond the permitted effects."""
    journal = world.journal
    failures = journal.failures[marks.failures :]
    problems = [journal.problems.pop() for _ in range(len(journal.problems))]
    for failure in failures:
        refused = failure.status == 503 and failure.retry_after and fault.refuses
        cut = failure.status == 0 and (fault.cuts or fault.resets)
        if not refused and not cut:
            problems.append(f"an emit failed as it must not: {failure}")
        elif not fault.cuts and failure.took_s > ANSWER_S_MAX:
            problems.append(f"an emit was left hanging: {failure}")
    problems = shorten(problems)
    given_up = len(journal.unknown) - marks.unknown  # by the emitter that never asks again
    if done.unanswered > given_up and journal.duplicates == marks.duplicates:
        problems.append(f"{done.unanswered} events were unanswered, but no repeat found any")
    if done.unanswered == 0 and "unanswered" in done.victim:
        problems.append("nothing was committed: the fault missed")
    if not fault.cuts:
        problems += _sockets_lost(world, marks)
    if fault.away_s_min > NOTICED_S:
        problems += _sockets_untold(world, marks)
    return problems


def _sockets_lost(world: World, marks: Marks) -> list[str]:
    return [
        f"the socket of {seen.name} was closed"
        for seen in world.stayers
        if seen.lost_connections > marks.lost[seen.name]
    ]


def _sockets_untold(world: World, marks: Marks) -> list[str]:
    """Check that each open socket was notified that the hub waits for its database, and that it
    continues.
    """
    problems = []
    for seen in world.stayers:
        notices = seen.statuses[marks.statuses[seen.name] :]
        words = [(status["state"], status.get("code")) for status in notices]
        if words[:1] != [("waiting", "database_unavailable")] or words[-1] != ("resumed", None):
            problems.append(f"{seen.name} was notified of {words}")
    return problems
