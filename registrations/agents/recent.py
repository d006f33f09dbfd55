"""The recent events that agents examine: for each distinct filter those that it passes, shared by
all agents with that filter. Plain module.
"""

from collections import Counter, deque
from collections.abc import Sequence

from registrations.agents.values import EventValue
from registrations.filters.ast import Node


class RecentSize:
    """The size of the events in several memories together, in bytes."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class RecentMemory:
    """The most recent events that a filter passes. `count`: among so many events of the streams;
    `leaf`: the number of the filter; `complete_from`: the index from which on all are here;
    `total`: the size of all memories of the scope. Concurrency: none.
    """

    def __init__(self, leaf: int, filter: Node, complete_from: int, total: RecentSize) -> None:
        self.leaf = leaf
        self.filter = filter
        self.complete_from = complete_from
        self.count = 0
        self.size = 0  # in bytes
        self.users: Counter[int] = Counter()  # agents, with their uses
        self.events: deque[EventValue] = deque()
        self._counts: Counter[int] = Counter()  # that uses need
        self._total = total

    def use(self, number: int, count: int) -> None:
        """Have an agent examine the events among the last `count` of the streams."""
        self.users[number] += 1
        self._counts[count] += 1
        self.count = max(self.count, count)

    def release(self, number: int, count: int) -> None:
        """End a use; with the last one the events are removed."""
        _less(self.users, number)
        _less(self._counts, count)
        self.count = max(self._counts, default=0)
        if not self.users:
            self._resize(-self.size)
            self.events.clear()

    def add(self, event: EventValue) -> None:
        """Add the latest event."""
        self.events.append(event)
        self._resize(event.size)
        self.remove_until(event.index - self.count)

    def put_before(self, events: Sequence[EventValue], complete_from: int) -> None:
        """Add events that are older than all others, in order."""
        self.complete_from = complete_from
        self.events.extendleft(reversed(events))
        self._resize(sum(event.size for event in events))

    def remove_until(self, index: int) -> None:
        """Remove all events up to an index."""
        while self.events and self.events[0].index <= index:
            self._resize(-self.events.popleft().size)
        self.complete_from = max(self.complete_from, index + 1)

    def after(self, index: int) -> list[EventValue]:
        """Return the events after an index, the oldest first."""
        found: list[EventValue] = []
        for event in reversed(self.events):
            if event.index <= index:
                break
            found.append(event)
        return found[::-1]

    def _resize(self, more: int) -> None:
        self.size += more
        self._total.bytes += more


def _less(counter: "Counter[int]", item: int) -> None:
    counter[item] -= 1
    if not counter[item]:
        del counter[item]
