"""Long work on an event loop in short time slices, so that other tasks run between them. Plain
module.
"""

import asyncio
from collections.abc import Iterator
from weakref import WeakValueDictionary

from eventhub.base import limits

_working: WeakValueDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakValueDictionary()


async def run_in_slices(steps: Iterator[None]) -> None:
    """Run all steps, one time slice after the other. Callers of one event loop take slices in their
    order, and everything else runs between two slices.
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
