"""One listener across all its connections: resumes at its position, and lets the caller decide what
a gap means. Plain module.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Literal

import aiohttp

from eventhub.base import limits
from eventhub_client.errors import RETRY, GapError, SegmentMismatchError
from eventhub_client.http import Http
from eventhub_client.position import Item, ReadPosition
from eventhub_client.transports import TRANSPORTS, Message, Transport
from eventhub_client.types import HubProblem, Start

Lost = GapError | SegmentMismatchError
GapHook = Callable[[Lost], Start | Awaitable[Start]]
OnGap = Literal["raise", "continue"] | GapHook
"""`raise`; `continue` at the cursor that the hub names; or a hook that gets the error and returns
where to continue (or raises).
"""

UNREACHABLE = (aiohttp.ClientError, ConnectionError, TimeoutError)


async def follow(
    http: Http,
    position: ReadPosition,
    *,
    transport: Transport = "websocket",
    on_gap: OnGap = "raise",
) -> AsyncIterator[Item]:
    """Yield every item of a listener, in order, once, until closed.

    Raises HubProblem if a retry cannot help, and LossDetected.
    """
    source = TRANSPORTS[transport]
    attempt = 0
    while True:
        wait_s = None
        try:
            async with aclosing(_once(source(http, position), position)) as items:
                async for item in items:
                    attempt = 0
                    yield item
        except UNREACHABLE:
            pass
        except (GapError, SegmentMismatchError) as error:
            position.start = await _resume_at(on_gap, position, error)
            if attempt == 0:
                attempt = 1
                continue
        except HubProblem as error:
            if error.status not in RETRY:
                raise
            wait_s = error.retry_after_s
        await asyncio.sleep(pause_s(attempt, wait_s))
        attempt += 1


async def _once(
    source: AsyncIterator[Message], position: ReadPosition
) -> AsyncGenerator[Item, None]:
    """Yield the items of one connection."""
    async with aclosing(source) as messages:  # type: ignore[type-var]
        async for message in messages:
            item = position.take(message)
            if item is not None:
                yield item


def pause_s(attempt: int, retry_after_s: float | None = None) -> float:
    """Return the pause before the next attempt: exponential backoff with full jitter, so that a
    thousand clients do not reconnect at once.
    """
    return random.uniform(*pause_bounds_s(attempt, retry_after_s))  # noqa: S311


def pause_bounds_s(attempt: int, retry_after_s: float | None = None) -> tuple[float, float]:
    """Return the bounds of the pause after so many failed attempts."""
    if retry_after_s is not None:
        return retry_after_s, retry_after_s * 1.25
    most_s = min(limits.CLIENT_PAUSE_S_MIN * 2.0 ** min(attempt, 10), limits.CLIENT_PAUSE_S_MAX)
    return 0.0, most_s


async def _resume_at(on_gap: OnGap, position: ReadPosition, error: Lost) -> Start:
    if on_gap == "raise":
        if "known" in error.problem:
            raise error
        raise type(error)(position.with_known(error.problem)) from error
    if on_gap == "continue":
        return error.resume
    found = on_gap(error)
    return await found if isinstance(found, Awaitable) else found
