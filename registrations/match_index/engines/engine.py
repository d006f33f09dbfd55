"""The interface of the match index's engines: each matches events against one shard, and keeps its
tombstones. Plain module.
"""

from typing import Protocol

from eventhub.event.envelope import Event
from registrations.matching.matcher import Counters


class Engine(Protocol):
    """An engine finds the entries of a shard that an event matches. All engines return the same
    set, in any order.

    Concurrency: one thread at a time; only `mark_removed` changes the results.
    """

    name: str

    @property
    def counters(self) -> Counters:
        """The work of this engine since it was created."""

    def match(self, event: Event, *, positions: bool = False) -> memoryview:
        """Return the ids of all filters that the event matches, each once; or their dense
        positions, for the other columns. 64 bits each, in a new buffer.
        """

    def mark_removed(self, position: int) -> None:
        """Set a tombstone: the entry at a dense position no longer matches."""
