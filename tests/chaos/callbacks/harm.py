"""Faults of the processes of a hub with callbacks, alone and in pairs.

A fault returns a description of its victim when it is over: killed, or suspended and continued.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any, LiteralString, NamedTuple

import psycopg
import redis.asyncio as redis

from eventhub.supervisor.redis import Redis
from tests.chaos.hub import WEB_PARTS, HubUnderTest, send_signal

FORWARDERS = ("forward-1", "forward-2")
WORKERS = ("worker-1", "worker-2")
STOP_S = (0.2, 6.0)
LEASE_STOP_S = (3.2, 7.0)  # longer than a forwarder's lease
CLAIM_STOP_S = (6.0, 12.0)  # longer than others believe that a worker lives
PAIR_SHARE = 0.4
PAIR_LAG_S = (0.0, 1.5)
ASK_S = 2.0

LEADER: LiteralString = """
    SELECT f.owner::text FROM forwarding f JOIN streams s ON s.id = f.stream_id
     WHERE f.expires_at > clock_timestamp() AND s.name LIKE %s
     GROUP BY f.owner ORDER BY count(*) DESC, f.owner LIMIT 1"""
BACKENDS: LiteralString = """
    SELECT pid FROM pg_stat_activity WHERE application_name = ANY (%s) ORDER BY pid"""
SESSIONS = ["eventhub forward", "eventhub dispatcher", "eventhub results", "eventhub append"]
READY = re.compile(r"(forward-\d+).*forwarder_ready.*?([0-9a-f]{8}-[0-9a-f-]{27})")

Run = Callable[[HubUnderTest, random.Random], Awaitable[str]]


class Harm(NamedTuple):
    """A kind of fault. `kind`: two faults of a kind are not combined."""

    run: Run
    kind: str
    weight: int = 2


class Plan(NamedTuple):
    """The faults of a round: one, or a second one `lag_s` later."""

    names: tuple[str, ...]
    lag_s: float

    @property
    def title(self) -> str:
        return " + ".join(self.names)


def kill(*parts: str) -> Run:
    async def run(hub: HubUnderTest, _dice: random.Random) -> str:
        return _killed(hub, parts)

    return run


def kill_one(parts: Sequence[str]) -> Run:
    async def run(hub: HubUnderTest, dice: random.Random) -> str:
        return _killed(hub, (dice.choice(parts),))

    return run


def stop_one(parts: Sequence[str], span_s: tuple[float, float]) -> Run:
    async def run(hub: HubUnderTest, dice: random.Random) -> str:
        part = dice.choice(parts)
        return await _stopped(part, hub.pids([part]), dice.uniform(*span_s))

    return run


def stop_all(parts: Sequence[str], span_s: tuple[float, float]) -> Run:
    async def run(hub: HubUnderTest, dice: random.Random) -> str:
        return await _stopped(" and ".join(parts), hub.pids(parts), dice.uniform(*span_s))

    return run


async def _kill_leader(hub: HubUnderTest, dice: random.Random) -> str:
    return _killed(hub, (await leader(hub, dice),))


async def _stop_leader(hub: HubUnderTest, dice: random.Random) -> str:
    part = await leader(hub, dice)
    return await _stopped(part, hub.pids([part]), dice.uniform(*LEASE_STOP_S))


async def leader(hub: HubUnderTest, dice: random.Random, streams: str = "%") -> str:
    """Return the forwarder with most leases of the named streams; any, if that is unknown."""
    parts = {owner: part for part, owner in READY.findall(hub.output())}
    owners: list[tuple[Any, ...]] = []
    try:
        async with asyncio.timeout(ASK_S):
            owners = await hub.rows(LEADER, streams)
    except (psycopg.Error, OSError, TimeoutError):
        pass
    known = [parts[owner] for (owner,) in owners if owner in parts]
    return known[0] if known else dice.choice(FORWARDERS)


def _killed(hub: HubUnderTest, parts: Sequence[str]) -> str:
    pids = hub.pids(parts)
    send_signal(pids, SIGKILL)
    return f"{' and '.join(parts)} {pids}"


async def _stopped(victim: str, pids: list[int], for_s: float) -> str:
    send_signal(pids, SIGSTOP)
    try:
        await asyncio.sleep(for_s)
    finally:
        send_signal(reversed(pids), SIGCONT)
    return f"{victim} for {for_s:.1f} s"


async def _stop_postgres(hub: HubUnderTest, dice: random.Random) -> str:
    pids = [*hub.pids(["postgres"]), *hub.backends()]
    return await _stopped("all of postgres", pids, dice.uniform(*STOP_S))


async def _kill_backend(hub: HubUnderTest, dice: random.Random) -> str:
    """Kill one session of the hub; the postmaster then ends all of them."""
    try:
        async with asyncio.timeout(ASK_S):
            found = await hub.rows(BACKENDS, SESSIONS)
    except (psycopg.Error, OSError, TimeoutError):
        found = []
    if not found:
        return _killed(hub, ("postgres",))
    pid = int(dice.choice(found)[0])
    send_signal([pid], SIGKILL)
    return f"backend {pid}"


async def _flush_redis(hub: HubUnderTest, _dice: random.Random) -> str:
    socket = str(Redis(hub.data / "run").socket)
    client = redis.Redis(unix_socket_path=socket, socket_timeout=1.0)
    try:
        await client.flushall()
    except (redis.RedisError, OSError):
        return "redis was away"
    finally:
        await client.aclose()
    return "redis, all keys"


HARMS: dict[str, Harm] = {
    "kill-web": Harm(kill_one(WEB_PARTS), "web"),
    "kill-webs": Harm(kill(*WEB_PARTS), "web", 1),
    "stop-web": Harm(stop_one(WEB_PARTS, STOP_S), "web"),
    "kill-leader": Harm(_kill_leader, "forward", 4),
    "kill-forwarders": Harm(kill(*FORWARDERS), "forward"),
    "stop-leader": Harm(_stop_leader, "forward", 3),
    "stop-forwarders": Harm(stop_all(FORWARDERS, LEASE_STOP_S), "forward"),
    "kill-worker": Harm(kill_one(WORKERS), "worker", 3),
    "kill-workers": Harm(kill(*WORKERS), "worker"),
    "stop-worker": Harm(stop_one(WORKERS, STOP_S), "worker"),
    "outlast-claim": Harm(stop_one(WORKERS, CLAIM_STOP_S), "worker", 1),
    "kill-beat": Harm(kill("beat"), "beat", 1),
    "kill-redis": Harm(kill("redis"), "redis"),
    "flush-redis": Harm(_flush_redis, "redis"),
    "stop-redis": Harm(stop_one(("redis",), STOP_S), "redis"),
    "kill-postgres": Harm(kill("postgres"), "postgres"),
    "stop-postgres": Harm(_stop_postgres, "postgres"),
    "kill-backend": Harm(_kill_backend, "postgres"),
}


def plan_of(dice: random.Random, only: Sequence[str]) -> Plan:
    """Return one fault by weight, or two of different kinds."""
    first = _choose(dice, list(only or HARMS))
    others = [name for name in (only or HARMS) if HARMS[name].kind != HARMS[first].kind]
    lag_s = dice.uniform(*PAIR_LAG_S)
    if not others or dice.random() >= PAIR_SHARE:
        return Plan((first,), lag_s)
    return Plan((first, _choose(dice, others)), lag_s)


def _choose(dice: random.Random, names: list[str]) -> str:
    return dice.choices(names, [HARMS[name].weight for name in names])[0]


async def do(hub: HubUnderTest, plan: Plan, dice: random.Random) -> str:
    """Execute a plan; return what was done when all of it is over."""
    seeds = [dice.random() for _ in plan.names]

    async def one(index: int) -> str:
        await asyncio.sleep(plan.lag_s * index)
        return await HARMS[plan.names[index]].run(hub, random.Random(seeds[index]))

    return ", ".join(await asyncio.gather(*map(one, range(len(plan.names)))))
