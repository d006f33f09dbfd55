"""A hub under load: emitters, readers, the journal and the judge."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
from eventhub_client.remote import HubClient

from tests.chaos.emitters import PERSISTENCE_S, Clock, Emitter, Habit, Target
from tests.chaos.events import Interest
from tests.chaos.hub import LOG_CREW, Crew, HubUnderTest
from tests.chaos.journal import Journal
from tests.chaos.judge import Judge
from tests.chaos.readers import PROTOBUF, Manner, Seen, close_quietly, read_by_client, read_plainly
from tests.chaos.until import require_running, until

STREAMS = ("alpha", "beta", "gamma")
SEGMENT_EVENTS_MAX = 500  # so that segments roll all the time

HABITS: dict[str, Habit] = {
    "batches": Habit("alpha", 0.35, batch_max=60, in_flight=4),
    "singles": Habit("beta", 0.15, batch_max=1, in_flight=16),
    "mixed": Habit("beta", 0.15, batch_max=20, in_flight=4, lives_s=7),
    "library": Habit("gamma", 0.15, batch_max=12, in_flight=4, by_client=True),
    "shared": Habit("alpha", 0.05, batch_max=4, in_flight=2, lives_s=11),
    "careless": Habit("gamma", 0.15, batch_max=4, in_flight=96, repeats=False),
}


class Reader(NamedTuple):
    """The description of a reader; `manner` None: by the client library."""

    name: str
    stream: str
    manner: Manner | None
    interest: Interest = Interest()


READERS = (
    Reader("library-all", "alpha", None),
    Reader("library-masked", "beta", None, Interest(mask=0b0101)),
    Reader("stays-json", "alpha", Manner()),
    Reader("stays-red", "gamma", Manner(), Interest(color="red")),
    Reader("stays-binary", "beta", Manner(PROTOBUF)),
    Reader("stays-binary-both", "alpha", Manner(PROTOBUF), Interest(mask=0b0010, color="blue")),
    Reader("leaves-json", "beta", Manner(stays_s=1.0)),
    Reader("leaves-window", "gamma", Manner(stays_s=2.0, window=64)),
    Reader("leaves-binary", "alpha", Manner(PROTOBUF, stays_s=0.7), Interest(mask=0b1100)),
)


class Load(NamedTuple):
    """The hub's processes and its emitters and readers. `rate`: events offered per second, by all
    emitters; `given`: environment variables of the hub.
    """

    rate: float
    readers: tuple[Reader, ...] = READERS
    crew: Crew = LOG_CREW
    given: Mapping[str, str] = {}


class World:
    """A hub under load. Open it with `World.open`; it starts paused: `clock.start()`."""

    def __init__(self, hub: HubUnderTest, key: str, journal: Journal, plan: "Load") -> None:
        self.hub = hub
        self.key = key
        self.journal = journal
        self.plan = plan
        self.clock = Clock()
        self.judge = Judge(hub, key, STREAMS)
        self.readers = {
            reader.name: Seen(reader.name, reader.stream, reader.interest)
            for reader in plan.readers
        }
        self._emitters: list[Emitter] = []
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, data: Path, plan: "Load", dice: random.Random) -> AsyncIterator["World"]:
        """Start a hub on an empty folder, and its emitters and readers; stop everything at the
        end.
        """
        async with AsyncExitStack() as stack:
            journal = stack.enter_context(Journal(data / "journal.ndjson"))
            hub = HubUnderTest(data / "hub", plan.crew, 0, **plan.given)
            stack.callback(hub.stop)
            await hub.ready()
            world = cls(hub, await asyncio.to_thread(hub.create_key, "chaos"), journal, plan)
            http = await stack.enter_async_context(aiohttp.ClientSession(headers=world.headers))
            await world._create_streams(http)
            client = await stack.enter_async_context(HubClient(hub.url, world.key))
            stack.push_async_callback(world._end)
            world._start(http, client, dice)
            yield world

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def stayers(self) -> list[Seen]:
        """Plain readers that stay connected."""
        names = [
            r.name for r in self.plan.readers if r.manner is not None and r.manner.stays_s is None
        ]
        return [self.readers[name] for name in names]

    async def settle(self) -> None:
        """Stop offering events, and wait until every emitter has its answers."""
        self.clock.pause()
        await until(
            lambda: all(emitter.idle for emitter in self._emitters) or self._broken(),
            "the emitters' answers",
            PERSISTENCE_S * 1.5,
        )
        self.raise_broken()

    def raise_broken(self) -> None:
        """Raise the error of an emitter or reader that ended: a mistake of this harness."""
        require_running(self._tasks)

    def _broken(self) -> bool:
        return any(task.done() for task in self._tasks)

    async def _create_streams(self, http: aiohttp.ClientSession) -> None:
        for name in STREAMS:
            async with http.put(
                f"{self.hub.url}/v1/streams/{name}",
                json={"segment_events_max": SEGMENT_EVENTS_MAX},
            ) as response:
                response.raise_for_status()

    def _start(self, http: aiohttp.ClientSession, client: HubClient, dice: random.Random) -> None:
        target = Target(self.hub.url, self.key, self.journal, self.clock, self.plan.rate)
        for name, habit in HABITS.items():
            emitter = Emitter(name, habit, target, random.Random(dice.random()))
            self._emitters.append(emitter)
            self._tasks.append(asyncio.create_task(emitter.run(), name=name))
        for reader in self.plan.readers:
            seen = self.readers[reader.name]
            own = random.Random(dice.random())
            work = (
                read_by_client(client, seen)
                if reader.manner is None
                else read_plainly(http, [self.hub.url], seen, reader.manner, own)
            )
            self._tasks.append(asyncio.create_task(work, name=reader.name))

    async def _end(self) -> None:
        await close_quietly(self._tasks)
