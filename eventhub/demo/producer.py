"""The demo's producer: it emits each event exactly once, because a batch keeps its ids until the
hub has answered. Plain module.
"""

import asyncio
import itertools
import time
from collections.abc import Sequence

import aiohttp
from eventhub_client.remote import HubClient
from eventhub_client.types import HubProblem

from eventhub.demo.github import Draft

ATTEMPT_S_MAX = 30.0  # without an answer, after which the batch is sent again with the same ids
PAUSE_S = 1.0


class DemoProducer:
    """A producer whose incarnation is its start time; it numbers events from 1 on each stream."""

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
