"""Requests to the API and queries of the hub's processes, timed at a steady rate while something
else goes on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import aiohttp

from delivery.callbacks import claims
from delivery.health import facts
from tests.chaos.callbacks.samples import p99_of
from tests.chaos.events import Name, event_of
from tests.chaos.figures import percentile
from tests.chaos.outages.scene import Scene

CALLS_PER_S = 20.0
TOTAL_S = 30.0  # of a request
DELIVERY = "delivery to"
Call = Callable[[], Awaitable[Any]]


class Sides(NamedTuple):
    """The tenant with the backlog, whose pages are read, and the one that emits."""

    backlog: str
    other: str


class Timed:
    """The 99th percentiles in seconds, by kind of request, of several phases of a run."""

    def __init__(self, scene: Scene, sides: Sides) -> None:
        self.p99: dict[str, dict[str, float]] = {}  # by phase
        self._scene = scene
        self._sides = sides
        self._numbers = iter(range(1, 1 << 60))

    async def phase(self, name: str, work: Awaitable[None]) -> None:
        """Time requests while some work is done."""
        working = asyncio.ensure_future(work)
        found: dict[str, list[float]] = {}
        since = time.monotonic()
        async with AsyncExitStack() as stack:
            calls = await self._calls(stack)
            sending: set[asyncio.Task[None]] = set()
            for number in range(1 << 60):
                if working.done():
                    break
                kind = list(calls)[number % len(calls)]
                task = asyncio.create_task(_timed(calls[kind], found.setdefault(kind, [])))
                sending.add(task)
                task.add_done_callback(sending.discard)
                pause_s = since + (number + 1) / CALLS_PER_S - time.monotonic()
                await asyncio.wait([working], timeout=max(pause_s, 0.0))
            until = time.monotonic()
            await asyncio.gather(*sending)
        await working
        await self._scene.accepted(self._sides.other)
        p99 = {kind: percentile(seconds, 0.99) for kind, seconds in found.items()}
        names = list(self._scene.places[self._sides.other].ids)
        arrived = p99_of(self._scene.arrivals, names, since, until)
        self.p99[name] = p99 | {f"{DELIVERY} {each}": s for each, s in arrived.items()}

    async def _calls(self, stack: AsyncExitStack) -> dict[str, Call]:
        """Return what is timed, by name: an emit of another client, what workers begin a claim
        with, what web processes read of the hub's health, and pages of the client with the backlog.
        """
        hub, backlog = self._scene.hub, self._scene.places[self._sides.backlog]
        database = await stack.enter_async_context(await hub.connect())
        worker = await stack.enter_async_context(
            await claims.open_connection(hub.database_url, "chaos")
        )
        endpoint = next(iter(backlog.ids.values()))

        async def scan() -> None:
            await claims.scan_parallel(worker, 0)
            await claims.scan_lanes(worker, 0)

        def read(path: str) -> Call:
            return lambda: _ok(backlog.http, "GET", f"{hub.url}/v1/{path}", None)

        return {
            "emit": self._emit,
            "scan of a claim": one_at_a_time(scan),
            "health": one_at_a_time(lambda: facts.read(database)),
            "endpoints": read("endpoints"),
            "endpoint": read(f"endpoints/{endpoint}"),
            "statistics": read(f"endpoints/{endpoint}/statistics"),
            "deliveries": read(f"deliveries?endpoint={endpoint}&limit=50"),
            "pending": read(f"deliveries?endpoint={endpoint}&state=pending&limit=50"),
            "dead letters": read("dead-letters"),
            "overview": read("overview"),
        }

    async def _emit(self) -> None:
        place = self._scene.places[self._sides.other]
        stream = place.tenant.stream
        name = Name(stream, 1, next(self._numbers))
        event = event_of(name, at=time.monotonic(), with_id=False)
        await _ok(place.http, "POST", f"{self._scene.hub.url}/v1/streams/{stream}/events", event)


def one_at_a_time(call: Call) -> Call:
    """Return a call of which one is made at a time, because it uses one connection."""
    lock = asyncio.Lock()

    async def made() -> None:
        async with lock:
            await call()

    return made


async def _timed(call: Call, found: list[float]) -> None:
    began = time.monotonic()
    await call()
    found.append(time.monotonic() - began)


async def _ok(http: aiohttp.ClientSession, method: str, url: str, body: Any) -> None:
    timeout = aiohttp.ClientTimeout(total=TOTAL_S)
    async with http.request(method, url, json=body, timeout=timeout) as response:
        await response.read()
        response.raise_for_status()
