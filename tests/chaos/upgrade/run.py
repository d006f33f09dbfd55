"""The command `python -m tests.chaos upgrade`: see docs/chaos.md, "Upgrades"."""

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import aiohttp
from eventhub_client.remote import HubClient

from tests import prepared
from tests.chaos import report
from tests.chaos.callbacks.rounds import rest
from tests.chaos.callbacks.world import CallbackWorld
from tests.chaos.events import Interest
from tests.chaos.readers import PROTOBUF, Manner, Seen, close_quietly, read_by_client, read_plainly
from tests.chaos.until import until
from tests.chaos.upgrade import release
from tests.integration.up_process import HOME

REPLACED = "all processes are replaced"
REPLACED_S_MAX = 240.0
PAST = "past"  # a stream of events that were there before
PAST_BATCH = 1_000
PAST_AT_ONCE = 4
TOUCHED: LiteralString = """
    SELECT count(*), sum(hashtext(encode(e.payload, 'hex'))::bigint)::text, max(e.sequence)
      FROM streams t JOIN segments s ON s.stream_id = t.id JOIN events e ON e.segment_id = s.id
     WHERE t.name = 'past'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000, help="that are there before")
    parser.add_argument("--rate", type=float, default=600.0, help="events offered per second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of load between two steps")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Upgrade and return to the first release. Return the exit status."""
    async with Drill.open(data, options.rate, options.seed, options.events) as drill:
        await drill.go(options.seconds)
        problems = drill.problems
        summary = {"seed": options.seed, "events_before": options.events, **drill.summary()}
    print(", ".join(f"{name} {value}" for name, value in summary.items()))
    return report.end(options.json, summary, problems)


