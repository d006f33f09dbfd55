"""Batches of the lines of a body that is still arriving; each batch is stored at once. Plain
module.

A batch is complete when it reaches the size limit, when the body ends, or when no further line
arrives for a while, so that lines of a slow sender are stored without delay.
"""

import asyncio
from collections.abc import Iterable

from eventhub.base import limits
from eventhub.base.errors import RequestTimeout
from eventhub.http.messages import Disconnected, Message, Receive
from registrations.bulk.lines import LineSplitter

NumberedLine = tuple[int, bytes | None]  # number and text of a line; None: it is too long


class BatchReader:
    """The batches of one body. Concurrency contract: one task uses it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._splitter = LineSplitter()
        self._lines: list[NumberedLine] = []  # not returned yet
        self._arriving: asyncio.Future[Message] | None = None
        self._ended = False

    async def start(self) -> None:
        """Wait for the first part of the body. Raises RequestTimeout, Disconnected."""
        await self._receive_part(limits.BULK_IDLE_S_MAX)

    async def next(self) -> list[NumberedLine]:
        """Return the next batch; empty at the end of the body.

        Raises RequestTimeout, and Disconnected if the caller has disconnected.
        """
        while not self._ended and not self._is_full():
            waits = limits.BULK_LINGER_S if self._lines else limits.BULK_IDLE_S_MAX
            try:
                await self._receive_part(waits)
            except RequestTimeout:
                if not self._lines:
                    raise
                break
        return self._take_batch()

    async def close(self) -> None:
        """Cancel the pending read."""
        if self._arriving is not None:
            self._arriving.cancel()

    def _is_full(self) -> bool:
        if len(self._lines) >= limits.REGISTRATIONS_PER_REQUEST_MAX:
            return True
        return sum(len(text or b"") for _, text in self._lines) >= limits.BULK_BATCH_BYTES_MAX

    def _take_batch(self) -> list[NumberedLine]:
        """Remove and return as many lines as may be stored at once, at least one."""
        count = size = 0
        for _, text in self._lines[: limits.REGISTRATIONS_PER_REQUEST_MAX]:
            size += len(text or b"")
            if count and size > limits.BULK_BATCH_BYTES_MAX:
                break
            count += 1
        found, self._lines = self._lines[:count], self._lines[count:]
        return found

    async def _receive_part(self, seconds: float) -> None:
        """Receive the next part of the body. Raises RequestTimeout, Disconnected."""
        if self._arriving is None:
            self._arriving = asyncio.ensure_future(self._receive())
        done, _ = await asyncio.wait([self._arriving], timeout=seconds)
        if not done:
            raise RequestTimeout(seconds_max=seconds)
        message = self._arriving.result()
        self._arriving = None
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._add(self._splitter.feed(message.get("body", b"")))
        if not message.get("more_body"):
            self._ended = True
            self._add(self._splitter.rest())

    def _add(self, lines: Iterable[NumberedLine]) -> None:
        """Add lines, except blank ones, which only count."""
        self._lines += [one for one in lines if one[1] is None or one[1].strip()]
