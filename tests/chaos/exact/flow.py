"""A stream with thousands of events a second, emitted in batches, and the content of each event."""

import asyncio
import time
from array import array

import aiohttp
import orjson

from tests.chaos.events import PERIOD, Name, event_of

STREAM = "flow"
BATCH = 125
IN_FLIGHT = 24
CATCH_UP_EVENTS_MAX = 20_000  # what a slow moment may leave to be sent faster


class Flow:
    """A producer without ids; every request is answered, because the web processes suffer no fault.
    `events[n - 1]` is the remainder of sequence n (-1: not acknowledged yet); `segments` by the
    first sequence of an answer.
    """

    def __init__(self, url: str, key: str, rate: float) -> None:
        self.events = array("b")
        self.last = ("", 0)  # the highest acknowledged place: segment, sequence
        self.emitted = 0
        self.problems: list[str] = []
        self._url = f"{url}/v1/streams/{STREAM}/events"
        self._key = key
        self._rate = rate
        self._incarnation = time.time_ns() // 1000
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    async def run(self) -> None:
        """Emit until cancelled."""
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            asyncio.TaskGroup() as group,
        ):
            due_at = time.monotonic()
            while True:
                await self._slots.acquire()
                group.create_task(self._send(http, self.emitted + 1))
                self.emitted += BATCH
                due_at = max(due_at + BATCH / self._rate, time.monotonic() - self._slack_s)
                await asyncio.sleep(max(due_at - time.monotonic(), 0))

    @property
    def _slack_s(self) -> float:
        return CATCH_UP_EVENTS_MAX / self._rate

    async def _send(self, http: aiohttp.ClientSession, first: int) -> None:
        at = time.monotonic()
        numbers = range(first, first + BATCH)
        events = [
            event_of(Name("flow", self._incarnation, n), at=at, with_id=False) for n in numbers
        ]
        try:
            async with http.post(self._url, data=orjson.dumps(events)) as response:
                answer = orjson.loads(await response.read())
            if response.status != 200:
                self.problems.append(f"an emit was answered {response.status}: {answer}")
                return
            self._acknowledged(answer["ranges"], first)
        except (aiohttp.ClientError, TimeoutError) as error:
            self.problems.append(f"an emit failed: {error!r}")
        finally:
            self._slots.release()

    def _acknowledged(self, ranges: list[dict[str, object]], first: int) -> None:
        number = first
        for run in ranges:
            begin, end = int(str(run["first"])), int(str(run["last"]))
            if end > len(self.events):
                self.events.extend([-1] * (end - len(self.events)))
            for sequence in range(begin, end + 1):
                self.events[sequence - 1] = number % PERIOD
                number += 1
            if end > self.last[1]:
                self.last = (str(run["segment"]), end)
