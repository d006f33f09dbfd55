"""One listen over all losses of its connection: asks again from where it stands, and lets the
caller decide what a gap means. Plain module.
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
"""`raise`; `continue` where the hub says; or a hook that is told and says where to go on (it may
raise too).
"""

UNREACHABLE = (aiohttp.ClientError, ConnectionError, TimeoutError)


async def follow(
    http: Http, place: ReadPosition, *, via: Transport = "websocket", on_gap: OnGap = "raise"
) -> AsyncIterator[Item]:
    """Every item of a listen, in order, once; ends only by an exception or when it is closed.

    Raises HubProblem for what trying again cannot mend, and LossDetected.
    """
    source = TRANSPORTS[via]
    attempt = 0
    while True:
        try:
            async with aclosing(_once(source(http, place), place)) as items:
                async for item in items:
                    attempt = 0
                    yield item
        except UNREACHABLE:
            pass
        except (GapError, SegmentMismatchError) as error:
            place.start = await _where(on_gap, place, error)
            if attempt == 0:
                attempt = 1
                continue
        except HubProblem as error:
            if error.status not in RETRY:
                raise
        await asyncio.sleep(pause_s(attempt))
        attempt += 1


async def _once(source: AsyncIterator[Message], place: ReadPosition) -> AsyncGenerator[Item, None]:
    """The items of one connection."""
    async with aclosing(source) as messages:  # type: ignore[type-var]
        async for message in messages:
            item = place.take(message)
            if item is not None:
                yield item


def pause_s(attempt: int, retry_after_s: float | None = None) -> float:
    """How long to wait before the next try; spread, so that a thousand clients do not come back in
    one moment.
    """
    bound_s = min(limits.CLIENT_PAUSE_S_MIN * 2.0 ** min(attempt, 10), limits.CLIENT_PAUSE_S_MAX)
    if retry_after_s is not None:
        return retry_after_s * random.uniform(1.0, 1.25)  # noqa: S311
    return bound_s * random.uniform(0.5, 1.0)  # noqa: S311


async def _where(on_gap: OnGap, place: ReadPosition, error: Lost) -> Start:
    if on_gap == "raise":
        if "known" in error.problem:
            raise error
        raise type(error)(place.known(error.problem)) from error
    if on_gap == "continue":
        return error.resume
    found = on_gap(error)
    return await found if isinstance(found, Awaitable) else found
