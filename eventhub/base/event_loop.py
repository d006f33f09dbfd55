"""Work on an event loop: restarted tasks, time slices, waiting with a timeout. Plain module."""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol
from weakref import WeakValueDictionary

from eventhub.base import limits
from eventhub.base.logs import get_logger

log = get_logger(__name__)
_OWN_PART = (math.sqrt(5) - 1) / 2  # multiples of it lie apart
_EARLY_S = 0.01


class Waker(Protocol):
    """What is set when somebody may have work: an asyncio.Event, or what sets one."""

    def set(self) -> None: ...


async def run_forever(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run the work until cancelled, and again whenever it returns or raises."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("background_task_failed", task=name)
        await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)


_working: WeakValueDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakValueDictionary()


async def run_in_slices(
    steps: Iterator[None], slice_s: float | None = None, rounds: int = 1
) -> None:
    """Run all steps, one time slice of so many seconds (None: TIME_SLICE_S) after the other.
    Callers of one event loop take slices in their order, and everything else runs between two
    slices, for so many rounds of the loop: what passes several rounds waits for few slices.
    """
    slice_s = limits.TIME_SLICE_S if slice_s is None else slice_s
    loop = asyncio.get_running_loop()
    one_at_a_time = _working.setdefault(loop, asyncio.Lock())
    while True:
        async with one_at_a_time:
            until_s = loop.time() + slice_s
            for _ in steps:
                if loop.time() >= until_s:
                    break
            else:
                return
            for _ in range(rounds):
                await asyncio.sleep(0)


async def wait_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event; return False when the time is over. Not `asyncio.wait_for`: in Python
    3.11 it loses a cancellation that comes at the moment of the event, and the cancelled task runs
    on for ever.
    """
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await event.wait()
    except TimeoutError:
        return False
    return True


def pause_together_s(seconds: float) -> float:
    """Return how long to pause, at most so many seconds: until a moment at which other tasks of
    this process look for work, too. What a process reads and runs has left the processor's caches
    by the time of a look, so looks that come together take half of what they take apart. Processes
    have moments of their own, so that they do not burden the database at once.
    """
    if seconds < limits.PAUSE_TOGETHER_S:
        return seconds
    own_s = os.getpid() * _OWN_PART % 1 * limits.PAUSE_TOGETHER_S
    until_s = time.monotonic() + own_s + seconds
    # a timer may fire a little early
    return seconds - (until_s + _EARLY_S) % limits.PAUSE_TOGETHER_S + _EARLY_S
