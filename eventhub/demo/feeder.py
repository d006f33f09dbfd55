"""The demo's feeds: events at a rate that a person can follow, and a report once a minute.
Plain module.
"""

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from eventhub_client.remote import HubClient
from eventhub_client.types import HubProblem

from eventhub.demo import github, host
from eventhub.demo.github import Draft
from eventhub.demo.interest import ensure_interest
from eventhub.demo.producer import DemoProducer
from eventhub.demo.sink import Sink

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
