"""Rounds of faults in a hub with callbacks. The load continues from round to round. Every round is
judged under load, and every few rounds the whole hub is judged at rest.
"""

import asyncio
import random
import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from tests.chaos.callbacks.arrivals import Arrivals
from tests.chaos.callbacks.harm import FORWARDERS, WORKERS, Plan, do
from tests.chaos.callbacks.world import ENDPOINTS, STREAMS, CallbackWorld
from tests.chaos.hub import WEB_PARTS
from tests.chaos.until import NeverCame, until

RECOVERY_S_MAX = 90.0
PARTS_S_MAX = 60.0
PARTS = ("postgres", "redis", "beat", *WEB_PARTS, *FORWARDERS, *WORKERS)


class Round(NamedTuple):
    """The measurements of a round."""

    number: int
    harm: str
    victim: str
    began_at: float  # the harm, by the machine's monotonic clock ...
    over_at: float  # ... and when it was over
    offered_per_s: float
    recovery_s: float  # from then to the first delivery of an event offered since
    delivered: int  # first arrivals
    repeated: int
    seconds: float
    problems: list[str]


async def run_round(
    world: CallbackWorld, number: int, plan: Plan, dice: random.Random, seconds: float
) -> Round:
    """Run a round and judge it under load. `seconds`: of load, in addition to fault and
    recovery.
    """
    began, offered = time.monotonic(), world.journal.offered
    arrived, firsts = world.arrivals.count, len(world.arrivals.firsts)
    problems: list[str] = []
    victim, began_at, over_at, recovery_s = "", began, began, float("inf")
    world.journal.note("round", number=number, harm=plan.title)
    try:
        await asyncio.sleep(seconds * dice.uniform(0.1, 0.6))
        began_at = time.monotonic()
        victim = await do(world.hub, plan, dice)
        over_at = time.monotonic()
        world.journal.note("harm", harm=plan.title, victim=victim)
        recovery_s = await _recovery(world, over_at)
        await asyncio.sleep(seconds * dice.uniform(0.1, 0.5))
        problems += await world.judge.judge(world.arrivals, world.registrar.changes)
        await _all_there(world)
    except NeverCame as error:
        problems.append(str(error))
    problems += _taken(world.journal.problems) + _taken(world.registrar.problems)
    for problem in problems:
        world.journal.problem(problem)
    world.journal.problems.clear()
    took_s = time.monotonic() - began
    new = len(world.arrivals.firsts) - firsts
    return Round(
        number=number,
        harm=plan.title,
        victim=victim,
        began_at=began_at,
        over_at=over_at,
        offered_per_s=(world.journal.offered - offered) / took_s,
        recovery_s=recovery_s,
        delivered=new,
        repeated=world.arrivals.count - arrived - new,
        seconds=took_s,
        problems=problems,
    )


async def rest(world: CallbackWorld) -> tuple[float, list[str]]:
    """Bring everything to rest and judge it, the log included; sick receivers are well meanwhile.
    Return the seconds it took, and the problems.
    """
    began = time.monotonic()
    problems: list[str] = []
    try:
        await world.settle()
    except NeverCame as error:
        problems.append(str(error))
    await world.make_well()
    problems += await world.judge.rest(world.arrivals, world.registrar.changes)
    await world.make_sick()
    took_s = time.monotonic() - began
    problems += await world.log_judge.read_on()
    problems += world.log_judge.promises_wrong(world.journal.promised)
    problems += _taken(world.journal.problems) + _taken(world.registrar.problems)
    for problem in problems:
        world.journal.problem(problem)
    world.journal.problems.clear()
    return took_s, problems


async def _recovery(world: CallbackWorld, over_at: float) -> float:
    """Return the seconds from the end of the fault to the first delivery of an event
    offered since.
    """
    landings = world.arrivals.landings
    seen = len(landings)

    def landed() -> bool:
        nonlocal seen
        world.raise_broken()
        new, seen = landings[seen:], len(landings)
        return any(landing.tried_at > over_at for landing in new)

    await until(landed, "a delivery of an event offered after the harm", RECOVERY_S_MAX)
    return time.monotonic() - over_at


async def _all_there(world: CallbackWorld) -> None:
    """Return whether the supervisor has restarted everything that died."""
    for part in PARTS:
        await until(lambda part=part: world.hub.pid(part) is not None, part, PARTS_S_MAX)  # type: ignore[misc]


def lane_recoveries(world: CallbackWorld, rounds: Sequence[Round]) -> dict[int, float]:
    """Return, by round, the seconds until every ordered endpoint had an event offered after the
    fault.
    """
    lanes = [name for name, endpoint in ENDPOINTS.items() if endpoint.ordered]
    found = {}
    for one in rounds:
        firsts = [
            min(
                (landing.at for landing in world.arrivals.landings
                 if landing.endpoint == lane and landing.tried_at > one.over_at),
                default=float("inf"),
            )
            for lane in lanes
        ]  # fmt: skip
        found[one.number] = max(firsts) - one.over_at
    return found


def stream_recoveries(world: CallbackWorld, rounds: Sequence[Round]) -> dict[int, float]:
    """Return, by round, the seconds from the start of the fault until every stream had a delivery
    of an event offered since.
    """
    return {
        one.number: max(first_after(world.arrivals, stream, one.began_at) for stream in STREAMS)
        - one.began_at
        for one in rounds
    }


def first_after(arrivals: Arrivals, stream: str, at: float) -> float:
    """Return when the first event arrived that was offered later; infinity if none has."""
    landings = arrivals.landings
    begin = bisect_left(landings, at, key=lambda landing: landing.at)
    for landing in islice(landings, begin, None):
        if landing.stream == stream and landing.tried_at > at:
            return landing.at
    return float("inf")


def _taken(problems: list[str]) -> list[str]:
    found, problems[:] = problems[:5], []
    return found
