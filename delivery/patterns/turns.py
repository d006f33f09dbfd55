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
        self._long_at_s: dict[int, float] = {}  # when each group last had long work
        self._short_at_s = -math.inf  # when a group without long work last had short work
        self._long_from_s = -math.inf  # when the next slice of long work may begin

    async def run(self, group: int, steps: Iterator[None]) -> None:
        """Run all steps of a group. Work that is done within its first slice is short."""
        if _is_done(steps):
            long_at_s = self._long_at_s.get(group, -math.inf)
            if _now_s() - long_at_s > limits.PATTERN_SHORT_WORK_S:
                self._short_at_s = _now_s()
            return
        done = False
        while not done:
            async with self._one_at_a_time:
                await asyncio.sleep(max(self._long_from_s - _now_s(), 0))
                began_s = _now_s()
                done = _is_done(steps)
                self._long_at_s[group] = ended_s = _now_s()
                self._long_from_s = ended_s + self._pause_s(ended_s, ended_s - began_s)

    def forget(self, group: int) -> None:
        """Forget a group that this process does not run any more."""
        self._long_at_s.pop(group, None)

    def _pause_s(self, now_s: float, slice_s: float) -> float:
        if now_s - self._short_at_s > limits.PATTERN_SHORT_WORK_S:
            return 0.0  # all groups have much to do, or there is one only
        return slice_s * limits.PATTERN_SLICE_PAUSE


def _is_done(steps: Iterator[None]) -> bool:
    """Run one slice; return whether that was all."""
    until_s = _now_s() + limits.PATTERN_SLICE_S
    return all(_now_s() < until_s for _ in steps)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
