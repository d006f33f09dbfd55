"""Endpoints at the sink with registrations that stay, for every run of a hub with callbacks."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from tests.chaos.callbacks.arrivals import Arrivals
from tests.chaos.callbacks.judge import CallbackJudge
from tests.chaos.callbacks.sink import Mood
from tests.chaos.hub import HubUnderTest
from tests.integration.up_process import HOME

SINKS = "127.0.0.1"  # where the hub may call
RETRY_SCHEDULE = [1, 2, 4, 8, 16, *[30] * 25]  # longer than a run, without the default's hours


class Endpoint(NamedTuple):
    """An endpoint at the sink. `changing`: changed registrations may name it; `url`: where it is
    instead.
    """

    ordered: bool = False
    changing: bool = True
    mood: Mood = Mood()
    order_by: str = ""  # an attribute
    retry_schedule: Sequence[int] | None = RETRY_SCHEDULE
    url: str = ""


class SinkProcess:
    """The sink's process; `close` ends it and waits."""

    def __init__(self, file: Path, seed: int) -> None:
        self.file = file
        words = ["-m", "tests.chaos.callbacks.sink", str(file), "--seed", str(seed)]
        self.process = subprocess.Popen(
            [sys.executable, *words], cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.port, self.absent_port = map(int, self.process.stdout.readline().split())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def absent_url(self) -> str:
        """The URL of the port that `switch` closes and opens."""
        return f"http://127.0.0.1:{self.absent_port}"

    async def switch(self, http: aiohttp.ClientSession, *, away: bool) -> None:
        """Close the second port, or open it again."""
        async with http.post(f"{self.url}/absence", json={"away": away}) as response:
            response.raise_for_status()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


async def ask(http: aiohttp.ClientSession, method: str, url: str, body: Any) -> Any:
    """Return the response of a management route; raise unless it succeeded."""
    async with http.request(method, url, json=body) as response:
        if response.status >= 300:
            raise RuntimeError(f"{method} {url}: {response.status} {await response.text()}")
        return {} if response.status == 204 else await response.json()


async def create_endpoints(
    http: aiohttp.ClientSession, url: str, sink_url: str, endpoints: Mapping[str, Endpoint]
) -> dict[str, int]:
    """Create endpoints at the sink, which gets their secrets and moods. Return their ids."""
    ids: dict[str, int] = {}
    known: dict[str, Any] = {}
    for name, endpoint in endpoints.items():
        body = {
            "url": endpoint.url or f"{sink_url}/e/{name}",
            "ordered": endpoint.ordered,
            "order_by": endpoint.order_by,
            "retry_schedule": endpoint.retry_schedule,
        }
        made = await ask(http, "POST", f"{url}/v1/endpoints", body)
        ids[name] = made["id"]
        known[name] = {
            "secret": made["secret"],
            "mood": endpoint.mood._asdict(),
            "order_by": endpoint.order_by,
        }
    await teach(http, sink_url, known)
    return ids


async def teach(http: aiohttp.ClientSession, sink_url: str, known: Mapping[str, Any]) -> None:
    """Give a sink the secrets, moods and keys of endpoints, or change them."""
    async with http.post(f"{sink_url}/endpoints", json=known) as response:
        response.raise_for_status()


class Receivers(NamedTuple):
    """The arrivals at the endpoints, and their judge. `ids`: the endpoints' by name; `kept`: the
    registrations'.
    """

    arrivals: Arrivals
    judge: CallbackJudge
    ids: dict[str, int]
    kept: frozenset[int]


class RequestedEndpoints(NamedTuple):
    """Endpoints by name, and registrations for them."""

    streams: tuple[str, ...]
    endpoints: Mapping[str, Endpoint]
    registrations: Sequence[tuple[str, dict[str, Any]]]


async def create_receivers(
    http: aiohttp.ClientSession, hub: HubUnderTest, sink: SinkProcess, requested: RequestedEndpoints
) -> Receivers:
    """Create receivers for a hub that has the streams. `http`: with a key that may manage. Close
    the arrivals afterwards.
    """
    ids = await create_endpoints(http, hub.url, sink.url, requested.endpoints)
    staying = [{**body, "endpoint": ids[name]} for name, body in requested.registrations]
    made = await ask(http, "POST", f"{hub.url}/v1/registrations", staying)
    lanes = frozenset(name for name, one in requested.endpoints.items() if one.ordered)
    return Receivers(
        Arrivals(sink.file, lanes),
        CallbackJudge(hub, requested.streams, ids),
        ids,
        frozenset(item["id"] for item in made["items"]),
    )
