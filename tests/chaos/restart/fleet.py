"""The sessions of `tests.chaos restart`: consumers by the client library, each on a socket of its
own, and the producer of their events.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence

import aiohttp
import orjson
from eventhub_client.http import Http
from eventhub_client.sessions import ConsumerSession
from eventhub_client.types import Delivered, HubProblem, SessionEnded

from tests.chaos.callbacks.receivers import ask

STREAM = "fleet"
PER_CLIENT = 1_000  # sessions, and sockets in one web process: the hub's limits
AT_ONCE = 16  # requests that create sessions
PAUSE_S = 0.2


class WatchedSession(ConsumerSession):
    """A consumer that notes when it tries to connect, and whether it is connected."""

    connected = False
    attempts: list[float]  # of all sessions, by time.monotonic()

    async def _once(self) -> None:
        self.attempts.append(time.monotonic())
        await super()._once()

    def _begin(self) -> None:
        self.connected = True
        super()._begin()

    def _lose(self) -> None:
        self.connected = False
        super()._lose()


class Member:
    """One session and what it received."""

    def __init__(self, http: aiohttp.ClientSession, url: str, number: int) -> None:
        self.session = WatchedSession(Http(http, url), f"s{number}")
        self.received: Counter[int] = Counter()  # by the number of the event
        self.stored: set[int] = set()
        self.problems: list[str] = []
        self.ended = False  # with a problem
        self._acknowledging: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Receive and acknowledge until cancelled."""
        try:
            async with self.session:
                async for event in self.session:
                    number = event.event["attributes"]["n"]
                    if number in self.stored:
                        self.problems.append(f"{self.session.name}: {number} came again")
                    self.received[number] += 1
                    self._start(self._acknowledge(number, event))
        except (HubProblem, SessionEnded) as error:
            self.problems.append(f"{self.session.name}: {error!r}")
            self.ended = True

    async def _acknowledge(self, number: int, event: Delivered) -> None:
        try:
            await self.session.acknowledge(event, stored=True)
        except (ConnectionError, aiohttp.ClientError):
            return  # it comes again
        self.stored.add(number)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._acknowledging.add(task)
        task.add_done_callback(self._acknowledging.discard)


class Producer:
    """Emits events for one session each, at a constant rate; each is repeated until it is
    answered. `emitted`: the session of each event.
    """

    def __init__(self, url: str, key: str, rate: float, members: int) -> None:
        self.emitted: dict[int, int] = {}
        self.failures: Counter[str] = Counter()
        self._url = f"{url}/v1/streams/{STREAM}/events"
        self._key = key
        self._rate = rate
        self._members = members
        self._number = 0
        self._incarnation = time.time_ns() // 1_000
        self._stopped = False

    async def run(self) -> None:
        """Emit until `stop`."""
        headers = {"Authorization": f"Bearer {self._key}"}
        timeout = aiohttp.ClientTimeout(total=20)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as http,
            asyncio.TaskGroup() as group,
        ):
            due_s = time.monotonic()
            while not self._stopped:
                self._number += 1
                group.create_task(self._emit(http, self._number))
                due_s += 1 / self._rate
                await asyncio.sleep(max(due_s - time.monotonic(), 0))

    def stop(self) -> None:
        self._stopped = True

    async def _emit(self, http: aiohttp.ClientSession, number: int) -> None:
        session = number * 7_919 % self._members
        attributes = {"n": number, "s": session}
        id = {"incarnation": self._incarnation, "sequence": number}
        event = {"domain": "fleet", "type": "tick", "attributes": attributes, "id": id}
        while True:
            try:
                async with http.post(self._url, json=event) as response:
                    await response.read()
                    if response.status == 200:
                        self.emitted[number] = session
                        return
                    self.failures[str(response.status)] += 1
            except (aiohttp.ClientError, TimeoutError) as error:
                self.failures[type(error).__name__] += 1
            await asyncio.sleep(PAUSE_S)


async def create(url: str, keys: Sequence[str], members: int) -> None:
    """Create the stream, the sessions, and the registration of each."""
    async with aiohttp.ClientSession(headers=_headers(keys[0])) as http:
        await ask(http, "PUT", f"{url}/v1/streams/{STREAM}", {})
    for client, key in enumerate(keys):
        numbers = range(client * PER_CLIENT, min((client + 1) * PER_CLIENT, members))
        waiting = iter(numbers)
        async with aiohttp.ClientSession(headers=_headers(key)) as http:
            await asyncio.gather(*(_create_some(http, url, waiting) for _ in range(AT_ONCE)))
            lines = b"\n".join(map(_registration, numbers))
            headers = {"Content-Type": "application/x-ndjson"}
            bulk = f"{url}/v1/registrations/bulk"
            async with http.post(bulk, data=lines + b"\n", headers=headers) as answer:
                last = orjson.loads((await answer.read()).splitlines()[-1])
        if last.get("created") != len(numbers):
            raise RuntimeError(f"bulk: {last}")


async def _create_some(http: aiohttp.ClientSession, url: str, waiting: Iterator[int]) -> None:
    for number in waiting:
        body = {"name": f"s{number}", "kind": "consumer"}
        await ask(http, "POST", f"{url}/v1/sessions", body)


def _registration(number: int) -> bytes:
    """Return the line of the bulk route that registers the events of a session."""
    owner = {"op": "create", "key": f"k{number}", "session": f"s{number}"}
    filter = {"domain": "fleet", "attributes": {"s": number}}
    return orjson.dumps({**owner, "streams": [STREAM], **filter})


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
