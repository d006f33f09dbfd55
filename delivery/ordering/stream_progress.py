"""How far a session is in one stream: what was read, delivered and acknowledged. Plain module."""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from delivery.ordering.held import HeldEvent
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
        # acknowledged on an earlier connection and not read again yet
        self.known = {each for each in acknowledged if each > cursor.sequence}
        self.tracked: dict[int, HeldEvent] = {}
        self.changed = False  # since the position was last taken to be saved
        self._oldest: deque[HeldEvent] = deque()
        self._delivered: list[int] = []  # a heap; may have sequences that are settled
        self._acknowledged: set[int] = set()  # those tracked

    @property
    def cursor(self) -> Cursor:
        return self._oldest[0].before if self._oldest else self.read

    def position(self) -> SavedPosition:
        cursor = self.cursor
        acknowledged = self._acknowledged | self.known
        return SavedPosition(cursor, sorted(each for each in acknowledged if each > cursor.sequence))

    def track(self, held: HeldEvent) -> None:
        self.tracked[held.stored.sequence] = held
        self._oldest.append(held)

    def note_acknowledged(self, held: HeldEvent) -> int:
        """Pass an event that was acknowledged on an earlier connection; return how many events more
        are tracked.
        """
        self.known.discard(held.stored.sequence)
        if not self._oldest:
            return 0
        held.acknowledged = held.settled = True
        self._acknowledged.add(held.stored.sequence)
        self.track(held)
        return 1

    def note_delivered(self, held: HeldEvent) -> None:
        heappush(self._delivered, held.stored.sequence)

    def delivered_up_to(self, sequence: int) -> Iterator[HeldEvent]:
        """Take the delivered events up to a sequence that are not settled."""
        while self._delivered and self._delivered[0] <= sequence:
            held = self.tracked.get(heappop(self._delivered))
            if held is not None and not held.settled:
                yield held

    def settle(self, held: HeldEvent) -> int:
        """Advance the cursor past what is settled; return how many events it passed."""
        self.changed = True
        if held.acknowledged:
            self._acknowledged.add(held.stored.sequence)
        passed = 0
        while self._oldest and self._oldest[0].settled:
            sequence = self._oldest.popleft().stored.sequence
            self._acknowledged.discard(sequence)
            del self.tracked[sequence]
            passed += 1
        return passed
