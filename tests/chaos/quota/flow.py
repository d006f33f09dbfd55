"""The events of a quota run, and their acknowledged positions."""

import asyncio
import random
import time
from typing import Any, NamedTuple

import aiohttp

from tests.chaos.events import Name, event_of

BATCH = 40
BODY_CHARS = 900  # beside what every event of a fault run has
ANSWER_TIMEOUT_S = 20.0
REFUSED = (503, 507)
PAUSE_S = 0.05


class Place(NamedTuple):
    """The position of an acknowledged event."""

    segment: str
    number: int


class Flow:
    """Emits to one stream at a given rate, and repeats a request until it is answered."""

    def __init__(self, stream: str, rate: float, dice: random.Random) -> None:
        self.stream = stream
        self.rate = rate
        self.places: dict[int, Place] = {}  # by sequence
        self.refused: dict[int, int] = {}
        self.problems: list[str] = []
        self._number = 0
        self._body = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=BODY_CHARS))

    async def run(self, urls: list[str], key: str, seconds: float) -> None:
        """Emit for so long; events fall due by the clock, even while the hub is unavailable."""
        headers = {"Authorization": f"Bearer {key}"}
        timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_S)
        began = time.monotonic()
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
            while time.monotonic() - began < seconds:
                due = int((time.monotonic() - began) * self.rate) - self._number
                if due < BATCH:
                    await asyncio.sleep((BATCH - due) / self.rate)
                    continue
                await self._store(http, urls, self._batch())

    def _batch(self) -> list[dict[str, Any]]:
        batch = []
        for number in range(self._number + 1, self._number + BATCH + 1):
            event = event_of(Name(self.stream, 1, number), at=time.time(), with_id=True)
            batch.append({**event, "body": self._body})
        self._number += BATCH
        return batch

    async def _store(
        self, http: aiohttp.ClientSession, urls: list[str], batch: list[dict[str, Any]]
    ) -> None:
        """Repeat until the hub has acknowledged every position."""
        for attempt in range(1_000_000):
            url = f"{urls[attempt % len(urls)]}/v1/streams/{self.stream}/events"
            try:
                async with http.post(url, json=batch) as answer:
                    if answer.status == 200:
                        self._stored(await answer.json(), batch)
                        return
                    self.refused[answer.status] = self.refused.get(answer.status, 0) + 1
                    if answer.status not in REFUSED:
                        self.problems.append(f"{answer.status}: {await answer.text()}")
                        return
            except (aiohttp.ClientError, TimeoutError, ConnectionError):
                pass  # a web process was killed; sent again, it is found
            await asyncio.sleep(PAUSE_S)

    def _stored(self, receipt: dict[str, Any], batch: list[dict[str, Any]]) -> None:
        numbers = [event["id"]["sequence"] for event in batch]
        known = {one["index"]: one for one in receipt["duplicates"]}
        fresh = [
            (run["segment"], sequence)
            for run in receipt["ranges"]
            for sequence in range(run["first"], run["last"] + 1)
        ]
        places = iter(fresh)
        for index, number in enumerate(numbers):
            if index in known:
                segment, sequence = known[index]["segment"], known[index]["sequence"]
            else:
                segment, sequence = next(places)
            self.places[sequence] = Place(segment, number)
