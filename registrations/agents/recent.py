"""The recent events that agents examine: for each distinct filter those that it passes, shared by
all agents with that filter. Plain module.
"""

from collections import deque
from collections.abc import Sequence

from registrations.agents.values import EventValue
from registrations.filters.ast import Node


class RecentMemory:
    """The most recent events that a filter passes. `count`: among so many events of the streams;
    `complete_from`: the index from which on all are here. Concurrency: none.
    """

    def __init__(self, number: int, filter: Node, complete_from: int) -> None:
        self.number = number
        self.filter = filter
        self.complete_from = complete_from
        self.count = 0
        self.size = 0  # in bytes
        self.users: set[int] = set()
        self.events: deque[EventValue] = deque()

    def add(self, event: EventValue) -> None:
        """Add the latest event."""
        self.events.append(event)
        self.size += event.size
        self.remove_until(event.index - self.count)

    def put_before(self, events: Sequence[EventValue], complete_from: int) -> None:
        """Add events that are older than all others, in order."""
        self.complete_from = complete_from
        self.events.extendleft(reversed(events))
        self.size += sum(event.size for event in events)

    def remove_until(self, index: int) -> None:
        """Remove all events up to an index."""
        while self.events and self.events[0].index <= index:
            self.size -= self.events.popleft().size
        self.complete_from = max(self.complete_from, index + 1)

    def after(self, index: int) -> list[EventValue]:
        """Return the events after an index, the oldest first."""
        found: list[EventValue] = []
        for event in reversed(self.events):
            if event.index <= index:
                break
            found.append(event)
        return found[::-1]
