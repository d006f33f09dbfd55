"""The faults: what each does to which process, and what emitters may notice.

A fault returns when it is over (the process was killed, or stopped and continued); the caller
checks that the hub recovers. The length of a fault is drawn from the dice.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import LiteralString, NamedTuple

from tests.chaos.hub import WEB_PARTS, HubUnderTest, send_signal
from tests.chaos.until import until, until_true

STOP_S = (0.2, 6.0)
AWAY_S = 22.0
FAULT_PATIENCE_S = 20.0

WAITING: LiteralString = """
    SELECT pid FROM pg_stat_activity
     WHERE application_name = 'eventhub append' AND wait_event_type = 'Lock'
       AND wait_event = 'relation' AND state = 'active'"""
UNDER_WAY: LiteralString = """
    SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s) AND xact_start IS NOT NULL"""
STORED: LiteralString = "SELECT sum(sequence)::bigint FROM heads WHERE stream_id <> 1"
BACKENDS: LiteralString = """
    SELECT pid FROM pg_stat_activity
     WHERE application_name LIKE 'eventhub%%' AND application_name LIKE %s ORDER BY pid"""


class Done(NamedTuple):
    """The result of a fault. `restarted`: parts that the supervisor starts again."""

    victim: str
    restarted: tuple[str, ...] = ()
    unanswered: int = 0  # events that were committed and whose emitters got no answer


class Fault(NamedTuple):
    """A fault and its permitted effects. `cuts`: connections break. `resets`: requests may get no
    answer, but sockets stay: a process that continues considers connections idle whose next request
    it has not read yet, and closes them. `refuses`: emitters may be answered 503. `away_s_min`: the
    database is unavailable for at least so long, and open sockets must be notified.
    """

    run: Callable[[HubUnderTest, random.Random], Awaitable[Done]]
    cuts: bool = False
    resets: bool = False
    refuses: bool = True
    away_s_min: float = 0.0
    weight: int = 2


async def _kill_web(hub: HubUnderTest, dice: random.Random) -> Done:
    return await _kill_parts(hub, (dice.choice(WEB_PARTS),))


async def _kill_webs(hub: HubUnderTest, _dice: random.Random) -> Done:
    return await _kill_parts(hub, WEB_PARTS)


async def _kill_redis(hub: HubUnderTest, _dice: random.Random) -> Done:
    return await _kill_parts(hub, ("redis",))


async def _kill_postgres(hub: HubUnderTest, _dice: random.Random) -> Done:
    return await _kill_parts(hub, ("postgres",))


async def _kill_parts(hub: HubUnderTest, parts: tuple[str, ...]) -> Done:
    pids = hub.pids(parts)
    send_signal(pids, SIGKILL)
    return Done(f"{' and '.join(parts)} {pids}", parts)


async def _stop_web(hub: HubUnderTest, dice: random.Random) -> Done:
    part = dice.choice(WEB_PARTS)
    return await _stop(part, hub.pids([part]), dice.uniform(*STOP_S))


async def _stop_webs(hub: HubUnderTest, dice: random.Random) -> Done:
    return await _stop("both web", hub.pids(WEB_PARTS), dice.uniform(*STOP_S))


async def _stop_redis(hub: HubUnderTest, dice: random.Random) -> Done:
    return await _stop("redis", hub.pids(["redis"]), dice.uniform(*STOP_S))


async def _stop_postgres(hub: HubUnderTest, dice: random.Random) -> Done:
    return await _stop("all of postgres", postgres_pids(hub), dice.uniform(*STOP_S))


async def _lose_postgres(hub: HubUnderTest, dice: random.Random) -> Done:
    return await _stop("all of postgres", postgres_pids(hub), AWAY_S * dice.uniform(1, 1.2))


def postgres_pids(hub: HubUnderTest) -> list[int]:
    """Return the postmaster, then all its children."""
    return [*hub.pids(["postgres"]), *hub.backends()]


def stop_part(part: str, for_s: float) -> Fault:
    """Return a fault that stops one part for a given time."""

    async def run(hub: HubUnderTest, _dice: random.Random) -> Done:
        return await _stop(part, hub.pids([part]), for_s)

    return Fault(run, refuses=part != "redis")


async def _stop_postmaster(hub: HubUnderTest, dice: random.Random) -> Done:
    return await _stop("the postmaster alone", hub.pids(["postgres"]), dice.uniform(*STOP_S))


async def _stop(victim: str, pids: list[int], for_s: float) -> Done:
    send_signal(pids, SIGSTOP)
    try:
        await asyncio.sleep(for_s)
    finally:
        send_signal(reversed(pids), SIGCONT)
    return Done(f"{victim} for {for_s:.1f} s")


async def _kill_backend(hub: HubUnderTest, dice: random.Random) -> Done:
    name, pid = await _backend(hub, dice)
    send_signal([pid], SIGKILL)  # the postmaster then starts all of them again
    return Done(f"backend of {name} [{pid}]")


async def _stop_backend(hub: HubUnderTest, dice: random.Random) -> Done:
    name, pid = await _backend(hub, dice)
    return await _stop(f"backend of {name} [{pid}]", [pid], dice.uniform(*STOP_S))


async def _backend(hub: HubUnderTest, dice: random.Random) -> tuple[str, int]:
    """Return a session of the hub; every second time one that appends."""
    name = dice.choice(("append", "append", "append", "read", "heads", "listen", "notify"))
    found = await hub.rows(BACKENDS, f"%{name}") or await hub.rows(BACKENDS, "%append")
    return name, int(dice.choice(found)[0])


async def _commit_without_reply(hub: HubUnderTest, _dice: random.Random) -> Done:
    """Kill both web processes after PostgreSQL has committed their appends, and before they know.

    A lock on the table delays the INSERT; the COMMIT follows it in the same network packet. The web
    processes are stopped, the lock is released, the commit happens, they are killed.
    """
    async with await hub.connect() as holder:
        waiting: list[int] = []
        async with holder.transaction():
            await holder.execute("LOCK TABLE events IN SHARE MODE")
            [(before,)] = await hub.rows(STORED)

            async def appends_wait() -> bool:
                waiting[:] = [pid for (pid,) in await hub.rows(WAITING)]
                return bool(waiting)

            await until_true(appends_wait, "an append to wait for the lock", FAULT_PATIENCE_S)
            webs = hub.pids(WEB_PARTS)
            send_signal(webs, SIGSTOP)

        async def committed() -> bool:
            [(under_way,)] = await hub.rows(UNDER_WAY, waiting)
            return bool(under_way == 0)

        try:
            await until_true(committed, "the appends to be committed", FAULT_PATIENCE_S)
            [(after,)] = await hub.rows(STORED)
        finally:
            send_signal(webs, SIGKILL)
    count = after - before
    return Done(f"both web {webs}, {count} events unanswered", WEB_PARTS, count)


FAULTS: dict[str, Fault] = {
    "kill-web": Fault(_kill_web, cuts=True),
    "kill-webs": Fault(_kill_webs, cuts=True),
    "stop-web": Fault(_stop_web, resets=True),
    "stop-webs": Fault(_stop_webs, resets=True),
    "kill-redis": Fault(_kill_redis, refuses=False),
    "stop-redis": Fault(_stop_redis, refuses=False),
    "kill-postgres": Fault(_kill_postgres),
    "stop-postgres": Fault(_stop_postgres),
    "lose-postgres": Fault(_lose_postgres, away_s_min=AWAY_S, weight=1),
    "stop-postmaster": Fault(_stop_postmaster),
    "kill-backend": Fault(_kill_backend),
    "stop-backend": Fault(_stop_backend),
    "commit-without-reply": Fault(_commit_without_reply, cuts=True, weight=4),
}


def choose(dice: random.Random, only: list[str]) -> str:
    """Draw a fault by weight, all or those given."""
    names = only or list(FAULTS)
    return dice.choices(names, [FAULTS[name].weight for name in names])[0]


async def restarted(hub: HubUnderTest, done: Done, before: dict[str, int]) -> None:
    """Wait until the supervisor has reported the killed parts as ready again. `before`: the number
    of its reports before the fault.
    """
    for part in done.restarted:
        await hub.part_ready(part, before[part] + 1)
    for part in ("postgres", "redis", *WEB_PARTS):
        await until(lambda part=part: hub.pid(part) is not None, part, FAULT_PATIENCE_S)  # type: ignore[misc]
