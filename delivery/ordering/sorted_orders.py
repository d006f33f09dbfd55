"""The orders that let no event wait: arrival, priority, validity, type (RDY-49). Plain module."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from delivery.ordering.held import HeldEvent
from delivery.ordering.options import OrderSettings, rank_of_type
from eventhub.base import limits

_NEVER_US = 1 << 63  # an event without an expiry comes after all that have one
NOW = 0  # a time that has come


class ArrivalOrder:
    """The orders `fifo` and `none`: events go as they come."""

    sorts = False
    needs_all = False

    def __init__(self) -> None:
        self._held: deque[HeldEvent] = deque()

    def put(self, held: HeldEvent, now_us: int) -> None:
        self._held.append(held)

    def note_delivered(self, held: HeldEvent) -> None:
        """Ignore it: arrival does not depend on what was delivered before."""

    def take(self, now_us: int, *, full: bool) -> HeldEvent | None:
        return self._held.popleft() if self._held else None

    def wake_at_us(self) -> int | None:
        return NOW if self._held else None


class SortedOrder:
    """An order by a key, the lowest first; equal ones as they came."""

    sorts = True
    needs_all = False

    def __init__(self, key: Callable[[HeldEvent], Any]) -> None:
        self._key = key
        self._heap: list[tuple[Any, int, HeldEvent]] = []

    def put(self, held: HeldEvent, now_us: int) -> None:
        heappush(self._heap, (self._key(held), held.arrival, held))

    def note_delivered(self, held: HeldEvent) -> None:
        """Ignore it: a key does not depend on what was delivered before."""

    def take(self, now_us: int, *, full: bool) -> HeldEvent | None:
        return heappop(self._heap)[2] if self._heap else None

    def wake_at_us(self) -> int | None:
        return NOW if self._heap else None


def by_priority(held: HeldEvent) -> int:
    """Return the key of the highest priority first (FOX-04)."""
    return -held.event.priority


def by_validity(held: HeldEvent) -> int:
    """Return the key of the event that expires first; those that never do come last."""
    return held.event.expires_at_us or _NEVER_US


def by_type(settings: OrderSettings) -> Callable[[HeldEvent], tuple[int, str, str]]:
    """Return the key of a session's list of types; types of the same place are in alphabetical
    order.
    """
    ranks: dict[tuple[str, str], int] = {}

    def key(held: HeldEvent) -> tuple[int, str, str]:
        domain, type = held.event.domain, held.event.type
        rank = ranks.get((domain, type))
        if rank is None:
            if len(ranks) >= limits.ORDER_NAMES_MAX:
                ranks.clear()
            rank = ranks[domain, type] = rank_of_type(domain, type, settings.types)
        return (rank, type, domain)

    return key
