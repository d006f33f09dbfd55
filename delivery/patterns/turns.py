"""The time slices of the pattern groups of one process: a client whose groups need long delays
others by little. Plain module.

Every write of a group waits for several answers of the database, and each answer waits for what
runs in this process at that moment. So short work runs at once; long work runs in slices of a
millisecond, one group after the other, and while another client has short work only, it leaves the
process free for most of the time.
"""

import asyncio
import math
from collections.abc import Iterator

from eventhub.base import limits


class GroupTurns:
    """Concurrency contract: one event loop."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._long_at_s: dict[int, float] = {}  # when each client last had long work ...
        self._short_at_s: dict[int, float] = {}  # ... and short work, without long work before it
        self._long_from_s = -math.inf  # when the next slice of long work may begin

    async def run(self, client: int, steps: Iterator[None], *, is_urgent: bool = False) -> None:
        """Run all steps of a group of a client. Work that is done within its first slice is short.
        Urgent work leaves no time free: a group that is restored is late already.
        """
        if _is_done(steps):
            if not _is_recent(self._long_at_s.get(client)):
                self._short_at_s[client] = _now_s()
            return
        done = False
        while not done:
            async with self._one_at_a_time:
                wait_s = 0.0 if is_urgent else self._long_from_s - _now_s()
                await asyncio.sleep(max(wait_s, 0.0))
                began_s = _now_s()
                done = _is_done(steps)
                self._long_at_s[client] = ended_s = _now_s()
                if not is_urgent and self._has_neighbour(client):
                    pause_s = (ended_s - began_s) * limits.PATTERN_SLICE_PAUSE
                    self._long_from_s = ended_s + pause_s

    def forget(self, client: int) -> None:
        """Forget a client of a group that this process does not run any more."""
        self._long_at_s.pop(client, None)
        self._short_at_s.pop(client, None)

    def _has_neighbour(self, client: int) -> bool:
        """Return whether another client has short work only."""
        return any(_is_recent(at_s) for one, at_s in self._short_at_s.items() if one != client)


def _is_recent(at_s: float | None) -> bool:
    return at_s is not None and _now_s() - at_s <= limits.PATTERN_SHORT_WORK_S


def _is_done(steps: Iterator[None]) -> bool:
    """Run one slice; return whether that was all."""
    until_s = _now_s() + limits.PATTERN_SLICE_S
    return all(_now_s() < until_s for _ in steps)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
