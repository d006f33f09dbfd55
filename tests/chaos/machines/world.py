"""A hub on two machines under load: emitters and listeners that go over to the other machine,
callbacks to the sink, and registrations that change.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from eventhub_client.remote import HubClient

from eventhub.supervisor.embedded import embedded
from tests.chaos.callbacks.changes import ChangeTarget, Registrar
from tests.chaos.callbacks.receivers import (
    SINKS,
    Endpoint,
    Receivers,
    RequestedEndpoints,
    SinkProcess,
    ask,
    create_receivers,
)
from tests.chaos.emitters import PERSISTENCE_S, Clock, Emitter, Target
from tests.chaos.events import Interest
from tests.chaos.journal import Journal
from tests.chaos.judge import Judge
from tests.chaos.machines.machine import Machine
from tests.chaos.readers import PROTOBUF, Manner, Seen, close_quietly, read_by_client, read_plainly
from tests.chaos.until import require_running, until
from tests.chaos.world import HABITS, SEGMENT_EVENTS_MAX, STREAMS, Reader

MACHINES = ("machine-1", "machine-2")
SHARED = ("DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL", "EVENTHUB_SECRET_KEY")
TAIL_S = 0.02
TICK: dict[str, Any] = {"type": "tick"}
# The first connects to machine 1, the second to machine 2, and so on.
READERS = (
    Reader("stays-json", "alpha", Manner()),
    Reader("stays-binary", "beta", Manner(PROTOBUF)),
    Reader("stays-red", "gamma", Manner(), Interest(color="red")),
    Reader("stays-window", "alpha", Manner(PROTOBUF, window=64)),
    Reader("leaves-json", "beta", Manner(stays_s=1.0)),
    Reader("leaves-binary", "gamma", Manner(PROTOBUF, stays_s=0.7), Interest(mask=0b0101)),
    Reader("library-1", "alpha", None),
    Reader("library-2", "gamma", None),
)
ENDPOINTS = {
    "all": Endpoint(changing=False),
    "some": Endpoint(),
    "lane": Endpoint(ordered=True),
    "by-key": Endpoint(ordered=True, order_by="color"),
}
STAYING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("all", {"streams": list(STREAMS), **TICK}),
    ("lane", {"streams": ["alpha", "gamma"], **TICK, "attributes": {"size": 2}}),
    ("by-key", {"streams": ["beta"], **TICK, "attributes": {"size": 4}}),
)


class MachinesWorld:
    """The hub and its load. Open it with `MachinesWorld.open`. The load starts paused: `go()`."""

    def __init__(
        self, machines: list[Machine], key: str, journal: Journal, receivers: Receivers
    ) -> None:
        self.machines = machines
        self.key = key
        self.journal = journal
        self.arrivals = receivers.arrivals
        self.callbacks = receivers.judge
        self.clock = Clock()
        self.judge = Judge(machines[0].hub, key, STREAMS)
        self.readers = [Seen(one.name, one.stream, one.interest) for one in READERS]
        self.registrar: Registrar
        self._emitters: list[Emitter] = []
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, data: Path, rate: float, seed: int) -> AsyncIterator["MachinesWorld"]:
        """Start the servers, both machines and the load; stop everything at the end."""
        dice = random.Random(seed)
        async with AsyncExitStack() as stack:
            journal = stack.enter_context(Journal(data / "journal.ndjson"))
            sink = SinkProcess(data / "sink.ndjson", seed)
            stack.callback(sink.close)
            env = stack.enter_context(embedded(data / "servers"))
            given = {name: env[name] for name in SHARED} | {"EVENTHUB_CALLBACK_ALLOW": SINKS}
            given["EVENTHUB_ARCHIVE_URL"] = str(data / "archive")
            machines = [Machine(data / name, given) for name in MACHINES]
            for machine in machines:
                stack.callback(machine.stop)
                await machine.start()
            key = await asyncio.to_thread(machines[0].hub.create_key, "chaos")
            http = await stack.enter_async_context(
                aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"})
            )
            for name in STREAMS:
                policy = {"segment_events_max": SEGMENT_EVENTS_MAX}
                await ask(http, "PUT", f"{machines[1].url}/v1/streams/{name}", policy)
            requested = RequestedEndpoints(STREAMS, ENDPOINTS, STAYING)
            receivers = await create_receivers(http, machines[0].hub, sink, requested)
            stack.callback(receivers.arrivals.close)
            world = cls(machines, key, journal, receivers)
            clients = [await stack.enter_async_context(HubClient(one.url, key)) for one in machines]
            stack.push_async_callback(world._end)
            changing = [receivers.ids[name] for name, one in ENDPOINTS.items() if one.changing]
            place = ChangeTarget(machines[1].url, key, STREAMS, changing, receivers.kept)
            world.registrar = Registrar(place, journal, random.Random(dice.random()))
            world._start_emitters(rate, dice)
            world._start_readers(http, clients, dice)
            yield world

    def go(self) -> None:
        """Offer events and change registrations."""
        self.clock.start()
        self.registrar.going.set()

    async def settle(self) -> None:
        """Stop offering events and changing registrations, and wait for all answers."""
        self.clock.pause()
        self.registrar.going.clear()
        await until(
            lambda: (
                (all(one.idle for one in self._emitters) and self.registrar.idle.is_set())
                or any(task.done() for task in self._tasks)
            ),
            "the answers of emitters and of the one who registers",
            PERSISTENCE_S * 1.5,
        )
        self.raise_broken()

    def raise_broken(self) -> None:
        """Raise the error of a task that ended: a mistake of this harness."""
        require_running(self._tasks)

    def _start_emitters(self, rate: float, dice: random.Random) -> None:
        for index, (name, habit) in enumerate(HABITS.items()):
            first, second = self._urls(index)
            target = Target(first, self.key, self.journal, self.clock, rate, (second,))
            emitter = Emitter(name, habit, target, random.Random(dice.random()))
            self._emitters.append(emitter)
            self._tasks.append(asyncio.create_task(emitter.run(), name=name))
        self._tasks.append(asyncio.create_task(self.registrar.run(), name="registrar"))
        self._tasks.append(asyncio.create_task(self._tail(), name="tail"))

    def _start_readers(
        self, http: aiohttp.ClientSession, clients: list[HubClient], dice: random.Random
    ) -> None:
        for index, (reader, seen) in enumerate(zip(READERS, self.readers, strict=True)):
            own = random.Random(dice.random())
            work = (
                read_by_client(clients[index % len(clients)], seen)
                if reader.manner is None
                else read_plainly(http, self._urls(index), seen, reader.manner, own)
            )
            self._tasks.append(asyncio.create_task(work, name=reader.name))

    def _urls(self, index: int) -> list[str]:
        """Return the URLs of both machines, the one at the index first."""
        first = index % len(self.machines)
        return [one.url for one in self.machines[first:] + self.machines[:first]]

    async def _tail(self) -> None:
        while True:
            self.arrivals.read_on()
            await asyncio.sleep(TAIL_S)

    async def _end(self) -> None:
        await close_quietly(self._tasks)
