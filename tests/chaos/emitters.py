"""Emitters over HTTP at a rate that does not depend on the hub: events that fell due while it was
unavailable are sent when it is back.

They record in the journal every attempt, every promise, and every failure.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

import aiohttp
import orjson
from eventhub_client.remote import HubClient
from eventhub_client.types import HubProblem

from eventhub.base import limits
from tests.chaos.events import Name, event_of
from tests.chaos.journal import Answer, Failure, Journal

PERSISTENCE_S = 90.0  # a hub that does not take an event for so long has failed
REQUEST_TIMEOUT_S = 30.0
PACE_S = 0.004  # how finely the offered rate is cut
PAUSE_S_MAX = 0.3  # between two attempts, unless the hub says otherwise
STORED_NOTHING = ("database_unavailable", "overloaded", "storage_full", "unavailable")


class Habit(NamedTuple):
    """The behaviour of an emitter. `share`: of the whole rate; `in_flight`: concurrent requests."""

    stream: str
    share: float
    batch_max: int
    in_flight: int
    repeats: bool = True  # with a producer id, until it is stored; else one attempt without
    lives_s: float = 0.0  # a new incarnation about so often
    by_client: bool = False  # by the client library's own retry
    persistence_s: float = PERSISTENCE_S  # how long it tries


class Clock:
    """Counts the seconds in which events are offered."""

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self._counted_s = 0.0
        self._since = 0.0

    def start(self) -> None:
        self._since = time.monotonic()
        self.running.set()

    def pause(self) -> None:
        self._counted_s = self.elapsed_s()
        self.running.clear()

    def elapsed_s(self) -> float:
        return self._counted_s + (time.monotonic() - self._since if self.running.is_set() else 0)


class Target(NamedTuple):
    """What all emitters of a run share. `rate`: events per second, of all; `others`: URLs of the
    same hub, of which the next one is tried after a failure.
    """

    url: str
    key: str
    journal: Journal
    clock: Clock
    rate: float
    others: tuple[str, ...] = ()


class Emitter:
    """One producer on one stream. `run` continues until cancelled."""

    def __init__(self, name: str, habit: Habit, target: Target, dice: random.Random) -> None:
        self.name = name
        self.habit = habit
        self._target = target
        self._url = target.url  # that answered last
        self._dice = dice
        self._made = 0
        self._number = 0
        self._incarnation = time.time_ns() // 1000
        self._born = time.monotonic()
        self._slots = asyncio.Semaphore(habit.in_flight)
        self._sending: dict[asyncio.Task[None], Name] = {}  # with the first that it sends

    @property
    def idle(self) -> bool:
        """Whether every event that fell due was sent and answered."""
        return not self._sending and self._due() <= 0

    def _due(self) -> int:
        rate = self._target.rate * self.habit.share
        return int(rate * self._target.clock.elapsed_s()) - self._made

    async def run(self) -> None:
        connector = aiohttp.TCPConnector(limit=self.habit.in_flight)
        headers = {"Authorization": f"Bearer {self._target.key}"}
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        async with (
            aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as http,
            HubClient(self._target.url, self._target.key) as client,
            asyncio.TaskGroup() as group,
        ):
            while True:
                due = self._due()
                if due <= 0 or self._is_ahead():
                    await asyncio.sleep(PACE_S)
                    continue
                await self._slots.acquire()
                names = self._take(min(due, self._dice.randint(1, self.habit.batch_max)))
                sending = group.create_task(self._send(http, client, names))
                self._sending[sending] = names[0]
                sending.add_done_callback(self._sent)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        del self._sending[task]
        self._slots.release()

    def _is_ahead(self) -> bool:
        """Return whether the next numbers could push events that must be repeated out of the hub's
        window, which a producer must avoid.
        """
        ours = [
            one.number for one in self._sending.values() if one.incarnation == self._incarnation
        ]
        return self._number - min(ours, default=self._number) > limits.PRODUCER_WINDOW // 2

    def _take(self, count: int) -> list[Name]:
        """Return the next names; sometimes of a new incarnation, like a restarted producer."""
        lives_s = self.habit.lives_s
        if lives_s and time.monotonic() - self._born > lives_s * self._dice.uniform(0.5, 1.5):
            self._incarnation, self._number = time.time_ns() // 1000, 0
            self._born = time.monotonic()
        first = self._number + 1
        self._number += count
        self._made += count
        return [Name(self.name, self._incarnation, first + index) for index in range(count)]

    async def _send(
        self, http: aiohttp.ClientSession, client: HubClient, names: list[Name]
    ) -> None:
        habit, now = self.habit, time.monotonic()
        self._target.journal.tried(habit.stream, names)
        events = [event_of(name, at=now, with_id=habit.repeats) for name in names]
        if habit.by_client:
            await self._send_by_client(client, names, events)
            return
        body = orjson.dumps(events[0] if len(events) == 1 else events)
        urls = self._urls()
        for url in urls:
            if await self._attempt(http, url, names, body):
                self._url = url
                return
            if not habit.repeats:
                self._url = next(urls)
                return
            if time.monotonic() - now > habit.persistence_s:
                self._target.journal.problem(f"{names[0]} not taken within {habit.persistence_s} s")
                self._target.journal.gave_up(names, stored=None)
                return

    def _urls(self) -> Iterator[str]:
        """Yield where to send a request, and each repeat of it."""
        urls = [self._target.url, *self._target.others]
        at = urls.index(self._url)
        return cycle(urls[at:] + urls[:at])

    async def _send_by_client(
        self, client: HubClient, names: list[Name], events: list[dict[str, object]]
    ) -> None:
        journal, sent_at = self._target.journal, time.monotonic()
        try:
            receipt = await client.emit(self.habit.stream, events, retry_for_s=PERSISTENCE_S)
        except (HubProblem, aiohttp.ClientError, TimeoutError) as error:
            journal.problem(f"the client gave up {names[0]} after {PERSISTENCE_S} s: {error!r}")
            journal.gave_up(names, stored=None)
        else:
            answer = Answer(
                [list(r) for r in receipt.ranges], [list(d) for d in receipt.duplicates]
            )
            journal.promise(self.habit.stream, names, answer, sent_at)

    async def _attempt(
        self, http: aiohttp.ClientSession, hub: str, names: Sequence[Name], body: bytes
    ) -> bool:
        """Send one request; return whether the hub promised the events. Pause after a failure as
        the hub requests.
        """
        journal, began = self._target.journal, time.monotonic()
        journal.attempts += 1
        url = f"{hub}/v1/streams/{self.habit.stream}/events"
        headers = {"Content-Type": "application/json"}
        status, code, retry_after = 0, "", None
        try:
            async with http.post(url, data=body, headers=headers) as response:
                text = await response.read()
                status, retry_after = response.status, response.headers.get("Retry-After")
            answer = orjson.loads(text)
            if status == 200:
                journal.promise(self.habit.stream, names, Answer.of_json(answer), began)
                return True
            code = str(answer.get("code"))
        except (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError) as error:
            code = repr(error)
        took_s = time.monotonic() - began
        journal.failed(
            Failure(time.monotonic(), self.name, status, code, retry_after is not None, took_s)
        )
        if not self.habit.repeats:
            journal.gave_up(names, stored=False if code in STORED_NOTHING else None)
            return False
        pause_s = float(retry_after) if retry_after else PAUSE_S_MAX
        await asyncio.sleep(pause_s * self._dice.uniform(0.3, 1.0))
        return False
