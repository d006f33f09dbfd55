"""Reads a stream of stored events, parsing each answer: by pulls, each of which acknowledges what
the one before got, or by long polls of one reader. Plain.
"""

import asyncio
from typing import Any

import orjson

from tests.benchmarks.load.http import (
    HOST,
    Connection,
    RequestFailed,
    cpu_time_s,
    get_head,
    now_ns,
    request_head,
)
from tests.benchmarks.load.jobs import PullJob
from tests.benchmarks.load.transports import first_of

WAIT_S = 5


class _Client:
    """A connection that sends one request at a time, and parses its answer."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[None]
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connection: Connection

    async def open(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        _, self._connection = await loop.create_connection(
            lambda: Connection(lambda _: self._answer.set_result(None), self._fail), HOST, port
        )

    async def ask(self, request: bytes) -> dict[str, Any]:
        """Send a request; return the parsed answer."""
        self._answer = asyncio.get_running_loop().create_future()
        self._connection.send(request)
        await first_of(self._answer, self._failed)
        _, _, body = self._connection.answer.partition(b"\r\n\r\n")
        found: dict[str, Any] = orjson.loads(body)
        return found

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)


class _Events:
    """The events of all readers together; none may come twice, and all must come."""

    def __init__(self, job: PullJob) -> None:
        self.expected = job.events
        self.seen: set[int] = set()
        self.acknowledged = 0
        self.requests = 0

    @property
    def complete(self) -> bool:
        return len(self.seen) >= self.expected

    def add(self, events: list[dict[str, Any]]) -> None:
        before = len(self.seen)
        self.seen.update(event["sequence"] for event in events)
        self.requests += 1
        if len(self.seen) != before + len(events):
            raise RequestFailed("an event came twice")


async def run(job: PullJob) -> dict[str, float]:
    """Return events per second, from the second answer of each reader on."""
    events = _Events(job)
    clients = [_Client() for _ in job.sessions or [""]]
    for number, client in enumerate(clients):
        await client.open(job.ports[number % len(job.ports)])
    if not job.sessions:
        [client] = clients
        return await _measured(events, [_poll(job, client, events)])
    # the first pull of a session opens its readers
    starts = [await _pull(job, name, client, 1, 0) for name, client in _named(job, clients)]
    for start in starts:
        events.add(start["events"])
    readers = [
        _pulls(job, named, start["events"], events)
        for named, start in zip(_named(job, clients), starts, strict=True)
    ]
    figures = await _measured(events, readers)
    if events.acknowledged != job.events:
        raise RequestFailed(f"{events.acknowledged} of {job.events} events were acknowledged")
    return figures


def _named(job: PullJob, clients: list[_Client]) -> list[tuple[str, _Client]]:
    return [*zip(job.sessions, clients, strict=True)]


async def _measured(events: _Events, readers: list[Any]) -> dict[str, float]:
    before = len(events.seen)
    began_ns, cpu_s = now_ns(), cpu_time_s()
    await asyncio.gather(*readers)
    seconds = (now_ns() - began_ns) / 1e9
    if len(events.seen) != events.expected:
        raise RequestFailed(f"{len(events.seen)} events instead of {events.expected}")
    return {
        "per_s": (events.expected - before) / seconds,
        "all": events.expected,
        "per_request": events.expected / events.requests,
        "load_cpu": (cpu_time_s() - cpu_s) / seconds,
    }


async def _pulls(
    job: PullJob,
    named: tuple[str, _Client],
    events: list[dict[str, Any]],
    all_events: _Events,
) -> None:
    name, client = named
    while not all_events.complete or events:
        most = 0 if all_events.complete else job.most
        last = events[-1]["sequence"] if events else None
        answer = await _pull(job, name, client, most, last)
        all_events.acknowledged += answer["acknowledged"]
        events = answer["events"]
        if most:
            all_events.add(events)


async def _pull(
    job: PullJob, name: str, client: _Client, most: int, last: int | None
) -> dict[str, Any]:
    """Pull so many events, and acknowledge those up to the last one."""
    done = [{"stream": job.stream, "sequence": last}] if last else []
    body = orjson.dumps({"max": most, "wait_s": 0.1 if most else 0, "acknowledgements": done})
    headers = {**job.target.headers, "content-type": "application/json"}
    target = job.target._replace(path=f"/v1/sessions/{name}/pull", headers=headers)
    return await client.ask(request_head(target, len(body)) + body)


async def _poll(job: PullJob, client: _Client, events: _Events) -> None:
    start = "oldest"
    while not events.complete:
        query = f"?from={start}&timeout={WAIT_S}&limit={job.most}"
        page = await client.ask(get_head(job.target, query, "application/json"))
        events.add(page["events"])
        start = f"{page['cursor']['segment']}:{page['cursor']['sequence']}"
