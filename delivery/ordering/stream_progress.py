"""How far a session is in one stream: what was read, delivered and acknowledged. Plain module."""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from delivery.ordering.held import Tracked
from eventhub.eventlog.stored import Cursor


class SavedPosition(NamedTuple):
    """A position to continue from: everything up to the cursor is acknowledged, and these sequences
    above it, ascending.
    """

    cursor: Cursor
    acknowledged: list[int]


class StreamProgress:
    """The events of one stream that the cursor has not passed, in order of their sequences."""

    def __init__(self, cursor: Cursor, acknowledged: Iterable[int] = ()) -> None:
        self.read = cursor  # the last position that was put or skipped
        self.settled_through = cursor  # everything up to it is acknowledged, also what is not read
        # acknowledged on an earlier connection and not read again yet
        self.known = {each for each in acknowledged if each > cursor.sequence}
        self.tracked: dict[int, Tracked] = {}
        self.changed = False  # since the position was last taken to be saved
        self._oldest: deque[Tracked] = deque()
        self._delivered: list[int] = []  # a heap; may have sequences that are settled
        self._acknowledged: set[int] = set()  # those tracked

    @property
    def cursor(self) -> Cursor:
        found = self._oldest[0].before if self._oldest else self.read
        settled = self.settled_through
        return settled if settled.sequence > found.sequence else found

    def position(self) -> SavedPosition:
        cursor = self.cursor
        acknowledged = self._acknowledged | self.known
        return SavedPosition(
            cursor, sorted(each for each in acknowledged if each > cursor.sequence)
        )

    def track(self, tracked: Tracked) -> None:
        self.tracked[tracked.sequence] = tracked
        self._oldest.append(tracked)

    def note_acknowledged(self, tracked: Tracked) -> int:
        """Pass an event that was acknowledged on an earlier connection; return how many events more
        are tracked.
        """
        self.known.discard(tracked.sequence)
        if not self._oldest:
            return 0
        tracked.acknowledged = tracked.settled = True
        self._acknowledged.add(tracked.sequence)
        self.track(tracked)
        return 1

    def is_known(self, sequence: int) -> bool:
        """Return whether an event that is read now was acknowledged before."""
        return sequence in self.known or sequence <= self.settled_through.sequence

    def acknowledged_elsewhere(self, cursor: Cursor, sequences: Iterable[int]) -> list[Tracked]:
        """Note a position that was stored by others; return the events that it acknowledges here.
        Events that were not read yet are passed when they are.
        """
        if cursor.sequence > self.settled_through.sequence:
            self.settled_through = cursor
            self.changed = True
        found = []
        for tracked in self._oldest:
            if tracked.sequence > cursor.sequence:
                break
            found.append(tracked)
        for sequence in sequences:
            if sequence in self.tracked:
                found.append(self.tracked[sequence])
            elif sequence > max(self.read.sequence, cursor.sequence):
                self.known.add(sequence)
                self.changed = True
        return [tracked for tracked in found if not tracked.settled]

    def note_delivered(self, tracked: Tracked) -> None:
        heappush(self._delivered, tracked.sequence)

    def delivered_up_to(self, sequence: int) -> Iterator[Tracked]:
        """Take the delivered events up to a sequence that are not settled."""
        while self._delivered and self._delivered[0] <= sequence:
            tracked = self.tracked.get(heappop(self._delivered))
            if tracked is not None and not tracked.settled:
                yield tracked

    def settle(self, tracked: Tracked) -> int:
        """Advance the cursor past what is settled; return how many events it passed."""
        self.changed = True
        if tracked.acknowledged:
            self._acknowledged.add(tracked.sequence)
        passed = 0
        while self._oldest and self._oldest[0].settled:
            sequence = self._oldest.popleft().sequence
            self._acknowledged.discard(sequence)
            del self.tracked[sequence]
            passed += 1
        return passed
