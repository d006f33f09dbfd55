"""Send events to the hub's public door, each exactly once: a batch keeps its ids until it is
answered.
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import aiohttp

from eventhub.demo.github import Draft

RETRY_DELAYS_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # then the last, for as long as it takes
REQUEST_TIMEOUT_S = 30.0


class Refused(Exception):
    """The hub answered that it will never take this batch; the message is its own."""


class Emitter:
    """One producer: its incarnation is the time it started, its numbers count from 1, over all
    streams.
    """

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {key}"},
            timeout=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S),
        )
        self._incarnation = time.time_ns() // 1_000
        self._numbers: dict[str, itertools.count[int]] = {}
        self.retries = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def emit(self, stream: str, drafts: Sequence[Draft]) -> None:
        """Until the hub has answered; raises Refused. One call at a time for each stream."""
        batch = [{**draft, "id": self._next_id(stream)} for draft in drafts]
        for attempt in itertools.count():
            if await self._accepted(stream, batch):
                return
            self.retries += 1
            await asyncio.sleep(RETRY_DELAYS_S[min(attempt, len(RETRY_DELAYS_S) - 1)])

    def _next_id(self, stream: str) -> dict[str, int]:
        numbers = self._numbers.setdefault(stream, itertools.count(1))
        return {
            "timestamp": time.time_ns() // 1_000,
            "sequence": next(numbers),
            "incarnation": self._incarnation,
        }

    async def _accepted(self, stream: str, batch: list[dict[str, Any]]) -> bool:
        """False: nobody knows, or not now; the same batch may be sent again."""
        try:
            async with self._session.post(
                f"{self._url}/v1/streams/{stream}/events", json=batch
            ) as answer:
                if answer.status < 300:
                    return True
                if answer.status in (408, 429) or answer.status >= 500:
                    return False
                raise Refused(f"{answer.status} {(await answer.text())[:500]}")
        except (aiohttp.ClientError, TimeoutError):
            return False
