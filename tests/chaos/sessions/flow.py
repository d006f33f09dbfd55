"""The producer of `tests.chaos sessions`: events of two streams that differ in all that an order
looks at. Each has an id, and is repeated until it is answered.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiohttp

STREAMS = ("alpha", "beta")
TYPES = ("alarm", "alarm.fire", "order", "report")
BATCH_MAX = 12
PAUSE_S = 0.2  # before an event is repeated
EXPIRE_SHARE = 0.2  # of events
EXPIRES_S = (0.5, 4.0)
CAUSE_SHARE = 0.3
CLOCK_S = 0.2  # by which the times of events differ from the order of their emits

Key = tuple[str, int]  # the stream of an event, and its sequence


class Emitted(NamedTuple):
    """An acknowledged event: what the orders look at, in microseconds where it is a time."""

    number: int
    type: str
    priority: int
    time_us: int
    expires_us: int  # 0: never
    cause: int  # the number of the event that it names; 0: none


class Flow:
    """The producer. `events`: what was acknowledged, by its place in the log."""

    def __init__(self, url: str, key: str, rate: float, dice: random.Random) -> None:
        self.events: dict[Key, Emitted] = {}
        self.problems: list[str] = []
        self.repeats = 0
        self._url = url
        self._key = key
        self._rate = rate
        self._dice = dice
        self._incarnation = time.time_ns() // 1_000
        self._number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def run(self) -> None:
        """Emit until `stop`; return when every event is answered."""
        headers = {"Authorization": f"Bearer {self._key}"}
        timeout = aiohttp.ClientTimeout(total=20)
        self._stopped = False
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
            while not self._stopped:
                count = self._dice.randint(1, BATCH_MAX)
                stream = self._dice.choice(STREAMS)
                batch = [self._next() for _ in range(count)]
                task = asyncio.create_task(self._emit(http, stream, batch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                await asyncio.sleep(count / self._rate)
            await asyncio.gather(*self._tasks)

    def stop(self) -> None:
        self._stopped = True

    def _next(self) -> Emitted:
        dice, now_us = self._dice, time.time_ns() // 1_000
        self._number += 1
        expires = dice.random() < EXPIRE_SHARE
        cause = dice.random() < CAUSE_SHARE and self._number > 1
        return Emitted(
            number=self._number,
            type=dice.choice(TYPES),
            priority=dice.randint(-2, 2),
            time_us=now_us - int(dice.uniform(0, CLOCK_S) * 1e6),
            expires_us=now_us + int(dice.uniform(*EXPIRES_S) * 1e6) if expires else 0,
            cause=max(1, self._number - dice.randint(1, BATCH_MAX)) if cause else 0,
        )

    async def _emit(
        self, http: aiohttp.ClientSession, stream: str, batch: Sequence[Emitted]
    ) -> None:
        """Emit until it is answered."""
        url = f"{self._url}/v1/streams/{stream}/events"
        body = [self._body(one) for one in batch]
        while True:
            try:
                async with http.post(url, json=body) as response:
                    answer = await response.json()
                    if response.status == 200:
                        self._take(stream, batch, answer)
                        return
                    if response.status != 503:
                        self.problems.append(f"an emit: {response.status} {answer}")
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass
            self.repeats += 1
            await asyncio.sleep(PAUSE_S)

    def _body(self, one: Emitted) -> dict[str, Any]:
        body: dict[str, Any] = {
            "domain": "chaos",
            "type": one.type,
            "id": {"incarnation": self._incarnation, "sequence": one.number},
            "time": _text(one.time_us),
            "priority": one.priority,
            "attributes": {"n": one.number},
        }
        if one.expires_us:
            body["expires_at"] = _text(one.expires_us)
        if one.cause:
            body["cause"] = f"0-{self._incarnation}-{one.cause}"
        return body

    def _take(self, stream: str, batch: Sequence[Emitted], answer: dict[str, Any]) -> None:
        """Note the places of a batch: of new events and of those that were found again."""
        found = {one["index"]: one["sequence"] for one in answer["duplicates"]}
        new = iter([n for each in answer["ranges"] for n in range(each["first"], each["last"] + 1)])
        for index, one in enumerate(batch):
            sequence = found[index] if index in found else next(new)
            self.events[stream, sequence] = one


def _text(at_us: int) -> str:
    whole, rest = divmod(at_us, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{rest:06d}Z"
