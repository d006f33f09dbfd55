"""The command `python -m tests.chaos restart`: see docs/chaos.md, "Restarts under sockets"."""

import argparse
import asyncio
import resource
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import aiohttp

from tests.chaos import report
from tests.chaos.hub import HubUnderTest, send_signal
from tests.chaos.judge import shorten
from tests.chaos.readers import close_quietly
from tests.chaos.restart.fleet import PER_CLIENT, Member, Producer, WatchedSession, create
from tests.chaos.until import until

REPLACED = "all processes are replaced"
PATIENCE_S = 180.0
SLOT_S = 0.1
HERD_MAX = 0.1  # share of the sockets that may try to connect within one SLOT_S
HERD_MIN = 100  # attempts that are no herd


class Step(NamedTuple):
    """A restart: how long it took, and how the sockets came back."""

    name: str
    seconds: float  # of the restart itself
    back_s: float  # from its begin until every session was connected
    attempts: int
    peak: int  # attempts within SLOT_S
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sockets", type=int, default=5_000)
    parser.add_argument("--rate", type=float, default=100.0, help="events offered per second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of load between two steps")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Replace the web processes, kill one, and restart the hub, under load. Return the exit
    status.
    """
    _allow_sockets(options.sockets)
    async with Drill(data, options.sockets, options.rate) as drill:
        steps = await drill.go(options.seconds)
        problems = [problem for step in steps for problem in step.problems] + drill.judge()
        summary = {**drill.summary(), "steps": [step._asdict() for step in steps]}
    print(", ".join(f"{name} {value}" for name, value in summary.items() if name != "steps"))
    return report.end(options.json, summary, problems)


class Drill:
    """A hub, its fleet of sessions, and their producer."""

    def __init__(self, data: Path, sockets: int, rate: float) -> None:
        self._data = data
        self._sockets = sockets
        self._rate = rate
        self._stack = AsyncExitStack()
        self._members: list[Member] = []
        self._attempts: list[float] = []
        self._connected_s = 0.0
        self._started = 0  # members that run

    async def __aenter__(self) -> "Drill":
        self._hub = HubUnderTest(self._data / "hub")
        self._stack.callback(lambda: self._hub.stop())
        await self._hub.ready()
        url = self._hub.url
        keys = [
            await asyncio.to_thread(self._hub.create_key, f"fleet-{client}")
            for client in range(-(-self._sockets // PER_CLIENT))
        ]
        await create(url, keys, self._sockets)
        print(f"{self._sockets} sessions created", flush=True)
        WatchedSession.attempts = self._attempts
        for number in range(self._sockets):
            if number % PER_CLIENT == 0:
                http = await self._stack.enter_async_context(_http(keys[number // PER_CLIENT]))
            self._members.append(Member(http, url, number))
        self._producer = Producer(url, keys[0], self._rate, self._sockets)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def go(self, seconds: float) -> list[Step]:
        """Connect everything, perform each step with load before and after, and let all events
        arrive.
        """
        began_s = time.monotonic()
        running = []
        for at, member in enumerate(self._members, 1):
            running.append(asyncio.create_task(member.run()))
            self._started = at
            if at % 100 == 0:
                await until(lambda: self._missing() == 0, "the first connections", PATIENCE_S)
        await until(lambda: self._missing() == 0, "the first connections", PATIENCE_S)
        self._connected_s = time.monotonic() - began_s
        print(f"{self._sockets} sessions connected within {self._connected_s:.1f} s", flush=True)
        producing = asyncio.create_task(self._producer.run())
        performed: dict[str, Callable[[], Awaitable[None]]] = {
            "replace": self._replace,
            "kill": self._kill,
            "restart": self._restart,
        }
        steps = []
        for name, perform in performed.items():
            await asyncio.sleep(seconds)
            steps.append(await self._step(name, perform))
            print(_line(steps[-1], self._sockets), flush=True)
        await asyncio.sleep(seconds)
        self._producer.stop()
        await producing
        await until(lambda: not self._unreceived(), "the last events", PATIENCE_S)
        await close_quietly(running)
        return steps

    def judge(self) -> list[str]:
        """Return what is wrong: events that never came, or that came again though their
        acknowledgement was stored; and errors.
        """
        problems = [problem for member in self._members for problem in member.problems]
        problems += [f"event {n} for s{s} never came" for n, s in self._unreceived()]
        for member in self._members:
            for number in member.received:
                if f"s{self._producer.emitted.get(number)}" != member.session.name:
                    problems.append(f"{member.session.name} received {number}, another's event")
        problems += [
            f"{count} emits were answered {name}"
            for name, count in self._producer.failures.items()
            if name.isdigit() and name != "503"
        ]
        return shorten(problems)

    def summary(self) -> dict[str, object]:
        received = sum((member.received for member in self._members), Counter[int]())
        return {
            "sockets": self._sockets,
            "connected_s": round(self._connected_s, 1),
            "emitted": len(self._producer.emitted),
            "received": received.total(),
            "again": received.total() - len(received),
            "failed_emits": dict(self._producer.failures),
        }

    async def _step(self, name: str, perform: Callable[[], Awaitable[None]]) -> Step:
        began_s, first = time.monotonic(), len(self._attempts)
        await perform()
        took_s = time.monotonic() - began_s
        await until(lambda: self._missing() == 0, f"all sessions after {name}", PATIENCE_S)
        back_s = time.monotonic() - began_s
        attempts = self._attempts[first:]
        peak = max(Counter(int(at / SLOT_S) for at in attempts).values(), default=0)
        problems = []
        if name == "replace" and peak > max(HERD_MAX * self._sockets, HERD_MIN):
            problems.append(f"{peak} sockets tried to connect within {SLOT_S} s of {name}")
        return Step(name, took_s, back_s, len(attempts), peak, problems)

    async def _replace(self) -> None:
        """Replace every process, one after the other."""
        times = self._hub.output().count(REPLACED)
        self._hub.signal(signal.SIGUSR2)
        await until(lambda: self._hub.output().count(REPLACED) > times, REPLACED, PATIENCE_S)

    async def _kill(self) -> None:
        times = self._hub.readiness("web-1")
        send_signal(self._hub.pids(["web-1"]), signal.SIGKILL)
        await self._hub.part_ready("web-1", times + 1)

    async def _restart(self) -> None:
        """Stop the whole hub, and start it again on its port."""
        port = int(self._hub.url.rpartition(":")[2])
        await asyncio.to_thread(self._hub.stop)
        self._hub = HubUnderTest(self._data / "hub", port=port)
        await self._hub.ready()

    def _missing(self) -> int:
        """Return how many of the sessions that were started, and have not ended, are not
        connected.
        """
        started = self._members[: self._started]
        return sum(not one.session.connected and not one.ended for one in started)

    def _unreceived(self) -> Sequence[tuple[int, int]]:
        return [
            (number, session)
            for number, session in self._producer.emitted.items()
            if number not in self._members[session].received and not self._members[session].ended
        ]


def _http(key: str) -> aiohttp.ClientSession:
    headers = {"Authorization": f"Bearer {key}"}
    return aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0))


def _allow_sockets(count: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * count + 1_000), hard))


def _line(step: Step, sockets: int) -> str:
    return (
        f"{step.name:<8} {step.seconds:>6.1f} s, all of {sockets} back after {step.back_s:>6.1f} s,"
        f" {step.attempts} attempts, {step.peak} within {SLOT_S} s at most"
        f"  {report.verdict(step.problems)}"
    )
