"""Timers that say when an event without an acknowledgement is sent again, without I/O. Plain
module.

Source: FOX 10.1.1 (FOX-84).
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from eventhub.base.clock import Clock

Key = TypeVar("Key", bound=Hashable)
_ROUNDING = 1e-9  # of a division of two clock readings


class ReissueTimers(Generic[Key]):
    """A timer per event in flight. It counts down in intervals; at zero the event is due again and
    the timer restarts; the acknowledgement ends it (FOX-84).
    """

    def __init__(self, clock: Clock, *, interval_s: float, timeout_s: float) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._left_s: dict[Key, float] = {}
        self._ticked_s = clock.monotonic_s()

    def issued(self, keys: Iterable[Key]) -> None:
        """Start a timer for each of the events just sent."""
        if not self._left_s:
            self._ticked_s = self._clock.monotonic_s()
        self._left_s.update((key, self._timeout_s) for key in keys)

    def stored(self, keys: Iterable[Key]) -> None:
        """End the timers of events that are stored, or that will never be sent again."""
        for key in keys:
            self._left_s.pop(key, None)

    def wait(self, keys: Iterable[Key], seconds: float) -> None:
        """Make events that the hub or the network refused due in so many seconds."""
        self._left_s.update((key, seconds) for key in keys)

    def due(self) -> list[Key]:
        """Return the events to send again now, in the order in which they were issued."""
        passed_s = self._clock.monotonic_s() - self._ticked_s
        intervals = int(passed_s / self._interval_s + _ROUNDING)
        if not intervals:
            return []
        self._ticked_s += intervals * self._interval_s
        due = []
        for key in self._left_s:
            self._left_s[key] -= intervals * self._interval_s
            if self._left_s[key] <= _ROUNDING:
                self._left_s[key] = self._timeout_s
                due.append(key)
        return due