class Drill:
    """A hub of this release under load, in a folder whose files are replaced while it runs."""

    def __init__(self, world: CallbackWorld, home: Path, old: Path, new: Path) -> None:
        self.problems: list[str] = []
        self._world = world
        self._home, self._old, self._new = home, old, new
        self._readers = [
            Seen("library", "alpha", Interest()),
            Seen("stays-json", "beta", Interest()),
            Seen("stays-binary", "gamma", Interest()),
            Seen("window", "alpha", Interest(color="red")),
        ]
        self._steps: dict[str, float] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, data: Path, rate: float, seed: int, events: int) -> AsyncIterator["Drill"]:
        """Open a drill whose load is paused. `events`: the number stored before it starts."""
        home, new = (release.install(data / name) for name in ("home", "new"))
        release.upgrade(new)
        prepared.fill(data / "hub")  # by this release, of which `home` is a copy
        async with CallbackWorld.open(data, rate, seed, home=home) as world:
            drill = cls(world, home, HOME, new)
            await drill._fill(events)
            headers = {"Authorization": f"Bearer {world.key}"}
            async with (
                aiohttp.ClientSession(headers=headers) as http,
                HubClient(world.hub.url, world.key) as client,
            ):
                reading = drill._read(http, client, random.Random(seed))
                try:
                    yield drill
                finally:
                    await close_quietly(reading)

    async def go(self, seconds: float) -> None:
        """Perform every step, with load between two steps."""
        world = self._world
        before = await world.hub.rows(TOUCHED)
        world.go()
        steps: dict[str, Callable[[], Awaitable[None]]] = {
            "pre": partial(self._manage, self._new, "migrate", "--pre"),
            "up": partial(self._replace, self._new),
            "post": partial(self._manage, self._new, "migrate"),
            "back post": partial(self._manage, self._new, "migrate", "--back", "post"),
            "down": partial(self._replace, self._old),
            "back all": partial(self._manage, self._new, "migrate", "--back", "all"),
        }
        for title, step in steps.items():
            await asyncio.sleep(seconds)
            began = time.monotonic()
            world.journal.note("step", title=title)
            await step()
            self._steps[title] = time.monotonic() - began
            world.raise_broken()
            self.problems += await world.judge.judge(world.arrivals, world.registrar.changes)
            took, longest = self._steps[title], self._longest_wait(began)
            print(f"{title:<10} {took:>6.1f} s, longest wait of an emit {longest:.2f} s  "
                  f"{report.verdict(self.problems)}", flush=True)  # fmt: skip
        await asyncio.sleep(seconds)
        _, found = await rest(world)
        self.problems += found
        self.problems += await world.log_judge.judge(world.journal, self._readers)
        self.problems += [
            f"{one.emitter} was refused with {one.status} {one.code}"
            for one in world.journal.failures
            if one.status
        ][:5]
        if await world.hub.rows(TOUCHED) != before:
            self.problems.append("what was there before is not as it was")

    def summary(self) -> dict[str, Any]:
        journal = self._world.journal
        return {
            "offered": journal.offered,
            "offered_per_s": round(journal.offered / self._world.clock.elapsed_s(), 1),
            "acknowledged": len(journal.promised),
            "reconnects_of_emitters": len(journal.failures),
            "reconnects_of_readers": sum(one.lost_connections for one in self._readers),
            "seen": sum(one.count for one in self._readers),
            "expected": len(self._world.judge.expected.expected),
            "delivered": len(self._world.arrivals.taken),
            "repeats": self._world.arrivals.repeats,
            "longest_emit_s": round(journal.longest_attempt_s, 3),
            **{f"{title}_s".replace(" ", "_"): round(s, 1) for title, s in self._steps.items()},
        }

    async def _fill(self, events: int) -> None:
        """Store events before the drill, in a stream that is not judged event by event."""
        world = self._world
        headers = {"Authorization": f"Bearer {world.key}"}
        url = f"{world.hub.url}/v1/streams/{PAST}"
        async with aiohttp.ClientSession(headers=headers) as http:
            async with http.put(url, json={}) as made:
                made.raise_for_status()
            batches = iter(range(0, events, PAST_BATCH))

            async def emit() -> None:
                for first in batches:
                    count = min(PAST_BATCH, events - first)
                    body = [{"domain": "chaos", "type": "past", "attributes": {"n": first + n}}
                            for n in range(count)]  # fmt: skip
                    async with http.post(f"{url}/events", json=body) as done:
                        done.raise_for_status()

            await asyncio.gather(*(emit() for _ in range(PAST_AT_ONCE)))
        print(f"{events} events are there", flush=True)

    def _read(
        self, http: aiohttp.ClientSession, client: HubClient, dice: random.Random
    ) -> list["asyncio.Task[None]"]:
        url = self._world.hub.url
        library, stays, binary, window = self._readers
        works = (
            read_by_client(client, library),
            read_plainly(http, [url], stays, Manner(), dice),
            read_plainly(http, [url], binary, Manner(PROTOBUF), dice),
            read_plainly(http, [url], window, Manner(window=64), dice),
        )
        return [asyncio.create_task(work) for work in works]

    async def _manage(self, folder: Path, *words: str) -> None:
        command = [sys.executable, str(folder / "manage.py"), *words]
        env = {**self._world.hub.env, "PYTHONPATH": str(folder)}
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            env=env,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.problems.append(f"{' '.join(words)}: {done.stdout}{done.stderr}")

    async def _replace(self, folder: Path) -> None:
        """Replace the files, and then the processes, one by one."""
        hub = self._world.hub
        release.replace(self._home, folder)
        times = hub.output().count(REPLACED)
        hub.signal(signal.SIGUSR2)
        await until(lambda: hub.output().count(REPLACED) > times, REPLACED, REPLACED_S_MAX)

    def _longest_wait(self, since: float) -> float:
        """Return the longest wait of an answered emit that ended since then."""
        journal = self._world.journal
        pairs = zip(reversed(journal.ack_times), reversed(journal.ack_sent), strict=True)
        longest = 0.0
        for at, sent in pairs:
            if at < since:
                break
            longest = max(longest, at - sent)
        return longest
