"""What every engine of the match index is: it answers for one shard, and knows what is gone from
it. Plain module.
"""

from typing import Protocol

from eventhub.event.envelope import Event
from registrations.matching.matcher import Counters


class Engine(Protocol):
    """Which entries of a shard does an event match? All engines give the same, in an order
    of their own.

    Concurrency: one thread at a time; `match` leaves nothing behind but buried entries.
    """

    name: str

    @property
    def counters(self) -> Counters:
        """The work of this engine since it was made."""

    def match(self, event: Event, *, places: bool = False) -> memoryview:
        """The ids of all filters that the event matches, each once; or their dense places, for the
        columns beside the ids. 64 bits each, a buffer of its own.
        """

    def bury(self, place: int) -> None:
        """The entry at a dense place is not found any more."""
