"""Gathers the lines of a body as it arrives into pieces, each of which is stored at once.
Plain module.

A piece is complete when it is as large as one may be, when the body ends, or when no other line
came for a while: whoever sends lines seldom has them stored at once all the same.
"""

import asyncio
from collections.abc import Iterable

from eventhub.base import limits
from eventhub.base.errors import RequestTimeout
from eventhub.http.messages import Disconnected, Message, Receive
from registrations.bulk.lines import Cutter

Text = tuple[int, bytes | None]  # a line's number, and what it is; None: too long


class Pieces:
    """The pieces of one body. Concurrency contract: one task uses it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._cutter = Cutter()
        self._texts: list[Text] = []  # not given out yet
        self._arriving: asyncio.Future[Message] | None = None
        self._ended = False

    async def begin(self) -> None:
        """Wait for the first part of the body. Raises RequestTimeout, Disconnected."""
        await self._more(limits.BULK_IDLE_S_MAX)

    async def next(self) -> list[Text]:
        """The next piece; empty when there is none any more.

        Raises RequestTimeout, and Disconnected when the caller went away: what was given out is
        all there is.
        """
        while not self._ended and not self._is_full():
            waits = limits.BULK_LINGER_S if self._texts else limits.BULK_IDLE_S_MAX
            try:
                await self._more(waits)
            except RequestTimeout:
                if not self._texts:
                    raise
                break
        return self._cut()

    async def close(self) -> None:
        """Wait for nothing any more."""
        if self._arriving is not None:
            self._arriving.cancel()

    def _is_full(self) -> bool:
        if len(self._texts) >= limits.REGISTRATIONS_PER_REQUEST_MAX:
            return True
        return _size(self._texts) >= limits.BULK_BATCH_BYTES_MAX

    def _cut(self) -> list[Text]:
        """As much of what waits as may be stored at once; a single line always may."""
        count = size = 0
        for _, text in self._texts[: limits.REGISTRATIONS_PER_REQUEST_MAX]:
            size += len(text or b"")
            if count and size > limits.BULK_BATCH_BYTES_MAX:
                break
            count += 1
        found, self._texts = self._texts[:count], self._texts[count:]
        return found

    async def _more(self, seconds: float) -> None:
        """Take the next part of the body, if it comes in time."""
        if self._arriving is None:
            self._arriving = asyncio.ensure_future(self._receive())
        done, _ = await asyncio.wait([self._arriving], timeout=seconds)
        if not done:
            raise RequestTimeout(seconds_max=seconds)
        message = self._arriving.result()
        self._arriving = None
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._keep(self._cutter.feed(message.get("body", b"")))
        if not message.get("more_body"):
            self._ended = True
            self._keep(self._cutter.rest())

    def _keep(self, texts: Iterable[Text]) -> None:
        """Blank lines have a number and nothing else."""
        self._texts += [one for one in texts if one[1] is None or one[1].strip()]


def _size(texts: Iterable[Text]) -> int:
    return sum(len(text or b"") for _, text in texts)
