"""Long work of an event loop in short steps, so that nobody else waits long. Plain module."""

import asyncio
from collections.abc import Iterator
from weakref import WeakValueDictionary

from eventhub.base import limits

_working: WeakValueDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakValueDictionary()


async def in_turns(steps: Iterator[None]) -> None:
    """Take all steps, a turn at a time. However many do so in one event loop, one of them has a
    turn before everything else goes on, each in its order.
    """
    loop = asyncio.get_running_loop()
    one_at_a_time = _working.setdefault(loop, asyncio.Lock())
    while True:
        async with one_at_a_time:
            until_s = loop.time() + limits.TIME_SLICE_S
            for _ in steps:
                if loop.time() >= until_s:
                    break
            else:
                return
            await asyncio.sleep(0)
