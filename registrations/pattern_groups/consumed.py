"""The events that a group consumed last, in order, as runs of sequences: a pattern that recognises
earlier events has them read again. Plain module.
"""

from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from registrations.patterns.pattern_engine import EventPosition


class ConsumedRun(Struct, array_like=True):
    """Consecutive events of one segment; `first` and `last` are sequences."""

    stream: int
    segment: str  # UUID
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


class Runs:
    """Positions of events in the order in which they were added, as runs."""

    def __init__(self) -> None:
        self.runs: deque[ConsumedRun] = deque()
        self.count = 0  # events

    def add(self, position: EventPosition) -> None:
        """Add an event."""
        self.count += 1
        _, stream, segment, sequence, _ = position
        if self.runs:
            last = self.runs[-1]
            if last.last + 1 == sequence and last.stream == stream and last.segment == segment:
                last.last = sequence
                return
        self.runs.append(ConsumedRun(stream, segment, sequence, sequence))

    def clear(self) -> None:
        self.runs.clear()
        self.count = 0


class ConsumedRuns(Runs):
    """The last events that a group consumed, `count_max` at least if there were as many. `order`:
    of the last one.
    """

    def __init__(self, count_max: int) -> None:
        super().__init__()
        self.order = 0
        self._count_max = count_max

    def add(self, position: EventPosition) -> None:
        """Add the next event, and forget what is too old."""
        super().add(position)
        self.order = position.order
        while self.count - len(self.runs[0]) >= self._count_max:
            self.count -= len(self.runs.popleft())

    def last(self, count: int) -> list[ConsumedRun]:
        """Return the last events, fewer than `count` if there are fewer."""
        found: list[ConsumedRun] = []
        for run in reversed(self.runs):
            if count <= 0:
                break
            first = max(run.first, run.last - count + 1)
            found.append(ConsumedRun(run.stream, run.segment, first, run.last))
            count -= len(run)
        return found[::-1]

    def first_of(self, stream: int) -> int | None:
        """Return the first sequence of a stream among the events; None if there is none of it."""
        return next((run.first for run in self.runs if run.stream == stream), None)

    def saved(self) -> tuple[int, list[ConsumedRun]]:
        """Return the runs, for `restore`."""
        return self.order, list(self.runs)

    def restore(self, order: int, runs: Sequence[ConsumedRun]) -> None:
        """Replace the runs."""
        self.order = order
        self.runs = deque(runs)
        self.count = sum(map(len, runs))
