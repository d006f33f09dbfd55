"""A hub with several tenants, each in a zone of its own with one stream and its endpoints; steady
traffic of some of them; one sink for all, and the driven clock.
"""

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from tests.chaos.callbacks.arrivals import Arrivals
from tests.chaos.callbacks.receivers import (
    SINKS,
    Endpoint,
    SinkProcess,
    ask,
    create_endpoints,
    teach,
)
from tests.chaos.callbacks.samples import p99_of
from tests.chaos.callbacks.sink import Mood
from tests.chaos.emitters import PERSISTENCE_S, Clock, Emitter, Habit, Target
from tests.chaos.events import Name, event_of
from tests.chaos.hub import Crew, HubUnderTest
from tests.chaos.journal import Journal
from tests.chaos.outages.clock import DatabaseClock
from tests.chaos.readers import close_quietly
from tests.chaos.until import NeverCame, require_running, until, until_true

CREW = Crew(web=2, forwarders=2, workers=2)
OPERATOR, CLIENT = "operator", "tenant"
BATCH = 500  # events in a request that fills a backlog
PRODUCERS = 4  # of such requests, one at a time each
REPEATED = (429, 503)
READY_S = 60.0
FORWARD_S = 300.0  # until forwarders have written the deliveries of a backlog
READ_S = 0.05
LOOK_S = 0.5  # between two looks at what is accepted
STILL_S = 120.0  # without any progress


class Tenant(NamedTuple):
    """A zone with one stream, all of whose events go to all of its endpoints. `stream` is its name,
    too, and that of its emitter.
    """

    stream: str
    endpoints: Mapping[str, Endpoint]
    rate: float = 0.0  # of steady traffic, events a second
    policy: Mapping[str, Any] = {}


Tenants = Callable[[str], Sequence[Tenant]]


class Place(NamedTuple):
    """A tenant in the hub."""

    tenant: Tenant
    key: str
    ids: dict[str, int]  # of its endpoints
    http: aiohttp.ClientSession  # with its key


async def _nothing() -> None:
    pass


