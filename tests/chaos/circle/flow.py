"""Events of a known shape, emitted as fast as the hub accepts them, and the device of each."""

import asyncio
from array import array
from typing import Any

import aiohttp
import orjson

BATCH = 500
IN_FLIGHT = 6
EVENT_OVERHEAD_BYTES = 300
DEVICES = 40_000
ASKED = 2_000  # devices that somebody asks for: one event of twenty
_STEP = 7_919  # a prime, so that what is asked for is spread over every segment
_KINDS = ("reading", "alarm", "state")


def device_of(number: int) -> int:
    """Return the device of an event."""
    return number * _STEP % DEVICES


def event_of(number: int) -> dict[str, Any]:
    """Return an event with 5 to 15 attributes and at least EVENT_OVERHEAD_BYTES bytes of JSON."""
    made: dict[str, Any] = {
        "domain": "plant",
        "type": f"device.{_KINDS[number % len(_KINDS)]}",
        "node": f"node-{number % 97}",
        "attributes": {
            "device": f"d{device_of(number)}",
            "number": number,
            "load": (number % 1_000) / 10,
            "online": number % 7 != 0,
            "site": f"site-{number % 50}",
            **{f"sensor_{at}": number * at % 1_009 for at in range(1, 1 + number % 11)},
        },
        "body": {"text": ""},
    }
    missing = EVENT_OVERHEAD_BYTES - len(orjson.dumps(made))
    made["body"]["text"] = "x" * max(missing, 0)
    return made


class Flow:
    """A producer without ids. `numbers[s - 1]` is the event of sequence s."""

    def __init__(self, url: str, key: str, stream: str) -> None:
        self.stream = stream
        self.numbers = array("q")
        self._url = f"{url}/v1/streams/{stream}/events"
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    async def emit(self, first: int, count: int) -> None:
        """Emit `count` events from number `first` on. Raise RuntimeError if one is refused."""
        waiting = asyncio.Queue[int]()
        for at in range(first, first + count, BATCH):
            waiting.put_nowait(at)
        async with aiohttp.ClientSession(headers=self._headers) as http, asyncio.TaskGroup() as all:
            for _ in range(IN_FLIGHT):
                all.create_task(self._send(http, waiting, first + count))

    async def _send(
        self, http: aiohttp.ClientSession, waiting: asyncio.Queue[int], end: int
    ) -> None:
        while not waiting.empty():
            first = waiting.get_nowait()
            numbers = range(first, min(first + BATCH, end))
            body = orjson.dumps([event_of(number) for number in numbers])
            async with http.post(self._url, data=body) as response:
                answer = orjson.loads(await response.read())
            if response.status != 200:
                raise RuntimeError(f"an emit was answered {response.status}: {answer}")
            self._note(answer["ranges"], first)

    def _note(self, ranges: list[dict[str, Any]], number: int) -> None:
        for run in ranges:
            missing = run["last"] - len(self.numbers)
            if missing > 0:
                self.numbers.extend([-1] * missing)
            for sequence in range(run["first"], run["last"] + 1):
                self.numbers[sequence - 1] = number
                number += 1
