"""Feed the demo's streams at a rate a person can follow, and say once a minute how it goes.
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
from eventhub.demo.producer import Producer
from eventhub.demo.sink import Sink

GITHUB_INTERVAL_S = 1.0
HOST_INTERVAL_S = 2.0
REPORT_INTERVAL_S = 60.0

Say = Callable[[str], None]


class Feed(NamedTuple):
    """What goes to one stream, and how often."""

    stream: str
    batches: Iterator[list[Draft]]
    interval_s: float


class Tally:
    """What was sent, and called back, since the last report."""

    def __init__(self, sink: Sink) -> None:
        self.sent: dict[str, int] = {}
        self.refused = 0
        self._sink = sink

    def take(self) -> str:
        counts = ", ".join(f"{count} on {name}" for name, count in sorted(self.sent.items()))
        refused = f"; {self.refused} refused" if self.refused else ""
        self.sent, self.refused = {}, 0
        return f"in the last minute: {counts or 'no event'}{refused}; {self._sink.take()} callbacks"


class Place(NamedTuple):
    """Where the demo runs: the hub's URL, the socket of its receiver, and the credentials' file."""

    url: str
    listener: socket.socket
    credentials: Path


async def feed(place: Place, key: str, say: Say) -> None:
    """Until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    sink = Sink(say)
    tally = Tally(sink)
    async with (
        sink.serve(place.listener) as callback_url,
        HubClient(place.url, key) as hub,
        asyncio.TaskGroup() as group,
    ):
        try:
            sink.secret = await ensure_interest(hub, callback_url, place.credentials)
        except HubProblem as error:
            say(f"no callbacks in this demo: {error}")
        producer = Producer(hub)
        tasks = [group.create_task(_feed(feed, producer, tally, say)) for feed in _feeds(say)]
        tasks.append(group.create_task(_report(tally, say)))
        await stopping.wait()
        for task in tasks:
            task.cancel()


def _feeds(say: Say) -> list[Feed]:
    feeds = [Feed("host", host.endless(), HOST_INTERVAL_S)]
    if payloads := github.read_payloads():
        say(f"feeding {len(payloads)} GitHub webhook payloads and this machine's counters")
        drafts = ([draft] for draft in github.endless(payloads, seed=time.time_ns()))
        feeds.append(Feed("github", drafts, GITHUB_INTERVAL_S))
    else:
        say("feeding this machine's counters only: no GitHub payloads, see `make setup`")
    return feeds


async def _feed(source: Feed, producer: Producer, tally: Tally, say: Say) -> None:
    """One batch each interval; when the hub was away, go on from now instead of catching up."""
    stream = source.stream
    for batch in source.batches:
        began = time.monotonic()
        try:
            await producer.emit(stream, batch)
        except HubProblem as error:
            if not tally.refused:
                say(f"{stream}: the hub refused an event: {error}")
            tally.refused += len(batch)
        else:
            tally.sent[stream] = tally.sent.get(stream, 0) + len(batch)
        await asyncio.sleep(max(0.0, source.interval_s - (time.monotonic() - began)))


async def _report(tally: Tally, say: Say) -> None:
    while True:
        await asyncio.sleep(REPORT_INTERVAL_S)
        say(tally.take())
