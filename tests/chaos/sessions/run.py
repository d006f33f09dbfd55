"""The command `python -m tests.chaos sessions`: see docs/chaos.md, "Sessions"."""

import argparse
import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from tests.chaos import report
from tests.chaos.callbacks.receivers import ask
from tests.chaos.hub import WEB_PARTS, HubUnderTest, send_signal
from tests.chaos.readers import close_quietly
from tests.chaos.sessions.consumer import Connection, Consumer, Plan
from tests.chaos.sessions.flow import STREAMS, Flow, Key
from tests.chaos.sessions.orders import missing, problems_of

WINDOW = 20
HELD_MS = 200
PLANS = (
    Plan("none", "none", {}),
    Plan("fifo", "fifo", {}),
    Plan("priority", "priority", {}),
    Plan("validity", "validity", {}),
    Plan("supplier", "supplier", {"hold_ms": HELD_MS}),
    Plan("type", "type", {}),
    Plan("timestamp", "timestamp", {"occur_delay_ms": HELD_MS, "hold_ms": 5_000}),
    Plan("causal", "causal", {"hold_ms": HELD_MS}),
)
KILL_EVERY_S = (1.0, 4.0)
TRIES = 20  # to drain a session, whose process may be killed meanwhile


class Found(NamedTuple):
    """A round: what flowed and what was wrong."""

    number: int
    emitted: int
    kills: int
    received: int
    repeats: int  # events that came again on a later connection
    connections: int
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rate", type=float, default=150.0, help="events offered per second")
    parser.add_argument("--seconds-per-round", type=float, default=8.0, help="of kills")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run all rounds, or until one fails. Return the exit status."""
    print(f"seed {options.seed}, data {data}", flush=True)
    rounds: list[Found] = []
    async with scene_of(data, options.rate, options.seed) as scene:
        for number in range(1, options.rounds + 1):
            rounds.append(await scene.round(number, options.seconds_per_round))
            print(_line(rounds[-1]), flush=True)
            if rounds[-1].problems:
                break
    totals = {
        name: sum(getattr(each, name) for each in rounds)
        for name in ("emitted", "kills", "received", "repeats", "connections")
    }
    print(", ".join(f"{name} {value}" for name, value in totals.items()))
    summary = {"seed": options.seed, **totals, "rounds": [each._asdict() for each in rounds]}
    return report.end(options.json, summary, [p for each in rounds for p in each.problems])


class Scene:
    """A hub, its producer, and a session of each order."""

    def __init__(
        self, hub: HubUnderTest, http: aiohttp.ClientSession, flow: Flow, seed: int
    ) -> None:
        self.flow = flow
        self.consumers = [
            Consumer(hub.url, plan, random.Random(f"{seed}-{plan.name}")) for plan in PLANS
        ]
        self._hub = hub
        self._http = http
        self._dice = random.Random(seed)

    async def round(self, number: int, seconds: float) -> Found:
        """Kill web processes while events flow; then drain every session twice, once without an
        acknowledgement, and judge all connections.
        """
        before = len(self.flow.events)
        flowing = asyncio.create_task(self.flow.run())
        reading = [asyncio.create_task(one.run(self._http)) for one in self.consumers]
        kills = await self._kill(seconds)
        self.flow.stop()
        await flowing
        await close_quietly(reading)
        problems = await self._drain(acknowledge=False)
        problems += await self._drain(acknowledge=True)
        for each in self.consumers:
            problems += problems_of(each, self.flow.events) + each.problems
        found = Found(
            number,
            len(self.flow.events) - before,
            kills,
            sum(len(one.received) for each in self.consumers for one in each.connections),
            sum(map(_repeats, self.consumers)),
            sum(len(each.connections) for each in self.consumers),
            problems + self.flow.problems,
        )
        for each in self.consumers:
            each.connections.clear()
        return found

    async def _kill(self, seconds: float) -> int:
        kills, until_s = 0, time.monotonic() + seconds
        while (now_s := time.monotonic()) < until_s:
            await asyncio.sleep(min(self._dice.uniform(*KILL_EVERY_S), until_s - now_s))
            pids = self._hub.pids([self._dice.choice(WEB_PARTS)])
            send_signal(pids, signal.SIGKILL)
            kills += len(pids)
        return kills

    async def _drain(self, *, acknowledge: bool) -> list[str]:
        async with asyncio.TaskGroup() as group:
            done = [
                group.create_task(self._drain_one(each, acknowledge=acknowledge))
                for each in self.consumers
            ]
        return [problem for each in done for problem in each.result()]

    async def _drain_one(self, consumer: Consumer, *, acknowledge: bool) -> list[str]:
        events, name = self.flow.events, consumer.plan.name

        def lost(connection: Connection) -> list[Key]:
            return missing(consumer, connection, events, time.time_ns() // 1_000)

        error: Exception | None = None
        for _ in range(TRIES):
            try:
                await consumer.drain(
                    self._http, lambda connection: not lost(connection), acknowledge=acknowledge
                )
                return []
            except (aiohttp.ClientError, ConnectionError) as failed:
                error = failed
                await asyncio.sleep(0.5)
            except TimeoutError:
                never = lost(consumer.connections[-1])
                return [f"{name}: {len(never)} events never came: {never[:5]}"]
        return [f"{name}: cannot connect: {error!r}"]


def _repeats(consumer: Consumer) -> int:
    keys = [one.key for each in consumer.connections for one in each.received]
    return len(keys) - len(set(keys))


@asynccontextmanager
async def scene_of(data: Path, rate: float, seed: int) -> AsyncIterator[Scene]:
    """Open a hub with the streams and the sessions; stop everything at the end."""
    hub = HubUnderTest(data / "hub")
    try:
        await hub.ready()
        key = await asyncio.to_thread(hub.create_key, "sessions")
        headers = {"Authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            for stream in STREAMS:
                await ask(http, "PUT", f"{hub.url}/v1/streams/{stream}", {})
            for plan in PLANS:
                await _create(http, hub.url, plan)
            flow = Flow(hub.url, key, rate, random.Random(seed + 1))
            yield Scene(hub, http, flow, seed)
    finally:
        with suppress(ProcessLookupError):
            hub.stop()


async def _create(http: aiohttp.ClientSession, url: str, plan: Plan) -> None:
    """Create a session with a registration of everything."""
    session: dict[str, Any] = {"name": plan.name, "kind": "consumer", "window": WINDOW}
    session |= {"order": plan.order, "order_options": plan.options}
    await ask(http, "POST", f"{url}/v1/sessions", session)
    registration = {"streams": [*STREAMS], "domain": "chaos", "session": plan.name}
    await ask(http, "POST", f"{url}/v1/registrations", registration)


def _line(one: Found) -> str:
    return (
        f"{one.number:>3}  emitted {one.emitted:>6}  killed {one.kills:>2}  received "
        f"{one.received:>7}  again {one.repeats:>6}  connections {one.connections:>4}  "
        f"{report.verdict(one.problems)}"
    )
