"""The time slices of the pattern groups of one process: a client whose groups need long delays
others by little. Plain module.

Every write of a group waits for several answers of the database, and each answer waits for what
runs in this process at that moment. So work runs in slices of a millisecond, one group after the
other, and a client that used more time than another active one pauses between its slices.
"""

import asyncio
import math
from collections.abc import Iterator

from eventhub.base import limits


class _ClientTime:
    """What one client used. `used_s`: seconds, as of `at_s`, of which a part is forgotten each
    second; `free_from_s`: when its next slice may begin; `turn`: held by its group that waits.
    """

    def __init__(self) -> None:
        self.used_s = 0.0
        self.at_s = -math.inf
        self.free_from_s = -math.inf
        self.turn = asyncio.Lock()

    def used_at(self, now_s: float) -> float:
        return self.used_s * math.exp((self.at_s - now_s) / limits.PATTERN_USED_S)

    def is_active(self, now_s: float) -> bool:
        return self.turn.locked() or now_s - self.at_s <= limits.PATTERN_USED_S


class GroupTurns:
    """Concurrency contract: one event loop."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._clients: dict[int, _ClientTime] = {}

    async def run(self, client: int, steps: Iterator[None], *, is_urgent: bool = False) -> None:
        """Run all steps of a group of a client: the first slice at once, unless the client is to
        pause. Urgent work never pauses: a group that is restored is late already.
        """
        one = self._clients.setdefault(client, _ClientTime())
        if one.free_from_s <= _now_s() and not one.turn.locked() and self._is_done(one, steps):
            return
        done = False
        while not done:
            if is_urgent:
                done = await self._slice(one, steps)
                continue
            async with one.turn:
                await asyncio.sleep(max(one.free_from_s - _now_s(), 0.0))
                done = await self._slice(one, steps)

    def charge(self, client: int, seconds: float) -> None:
        """Count time that work of a client takes elsewhere, as if it were a slice of it."""
        one = self._clients.setdefault(client, _ClientTime())
        self._count(one, _now_s(), seconds)

    def forget_idle(self) -> None:
        """Forget the clients that used no time lately and do not pause."""
        now_s = _now_s()
        self._clients = {
            client: one
            for client, one in self._clients.items()
            if one.is_active(now_s) or one.free_from_s > now_s
        }

    async def _slice(self, one: _ClientTime, steps: Iterator[None]) -> bool:
        async with self._one_at_a_time:
            await asyncio.sleep(0)
            return self._is_done(one, steps)

    def _is_done(self, one: _ClientTime, steps: Iterator[None]) -> bool:
        """Run one slice; return whether that was all."""
        began_s = _now_s()
        until_s = began_s + limits.PATTERN_SLICE_S
        done = all(_now_s() < until_s for _ in steps)
        ended_s = _now_s()
        self._count(one, ended_s, ended_s - began_s)
        return done

    def _count(self, one: _ClientTime, now_s: float, seconds: float) -> None:
        one.used_s = one.used_at(now_s) + seconds
        one.at_s = now_s
        one.free_from_s = max(one.free_from_s, now_s) + seconds * self._pauses(one, now_s)

    def _pauses(self, one: _ClientTime, now_s: float) -> float:
        """Return for how many times its slice a client pauses: 0, or so often that all clients
        that pause take a constant share of the time.
        """
        used_s = one.used_s
        if used_s <= limits.PATTERN_USED_FREE_S:
            return 0.0
        active = [each for each in self._clients.values() if each.is_active(now_s)]
        used = [each.used_at(now_s) for each in active]
        if all(each >= used_s / 2 for each in used):
            return 0.0
        return limits.PATTERN_SLICE_PAUSE * sum(each >= used_s / 2 for each in used)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
