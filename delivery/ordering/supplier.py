"""The order of each producer's own numbers (FOX-09, FOX-79; READY's supplier-based order). Plain
module.
"""

from collections import defaultdict
from heapq import heappop, heappush
from typing import NamedTuple

from delivery.ordering.held import HeldEvent
from delivery.ordering.options import OrderSettings
from delivery.ordering.sorted_orders import NOW
from eventhub.base import limits
from eventhub.event.identity import EventId


class Number(NamedTuple):
    """An event's place among those of its producer."""

    incarnation: int
    timestamp_us: int
    sequence: int


_UNNUMBERED = Number(0, 0, 0)  # an event without an id object


class SupplierOrder:
    """Events by supplier: those of the session's list first, then alphabetically; of each one by
    (incarnation, timestamp, sequence).

    With `hold_us` an event also waits for earlier ones of its producer that may still arrive, until
    that long after its append, unless it is the next number after one that was released.
    """

    sorts = True

    def __init__(self, settings: OrderSettings) -> None:
        self._ranks = {name: rank for rank, name in enumerate(settings.suppliers)}
        self._hold_us = settings.hold_us
        self.needs_all = settings.hold_us > 0
        self._ready: list[tuple[int, str, Number, int, HeldEvent]] = []
        # of those that wait: by source, and by deadline
        self._waiting: defaultdict[str, list[tuple[Number, int, HeldEvent]]] = defaultdict(list)
        self._deadlines: list[tuple[int, int, HeldEvent]] = []
        self._released: dict[str, Number] = {}  # the highest number released, by source
        self._taken: dict[str, Number] = {}  # the highest number taken, by source

    def put(self, held: HeldEvent, now_us: int) -> None:
        number = _number(held)
        source = held.event.source
        if number is _UNNUMBERED or not self._hold_us:
            self._push_ready(held, number)
            return
        heappush(self._waiting[source], (number, held.arrival, held))
        held.waiting = True
        held.deadline_us = held.stored.appended_at_us + self._hold_us
        if held.deadline_us <= now_us:
            self._release(source, number)
            return
        heappush(self._deadlines, (held.deadline_us, held.arrival, held))
        self._release(source, self._released.get(source, _UNNUMBERED))

    def note_delivered(self, held: HeldEvent) -> None:
        _raise(self._released, held.event.source, _number(held))

    def take(self, now_us: int, *, full: bool) -> HeldEvent | None:
        deadlines = self._deadlines
        while deadlines and (not deadlines[0][2].waiting or deadlines[0][0] <= now_us):
            held = heappop(deadlines)[2]
            if held.waiting:
                self._release(held.event.source, _number(held))
        forced = full and not self._ready and bool(deadlines)
        if forced:
            first = heappop(deadlines)[2]
            self._release(first.event.source, _number(first))
        if not self._ready:
            return None
        _, source, number, _, held = heappop(self._ready)
        if number < self._taken.get(source, _UNNUMBERED) and number is not _UNNUMBERED:
            held.disorder = "late"
        elif forced:
            held.disorder = "full"
        _raise(self._taken, source, number)
        return held

    def wake_at_us(self) -> int | None:
        if self._ready:
            return NOW
        return self._deadlines[0][0] if self._deadlines else None

    def _release(self, source: str, through: Number) -> None:
        """Make the events of a producer ready that come at or before a number, and those that
        follow without a hole.
        """
        waiting = self._waiting[source]
        while waiting and (waiting[0][0] <= through or _follows(waiting[0][0], through)):
            number, _, held = heappop(waiting)
            held.waiting = False
            self._push_ready(held, number)
            through = max(through, number)
        if not waiting:
            del self._waiting[source]
        _raise(self._released, source, through)

    def _push_ready(self, held: HeldEvent, number: Number) -> None:
        source = held.event.source
        rank = self._ranks.get(source, len(self._ranks))
        heappush(self._ready, (rank, source, number, held.arrival, held))


def _number(held: HeldEvent) -> Number:
    id = held.event.id
    if not isinstance(id, EventId):
        return _UNNUMBERED
    return Number(id.incarnation, id.timestamp_us, id.sequence)


def _follows(number: Number, other: Number) -> bool:
    """Return whether no number of the producer lies between the two."""
    return number[:2] == other[:2] and number.sequence == other.sequence + 1 > 1


def _raise(numbers: dict[str, Number], source: str, number: Number) -> None:
    """Raise the highest number of a producer; forget the producer noted first above the bound."""
    known = numbers.pop(source, _UNNUMBERED)
    if len(numbers) >= limits.ORDER_NAMES_MAX:
        del numbers[next(iter(numbers))]
    numbers[source] = max(known, number)