class Scene:
    """A hub with tenants. Open it with `Scene.open`. Its traffic starts with `traffic.start()`."""

    def __init__(self, hub: HubUnderTest, journal: Journal, sink: SinkProcess, file: Path) -> None:
        self.hub = hub
        self.journal = journal
        self.sink = sink
        self.traffic = Clock()
        self.clock: DatabaseClock
        self.places: dict[str, Place] = {}
        self.arrivals = Arrivals(file, frozenset())
        self._filled: dict[str, int] = {}
        self._emitters: list[Emitter] = []
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    @asynccontextmanager
    async def open(
        cls, data: Path, tenants: Tenants, seed: int, crew: Crew = CREW, **given: str
    ) -> AsyncIterator["Scene"]:
        """Start a hub on an empty folder with its tenants, and stop everything at the end.
        `tenants` gets the URL of the port that the sink can close; `given`: environment variables
        of the hub.
        """
        async with AsyncExitStack() as stack:
            journal = stack.enter_context(Journal(data / "journal.ndjson"))
            sink = SinkProcess(data / "sink.ndjson", seed)
            stack.callback(sink.close)
            hub = HubUnderTest(data / "hub", crew, EVENTHUB_CALLBACK_ALLOW=SINKS, **given)
            stack.callback(hub.stop)
            await hub.ready()
            scene = cls(hub, journal, sink, sink.file)
            stack.callback(scene.arrivals.close)
            scene.clock = await asyncio.to_thread(DatabaseClock, hub.database_url)
            stack.callback(scene.clock.close)
            await asyncio.to_thread(scene.clock.install)
            await until_true(scene.is_ready, "the hub after its sessions were ended", READY_S)
            created = tenants(sink.absent_url)
            keys = await create_zones(hub, [tenant.stream for tenant in created])
            for tenant in created:
                await scene._add(stack, tenant, keys[tenant.stream])
            stack.push_async_callback(scene._end)
            scene._start(random.Random(seed))
            yield scene

    async def is_ready(self) -> bool:
        """Return whether the web processes have their connections."""
        await asyncio.sleep(0.2)
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{self.hub.url}/readyz") as response,
        ):
            return response.status == 200

    async def _add(self, stack: AsyncExitStack, tenant: Tenant, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        url = self.hub.url
        await ask(http, "PUT", f"{url}/v1/streams/{tenant.stream}", dict(tenant.policy))
        ids = await create_endpoints(http, url, self.sink.url, tenant.endpoints)
        bodies = [{"streams": [tenant.stream], "endpoint": each} for each in ids.values()]
        if bodies:
            await ask(http, "POST", f"{url}/v1/registrations", bodies)
        self.arrivals.add_lanes(name for name, one in tenant.endpoints.items() if one.ordered)
        self.places[tenant.stream] = Place(tenant, key, ids, http)

    def _start(self, dice: random.Random) -> None:
        for place in self.places.values():
            tenant = place.tenant
            if tenant.rate:
                habit = Habit(tenant.stream, 1.0, batch_max=1, in_flight=16)
                target = Target(self.hub.url, place.key, self.journal, self.traffic, tenant.rate)
                emitter = Emitter(tenant.stream, habit, target, random.Random(dice.random()))
                self._emitters.append(emitter)
                self._tasks.append(asyncio.create_task(emitter.run(), name=tenant.stream))
        self._tasks.append(asyncio.create_task(self._read(), name="arrivals"))

    async def _read(self) -> None:
        while True:
            self.arrivals.read_on()
            await asyncio.sleep(READ_S)

    async def _end(self) -> None:
        await close_quietly(self._tasks)

    def raise_broken(self) -> None:
        """Raise the error of a task that ended: a mistake of this harness."""
        require_running(self._tasks)

    async def settle_traffic(self) -> None:
        """Stop the steady traffic, and wait for all answers."""
        self.traffic.pause()
        idle = lambda: all(emitter.idle for emitter in self._emitters)  # noqa: E731
        await until(idle, "the answers of emitters", PERSISTENCE_S)
        self.raise_broken()

    async def fill(self, stream: str, count: int) -> None:
        """Emit so many events at once, and wait until forwarders have written their deliveries."""
        place, first = self.places[stream], self._filled.get(stream, 0) + 1
        self._filled[stream] = first + count - 1
        url = f"{self.hub.url}/v1/streams/{stream}/events"

        async def send(incarnation: int) -> None:
            for begin in range(first + (incarnation - 1) * BATCH, first + count, PRODUCERS * BATCH):
                numbers = range(begin, min(begin + BATCH, first + count))
                names = [Name(f"{stream}-fill", incarnation, number) for number in numbers]
                now = time.monotonic()
                events = [event_of(name, at=now, with_id=True) for name in names]
                await emit(place.http, url, events)

        await asyncio.gather(*map(send, range(1, PRODUCERS + 1)))
        await self.forwarded(stream)

    async def forwarded(self, stream: str) -> None:
        """Wait until forwarders have matched all events of a stream."""

        async def done() -> bool:
            await asyncio.sleep(0.1)
            [(behind,)] = await self.hub.rows(
                "SELECT count(*) FROM forwarding f JOIN heads h USING (stream_id)"
                " JOIN streams s ON s.id = f.stream_id"
                " WHERE s.name = %s AND f.sequence < h.sequence",
                stream,
            )
            return bool(behind == 0)

        await until_true(done, f"forwarders of {stream}", FORWARD_S)

    async def accepted(self, stream: str, step: Callable[[], Awaitable[None]] = _nothing) -> None:
        """Wait until every delivery of a tenant is accepted, as long as some are. `step` is taken
        after each look. Raise NeverCame.
        """
        names, accepted = self.places[stream].ids, self.arrivals.accepted
        expected = (await self.heads())[stream] * len(names)
        count, moved_at = -1, time.monotonic()
        while (now := sum(accepted[name] for name in names)) < expected:
            if now != count:
                count, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > STILL_S:
                raise NeverCame(f"{expected - now} deliveries, nothing for {STILL_S:.0f} s")
            await asyncio.sleep(LOOK_S)
            self.raise_broken()
            await step()

    async def set_mood(self, stream: str, mood: Mood, *names: str) -> None:
        """Change the behaviour of a tenant's endpoints at the sink, by default of all."""
        place = self.places[stream]
        moods = {name: {"mood": mood._asdict()} for name in names or place.ids}
        await teach(place.http, self.sink.url, moods)

    async def patch(self, stream: str, name: str, body: dict[str, Any]) -> None:
        """Change an endpoint by the public API."""
        place = self.places[stream]
        url = f"{self.hub.url}/v1/endpoints/{place.ids[name]}"
        await ask(place.http, "PATCH", url, body)

    async def get(self, stream: str, path: str) -> Any:
        """Return the answer of a management route to a tenant."""
        return await ask(self.places[stream].http, "GET", f"{self.hub.url}{path}", None)

    async def heads(self) -> dict[str, int]:
        """Return the last sequence of each tenant's stream."""
        rows = await self.hub.rows(
            "SELECT s.name, h.sequence FROM heads h JOIN streams s ON s.id = h.stream_id"
        )
        return {name: sequence for name, sequence in rows if name in self.places}

    async def missing(self, *streams: str) -> list[str]:
        """Return the deliveries of tenants that were never accepted, all by default, a line for
        each endpoint.
        """
        heads, problems = await self.heads(), []
        self.arrivals.read_on()
        for stream in streams or self.places:
            for name in self.places[stream].ids:
                lost = [
                    sequence
                    for sequence in range(1, heads[stream] + 1)
                    if (name, stream, sequence) not in self.arrivals.taken
                ]
                if lost:
                    problems.append(f"{len(lost)} of {stream} never reached {name}: {lost[:3]}")
        return problems

    def latencies(self, since: float, until: float) -> dict[str, float]:
        """Return the 99th percentile of the seconds from the emit of an event to its arrival, by
        endpoint with steady traffic, of events that were emitted in an interval.
        """
        names = [n for p in self.places.values() if p.tenant.rate for n in p.ids]
        return p99_of(self.arrivals, names, since, until)


async def emit(http: aiohttp.ClientSession, url: str, events: list[dict[str, Any]]) -> None:
    """Emit events with producer ids; repeat the request while the hub asks for it."""
    while True:
        async with http.post(url, json=events) as response:
            if response.status not in REPEATED:
                if response.status != 200:
                    raise RuntimeError(f"POST {url}: {response.status} {await response.text()}")
                return
            await asyncio.sleep(float(response.headers.get("Retry-After", 1)))


async def create_zones(hub: HubUnderTest, names: Sequence[str]) -> dict[str, str]:
    """Create an operator, who creates the zones, and in each a client with every grant; return the
    clients' keys.
    """
    password = secrets.token_urlsafe(12)
    words = ("createsuperuser", "--username", OPERATOR, "--email", "o@example.org")
    options = ("--skip-checks", "--no-input")
    made = await asyncio.to_thread(hub.manage, *words, *options, DJANGO_SUPERUSER_PASSWORD=password)
    made.check_returncode()
    grants = [{"action": action, "streams": "*"} for action in ("emit", "listen", "manage")]
    jar = aiohttp.CookieJar(unsafe=True)  # loopback has no name
    keys: dict[str, str] = {}
    async with aiohttp.ClientSession(cookie_jar=jar, headers={"Referer": hub.url}) as http:
        login = {"username": OPERATOR, "password": password}
        token = (await ask(http, "POST", f"{hub.url}/v1/session", login))["csrf_token"]
        http.headers["X-CSRFToken"] = token
        for name in names:
            await ask(http, "POST", f"{hub.url}/v1/zones", {"name": name})
            clients, zone = f"{hub.url}/v1/clients", f"?zone={name}"
            await ask(http, "POST", f"{clients}{zone}", {"name": CLIENT})
            made_key = await ask(http, "POST", f"{clients}/{CLIENT}/keys{zone}", {"grants": grants})
            keys[name] = made_key["key"]
    return keys
