"""A whole hub with callbacks under load: emitters, endpoints at the sink, registrations that stay
and others that change.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from eventhub_client.remote import HubClient

from tests.chaos.callbacks.arrivals import Arrivals
from tests.chaos.callbacks.changes import ChangeTarget, Registrar
from tests.chaos.callbacks.judge import CallbackJudge
from tests.chaos.callbacks.receivers import (
    SINKS,
    Endpoint,
    RequestedEndpoints,
    SinkProcess,
    ask,
    create_receivers,
)
from tests.chaos.callbacks.samples import Sampler
from tests.chaos.callbacks.sick import SickReceivers
from tests.chaos.callbacks.sink import Mood
from tests.chaos.emitters import PERSISTENCE_S, Clock, Emitter, Habit, Target
from tests.chaos.hub import Crew, HubUnderTest
from tests.chaos.journal import Journal
from tests.chaos.judge import Judge
from tests.chaos.readers import close_quietly
from tests.chaos.until import require_running, until
from tests.chaos.world import SEGMENT_EVENTS_MAX
from tests.integration.up_process import HOME

CREW = Crew(web=2, forwarders=2, workers=2)
STREAMS = ("alpha", "beta", "gamma")
TAIL_S = 0.02
HABITS: dict[str, Habit] = {
    "batches": Habit("alpha", 0.4, batch_max=40, in_flight=4),
    "singles": Habit("beta", 0.1, batch_max=1, in_flight=16),
    "mixed": Habit("beta", 0.3, batch_max=20, in_flight=4, lives_s=7),
    "library": Habit("gamma", 0.2, batch_max=12, in_flight=4, by_client=True),
}


ENDPOINTS: dict[str, Endpoint] = {
    "all": Endpoint(changing=False, mood=Mood(0.005, 0.002, 0.002, 0.01)),
    "some": Endpoint(mood=Mood(0.03, 0.01, 0.01, 0.05)),
    "other": Endpoint(),
    "lane": Endpoint(ordered=True, mood=Mood(0.005, 0.002, 0.002, 0.01, 0.2)),
    "quiet-lane": Endpoint(ordered=True),
    "by-key": Endpoint(ordered=True, order_by="color"),
    "by-key-troubled": Endpoint(
        ordered=True, order_by="place.city", mood=Mood(0.005, 0.002, 0.002, 0.01, 0.2)
    ),
}
HEALTHY = ("all", "some", "other", "quiet-lane", "by-key")  # whose latencies are compared
TICK: dict[str, Any] = {"type": "tick"}
# Registrations that stay: every tick has one; of `all` and `lane` one event matches several.
STAYING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("all", {"streams": list(STREAMS), **TICK}),
    ("all", {"streams": ["alpha", "beta"], **TICK, "attributes": {"color": "red"}}),
    ("all", {"streams": ["gamma"], "attributes": {"size": 3, "place.city": "Ulm"}, **TICK}),
    ("some", {"streams": ["beta"], "domain": "chaos", **TICK, "attributes": {"size": 5}}),
    ("lane", {"streams": ["alpha", "gamma"], **TICK, "attributes": {"size": 2}}),
    ("lane", {"streams": ["alpha"], **TICK, "attributes": {"place.city": "Turin", "size": 2.0}}),
    ("quiet-lane", {"streams": ["beta"], **TICK, "attributes": {"color": "blue", "size": 1}}),
    ("by-key", {"streams": ["alpha"], **TICK, "attributes": {"size": 4}}),
    ("by-key-troubled", {"streams": ["alpha", "beta"], **TICK, "attributes": {"size": 6}}),
)


class CallbackWorld:
    """A hub under load. Open it with `CallbackWorld.open`. The load starts paused: `go()`."""

    def __init__(self, hub: HubUnderTest, key: str, journal: Journal, sink: SinkProcess) -> None:
        self.hub = hub
        self.key = key
        self.journal = journal
        self.clock = Clock()
        self.log_judge = Judge(hub, key, STREAMS)
        self.sick: SickReceivers
        self.sampler = Sampler(hub, lambda: self.sick.ids.values())
        self.registrar: Registrar
        self.arrivals: Arrivals
        self.judge: CallbackJudge
        self._sink = sink
        self._emitters: list[Emitter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._absence: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, data: Path, rate: float, seed: int, home: Path = HOME
    ) -> AsyncIterator["CallbackWorld"]:
        """Start a hub on an empty folder and everything around it, and stop all of it at the end.
        `home`: the folder of its manage.py.
        """
        dice = random.Random(seed)
        async with AsyncExitStack() as stack:
            journal = stack.enter_context(Journal(data / "journal.ndjson"))
            sink = SinkProcess(data / "sink.ndjson", seed)
            stack.callback(sink.close)
            hub = HubUnderTest(data / "hub", CREW, home=home, EVENTHUB_CALLBACK_ALLOW=SINKS)
            stack.callback(hub.stop)
            await hub.ready()
            key = await asyncio.to_thread(hub.create_key, "chaos")
            world = cls(hub, key, journal, sink)
            headers = {"Authorization": f"Bearer {key}"}
            http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
            world.sick = SickReceivers(hub, sink, http)
            stack.push_async_callback(world.sick.close)
            await world._prepare(http, random.Random(dice.random()))
            stack.callback(world.arrivals.close)
            client = await stack.enter_async_context(HubClient(hub.url, key))
            stack.push_async_callback(world._end)
            world._start(client, rate, dice)
            yield world

    def go(self) -> None:
        """Offer events and change registrations."""
        if not self.clock.running.is_set():
            self.clock.start()
        self.registrar.going.set()

    async def add_sick(self) -> None:
        """Create receivers that fail, each in its own way."""
        await self.sick.create()
        self.registrar.keep(self.sick.registrations)
        self.judge.add_endpoints(self.sick.ids)
        self.arrivals.add_lanes(self.sick.lanes)
        self._absence = asyncio.create_task(self.sick.alternate(), name="absent receiver")

    async def make_well(self) -> None:
        """Let the sick receivers answer 200, if there are some."""
        if self._absence is not None:
            await close_quietly([self._absence])
            await self.sick.make_well()

    async def make_sick(self) -> None:
        """Let those that were made well fail again."""
        if self._absence is not None:
            await self.sick.make_sick()
            self._absence = asyncio.create_task(self.sick.alternate(), name="absent receiver")

    async def settle(self) -> None:
        """Stop offering events and changing registrations, and wait for all responses."""
        self.clock.pause()
        self.registrar.going.clear()
        await until(
            lambda: (
                (all(e.idle for e in self._emitters) and self.registrar.idle.is_set())
                or any(task.done() for task in self._tasks)
            ),
            "the answers of emitters and of the one who registers",
            PERSISTENCE_S * 1.5,
        )
        self.raise_broken()

    def raise_broken(self) -> None:
        """Raise the error of a task that ended: a mistake of this harness."""
        require_running([*self._tasks, *([self._absence] if self._absence else [])])

    async def _prepare(self, http: aiohttp.ClientSession, dice: random.Random) -> None:
        """Create streams, endpoints, and the registrations that stay."""
        for name in STREAMS:
            policy = {"segment_events_max": SEGMENT_EVENTS_MAX}
            await ask(http, "PUT", f"{self.hub.url}/v1/streams/{name}", policy)
        asked = RequestedEndpoints(STREAMS, ENDPOINTS, STAYING)
        made = await create_receivers(http, self.hub, self._sink, asked)
        self.arrivals, self.judge = made.arrivals, made.judge
        changing = [made.ids[name] for name, endpoint in ENDPOINTS.items() if endpoint.changing]
        place = ChangeTarget(self.hub.url, self.key, STREAMS, changing, made.kept)
        self.registrar = Registrar(place, self.journal, dice)

    def _start(self, client: HubClient, rate: float, dice: random.Random) -> None:
        target = Target(self.hub.url, self.key, self.journal, self.clock, rate)
        for name, habit in HABITS.items():
            emitter = Emitter(name, habit, target, random.Random(dice.random()))
            self._emitters.append(emitter)
            self._tasks.append(asyncio.create_task(emitter.run(), name=name))
        self._tasks.append(asyncio.create_task(self.registrar.run(), name="registrar"))
        self._tasks.append(asyncio.create_task(self._tail(), name="tail"))
        self._tasks.append(asyncio.create_task(self.sampler.run(), name="samples"))

    async def _tail(self) -> None:
        while True:
            self.arrivals.read_on()
            await asyncio.sleep(TAIL_S)

    async def _end(self) -> None:
        await close_quietly([*self._tasks, *([self._absence] if self._absence else [])])
