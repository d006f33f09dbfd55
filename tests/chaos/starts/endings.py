"""The ways in which a hub ends: on request, killed in part, or killed whole."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import psutil

from tests.chaos.hub import HubUnderTest, send_signal
from tests.chaos.until import until

END_PATIENCE_S = 120.0  # of a hub that was asked to stop; it promises 10, on a machine of its own


class Ended(NamedTuple):
    """The course of an end. `seconds` until the supervisor had ended."""

    seconds: float
    problems: list[str]
    stays: bool = False  # something is left that does not end by itself


Ending = Callable[[HubUnderTest, random.Random], Awaitable[Ended]]


async def interrupted(hub: HubUnderTest, _dice: random.Random) -> Ended:
    """Press Ctrl-C."""
    return await _stop(hub)


async def interrupted_twice(hub: HubUnderTest, dice: random.Random) -> Ended:
    """Press Ctrl-C, and once more shortly after."""
    hub.interrupt()
    await asyncio.sleep(dice.uniform(0.0, 1.0))
    return await _stop(hub)


async def stuck(hub: HubUnderTest, _dice: random.Random) -> Ended:
    """Press Ctrl-C while PostgreSQL is stopped: it does not end within its grace period and is
    killed.
    """
    send_signal([*hub.backends(), *hub.pids(["postgres"])], signal.SIGSTOP)
    return await _stop(hub)


async def postgres_killed(hub: HubUnderTest, _dice: random.Random) -> Ended:
    """Kill the postmaster with SIGKILL, then press Ctrl-C."""
    send_signal(hub.pids(["postgres"]), signal.SIGKILL)
    return await _stop(hub)


async def guardian_killed(hub: HubUnderTest, _dice: random.Random) -> Ended:
    """Kill PostgreSQL's guardian with SIGKILL, then press Ctrl-C."""
    send_signal(hub.guardians(["postgres"]), signal.SIGKILL)
    return await _stop(hub)


async def supervisor_killed(hub: HubUnderTest, _dice: random.Random) -> Ended:
    """Kill the supervisor with SIGKILL; the guardians stop the parts."""
    return await _killed(hub, [hub.supervisor])


async def guardians_killed(hub: HubUnderTest, dice: random.Random) -> Ended:
    """Kill the supervisor and all guardians with SIGKILL."""
    return await _killed(hub, [hub.supervisor, *_children(hub)], dice)


async def all_killed(hub: HubUnderTest, dice: random.Random) -> Ended:
    """Kill everything that the hub started with SIGKILL."""
    return await _killed(hub, [hub.supervisor, *_children(hub, below=True)], dice)


async def all_but_backends_killed(hub: HubUnderTest, dice: random.Random) -> Ended:
    """Kill everything except PostgreSQL's backends with SIGKILL; half of the backends are stopped,
    so they may not notice that the postmaster is gone.
    """
    backends = hub.backends()
    send_signal(backends[::2], signal.SIGSTOP)
    others = [pid for pid in _children(hub, below=True) if pid not in backends]
    ended = await _killed(hub, [hub.supervisor, *others], dice)
    return ended._replace(stays=bool(backends))


ENDINGS: dict[str, Ending] = {
    "ctrl-c": interrupted,
    "ctrl-c-twice": interrupted_twice,
    "ctrl-c-stuck-postgres": stuck,
    "kill-postgres-ctrl-c": postgres_killed,
    "kill-guardian-ctrl-c": guardian_killed,
    "kill-supervisor": supervisor_killed,
    "kill-guardians": guardians_killed,
    "kill-all": all_killed,
    "kill-all-but-backends": all_but_backends_killed,
}


async def _stop(hub: HubUnderTest) -> Ended:
    """Press Ctrl-C; check that the hub ends with status 0 and leaves nothing."""
    began = time.monotonic()
    hub.interrupt()
    await until(lambda: not hub.running, "the end of the hub", END_PATIENCE_S)
    left, status = hub.leftovers(), await asyncio.to_thread(hub.wait_end)
    problems = [f"left behind by a hub that had stopped: {line}" for line in left]
    if status:
        problems.append(f"Ctrl-C ended the hub with status {status}")
    if not hub.output().rstrip().endswith("stopped"):
        problems.append(f"the last line of a hub that stopped is {hub.lines()[-1:]}")
    return Ended(time.monotonic() - began, problems)


async def _killed(hub: HubUnderTest, pids: list[int], dice: random.Random | None = None) -> Ended:
    """Kill processes with SIGKILL in any order, the supervisor among them, without waiting for the
    others.
    """
    began = time.monotonic()
    if dice is not None:
        dice.shuffle(pids)
    send_signal(pids, signal.SIGKILL)
    await until(lambda: not hub.running, "the end of the supervisor", END_PATIENCE_S)
    return Ended(time.monotonic() - began, [])


def _children(hub: HubUnderTest, *, below: bool = False) -> list[int]:
    with contextlib.suppress(psutil.Error):
        return [one.pid for one in psutil.Process(hub.supervisor).children(recursive=below)]
    return []


def load_average() -> float:
    return os.getloadavg()[0]
