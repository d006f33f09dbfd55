"""The time slices of the pattern groups of one process: a group that needs long delays the others
by little. Plain module.

Every write of a group waits for several answers of the database, and each answer waits for what
runs in this process at that moment. So short work runs at once; long work runs in slices of a
millisecond, one group after the other, and while there is short work too, it leaves the process
free for most of the time.
"""

import asyncio
import math
from collections.abc import Iterator

from eventhub.base import limits


class GroupTurns:
    """Concurrency contract: one event loop."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._short_at_s = -math.inf  # when the last short work was done
        self._long_from_s = -math.inf  # when the next slice of long work may begin

    async def run(self, steps: Iterator[None]) -> None:
        """Run all steps. Work that is done within its first slice is short."""
        if _is_done(steps):
            self._short_at_s = _now_s()
            return
        while True:
            async with self._one_at_a_time:
                await asyncio.sleep(max(self._long_from_s - _now_s(), 0))
                began_s = _now_s()
                done = _is_done(steps)
                self._long_from_s = self._next_s(began_s, _now_s())
            if done:
                return

    def _next_s(self, began_s: float, ended_s: float) -> float:
        if ended_s - self._short_at_s > limits.PATTERN_SHORT_WORK_S:
            return ended_s  # all have much to do, or there is nobody else
        return ended_s + (ended_s - began_s) * limits.PATTERN_SLICE_PAUSE


def _is_done(steps: Iterator[None]) -> bool:
    """Run one slice; return whether that was all."""
    until_s = _now_s() + limits.PATTERN_SLICE_S
    return all(_now_s() < until_s for _ in steps)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
