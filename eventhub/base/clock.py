"""Clocks as arguments: production passes `SystemClock`, tests `ManualClock`, and never sleep.
Plain module.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int:
        """Return the microseconds since 1970-01-01 UTC."""

    def monotonic_s(self) -> float:
        """Return the seconds of a clock that never goes back."""


class SystemClock:
    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic_s(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves only by `advance_s`."""

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self._now_us = now_us
        self._monotonic_s = 0.0

    def now_us(self) -> int:
        return self._now_us

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def advance_s(self, seconds: float) -> None:
        self._now_us += int(seconds * 1_000_000)
        self._monotonic_s += seconds
