"""All combinations of three remembered events, tried for each event: three logins of one user, in
the order of their times. The baseline of temporal joins. Plain.
"""

from collections import deque
from itertools import product
from typing import Any


class EnumeratedJoins:
    """The events of a memory. `tried`: combinations."""

    def __init__(self, memory: int) -> None:
        self.tried = 0
        self._events: deque[dict[str, Any]] = deque(maxlen=memory)

    def remember(self, event: dict[str, Any]) -> None:
        """Take an event without its matches."""
        self._events.append(event)

    def feed(self, event: dict[str, Any]) -> int:
        """Take an event; return the number of matches that it completes."""
        self.remember(event)
        found = 0
        newest = len(self._events) - 1
        numbered = [*enumerate(self._events)]
        for (one, a), (two, b), (three, c) in product(numbered, repeat=3):
            if newest not in (one, two, three):
                continue
            self.tried += 1
            if a["time"] < b["time"] < c["time"] and a["userid"] == b["userid"] == c["userid"]:
                found += 1
        return found
