"""The demo's feeds: events at a rate that a person can follow, and a report once a minute. The
endpoint and registrations are created through the public API, as by any client. Plain module.
"""

import asyncio
import itertools
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from eventhub_client.remote import HubClient
from eventhub_client.types import HubProblem

from eventhub.access import credentials
from eventhub.demo import github, host
from eventhub.demo.github import Draft
from eventhub.demo.sink import Sink

ATTEMPT_S_MAX = 30.0  # without an answer, after which the batch is sent again with the same ids
PAUSE_S = 1.0


class DemoProducer:
    """A producer whose incarnation is its start time; it numbers events from 1 on each stream. It
    emits each event exactly once, because a batch keeps its ids until the hub has answered.
    """

    def __init__(self, hub: HubClient) -> None:
        self._hub = hub
        self._incarnation = time.time_ns() // 1_000
        self._numbers: dict[str, itertools.count[int]] = {}

    async def emit(self, stream: str, drafts: Sequence[Draft]) -> None:
        """Emit a batch, and retry until the hub has answered. Raises HubProblem if the hub refuses
        the batch for good. One call at a time for each stream.
        """
        batch = [{**draft, "id": self._next_id(stream)} for draft in drafts]
        while True:
            try:
                async with asyncio.timeout(ATTEMPT_S_MAX):
                    await self._hub.emit(stream, batch, retry_for_s=ATTEMPT_S_MAX)
                return
            except HubProblem as problem:
                if problem.status < 500 and problem.status not in (408, 429):
                    raise
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(PAUSE_S)

    def _next_id(self, stream: str) -> dict[str, int]:
        numbers = self._numbers.setdefault(stream, itertools.count(1))
        return {
            "timestamp": time.time_ns() // 1_000,
            "sequence": next(numbers),
            "incarnation": self._incarnation,
        }


DESCRIPTION = "the demo's own receiver"
REGISTRATIONS: tuple[dict[str, Any], ...] = (
    {"streams": ["github"], "domain": "github", "attributes": {"event": "issues"}},
    {"streams": ["github"], "domain": "github", "attributes": {"event": "pull_request"}},
    {"streams": ["host"], "domain": "host", "type": "counters", "attributes": {"counter": "disk"}},
)


async def ensure_interest(hub: HubClient, url: str, file: Path) -> str:
    """Create the endpoint and its registrations if they are missing; return the endpoint's signing
    secret, which is stored in the credentials file.

    An existing endpoint, found by its description, is reused; only its URL follows the receiver.
    One whose secret is lost is replaced, with its registrations.
    """
    access = credentials.read_access(file)
    secret = access.secret if access else ""
    endpoint = await _find_endpoint(hub)
    if endpoint is not None and not secret:
        await _remove(hub, endpoint["id"])
        endpoint = None
    if endpoint is None:
        body = {"url": url, "description": DESCRIPTION}
        endpoint = await hub.call("POST", "/v1/endpoints", body)
        secret = endpoint["secret"]
        if access is not None:
            credentials.write_access(file, access._replace(secret=secret))
    elif endpoint["url"] != url:
        await hub.call("PATCH", f"/v1/endpoints/{endpoint['id']}", {"url": url})
    page = await hub.call("GET", f"/v1/registrations?endpoint={endpoint['id']}&limit=1")
    if not page["items"]:
        registrations = [{**one, "endpoint": endpoint["id"]} for one in REGISTRATIONS]
        await hub.call("POST", "/v1/registrations", registrations)
    return secret


async def _find_endpoint(hub: HubClient) -> dict[str, Any] | None:
    page = await hub.call("GET", "/v1/endpoints?limit=1000")
    mine = [item for item in page["items"] if item["description"] == DESCRIPTION]
    return mine[0] if mine else None


async def _remove(hub: HubClient, endpoint_id: int) -> None:
    page = await hub.call("GET", f"/v1/registrations?endpoint={endpoint_id}&limit=1000")
    for item in page["items"]:
        await hub.call("DELETE", f"/v1/registrations/{item['id']}")
    await hub.call("DELETE", f"/v1/endpoints/{endpoint_id}")


GITHUB_INTERVAL_S = 1.0
HOST_INTERVAL_S = 2.0
REPORT_INTERVAL_S = 60.0

Say = Callable[[str], None]


class DemoFeed(NamedTuple):
    """The batches for one stream, and their interval."""

    stream: str
    batches: Iterator[list[Draft]]
    interval_s: float


class RateReport:
    """Counts of events and callbacks since the last report."""

    def __init__(self, sink: Sink) -> None:
        self.sent: dict[str, int] = {}
        self.refused = 0
        self._sink = sink

    def take(self) -> str:
        counts = ", ".join(f"{count} on {name}" for name, count in sorted(self.sent.items()))
        refused = f"; {self.refused} refused" if self.refused else ""
        self.sent, self.refused = {}, 0
        return f"in the last minute: {counts or 'no event'}{refused}; {self._sink.take()} callbacks"


class DemoTarget(NamedTuple):
    """The hub's URL, the socket of the demo's receiver, and the file of credentials."""

    url: str
    listener: socket.socket
    credentials: Path


async def feed(target: DemoTarget, key: str, say: Say) -> None:
    """Feed the streams until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    sink = Sink(say)
    report = RateReport(sink)
    async with (
        sink.serve(target.listener) as callback_url,
        HubClient(target.url, key) as hub,
        asyncio.TaskGroup() as group,
    ):
        try:
            sink.secret = await ensure_interest(hub, callback_url, target.credentials)
        except HubProblem as error:
            say(f"no callbacks in this demo: {error}")
        producer = DemoProducer(hub)
        tasks = [group.create_task(_feed(feed, producer, report, say)) for feed in _feeds(say)]
        tasks.append(group.create_task(_report(report, say)))
        await stopping.wait()
        for task in tasks:
            task.cancel()


def _feeds(say: Say) -> list[DemoFeed]:
    feeds = [DemoFeed("host", host.endless(), HOST_INTERVAL_S)]
    if payloads := github.read_payloads():
        say(f"feeding {len(payloads)} GitHub webhook payloads and this machine's counters")
        drafts = ([draft] for draft in github.endless(payloads, seed=time.time_ns()))
        feeds.append(DemoFeed("github", drafts, GITHUB_INTERVAL_S))
    else:
        say("feeding this machine's counters only: no GitHub payloads; run `make setup`")
    return feeds


async def _feed(source: DemoFeed, producer: DemoProducer, report: RateReport, say: Say) -> None:
    """Emit one batch each interval; after an outage of the hub it does not catch up."""
    stream = source.stream
    for batch in source.batches:
        began = time.monotonic()
        try:
            await producer.emit(stream, batch)
        except HubProblem as error:
            if not report.refused:
                say(f"{stream}: the hub refused an event: {error}")
            report.refused += len(batch)
        else:
            report.sent[stream] = report.sent.get(stream, 0) + len(batch)
        await asyncio.sleep(max(0.0, source.interval_s - (time.monotonic() - began)))


async def _report(report: RateReport, say: Say) -> None:
    while True:
        await asyncio.sleep(REPORT_INTERVAL_S)
        say(report.take())
