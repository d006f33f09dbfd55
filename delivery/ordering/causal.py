"""Causal order: no event before those that it names (FOX-12, FOX-21; FOX 2.5 d, e). Plain
module.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from heapq import heappop, heappush

from delivery.ordering.held import Disorder, HeldEvent, oldest_first
from delivery.ordering.links import (
    NamedPosition,
    conversation,
    lasting_names_of,
    links_of,
    names_of,
    position_of,
)
from delivery.ordering.options import OrderSettings
from delivery.ordering.sorted_orders import NOW
from eventhub.base import limits

IsUnread = Callable[[NamedPosition], bool]
_NONE: dict[int, HeldEvent] = {}


class CausalOrder:
    """Events as they come, but each after the events that its `cause`, `depends` and `correlation`
    name, directly or through others. So it also needs the events that do not match.

    An event waits for one that was not read yet until `hold_us` after its own append; for one that
    is held itself, that long again. Then it goes, and counts as out of order.
    """

    sorts = True
    needs_all = True

    def __init__(
        self, settings: OrderSettings, streams: Collection[str], is_unread: IsUnread
    ) -> None:
        self._hold_us = settings.hold_us
        self._streams = streams
        self._is_unread = is_unread
        self._ready: deque[HeldEvent] = deque()
        self._deadlines: list[tuple[int, int, HeldEvent]] = []
        self._held: dict[str, HeldEvent] = {}  # not taken yet, by each of their names
        # those that wait, by the name that they wait for, and by arrival
        self._dependents: dict[str, dict[int, HeldEvent]] = {}
        self._known: dict[str, None] = {}  # lasting names of the last events taken

    def put(self, held: HeldEvent, now_us: int) -> None:
        names = held.names = names_of(held)
        links = set(links_of(held.event, self._streams)).difference(names)
        held.missing = {link for link in links if not self._is_met(link)}
        for name in names:
            self._held[name] = held
        if not held.missing:
            self._ready.append(held)
            return
        for link in held.missing:
            self._dependents.setdefault(link, {})[held.arrival] = held
        self._wait(held, held.stored.appended_at_us + self._hold_us)

    def note_delivered(self, held: HeldEvent) -> None:
        held.names = names_of(held)
        self._note_taken(held)

    def take(self, now_us: int, *, full: bool) -> HeldEvent | None:
        self._end_waits(now_us)
        if full and not self._ready:
            self._force_oldest()
        if not self._ready:
            return None
        held = self._ready.popleft()
        for name in held.names:
            if self._held.get(name) is held:
                del self._held[name]
        self._note_taken(held)
        return held

    def wake_at_us(self) -> int | None:
        if self._ready:
            return NOW
        self._drop_ended()
        return self._deadlines[0][0] if self._deadlines else None

    def _is_met(self, link: str) -> bool:
        if link in self._held:
            return False
        if link in self._known:
            return True
        position = position_of(link)
        return position is not None and not self._is_unread(position)

    def _wait(self, held: HeldEvent, until_us: int) -> None:
        held.waiting = True
        held.deadline_us = until_us
        heappush(self._deadlines, (until_us, held.arrival, held))

    def _end_waits(self, now_us: int) -> None:
        """Release the events whose time to wait is over."""
        self._drop_ended()
        while self._deadlines and self._deadlines[0][0] <= now_us:
            held = heappop(self._deadlines)[2]
            if not held.extended and any(link in self._held for link in held.missing):
                held.extended = True
                self._wait(held, held.deadline_us + max(self._hold_us, 1))
            else:
                self._force(held, "hold")
            self._drop_ended()

    def _drop_ended(self) -> None:
        """Remove the deadlines of events that no longer wait."""
        while self._deadlines and not self._deadlines[0][2].waiting:
            heappop(self._deadlines)

    def _force_oldest(self) -> None:
        """Release the event that has waited longest, or that which it waits for itself."""
        self._drop_ended()
        if not self._deadlines:
            return
        held, seen = self._deadlines[0][2], set[int]()
        while held.arrival not in seen:
            seen.add(held.arrival)
            held = next((self._held[link] for link in held.missing if link in self._held), held)
        self._force(held, "full")

    def _force(self, held: HeldEvent, reason: Disorder) -> None:
        held.disorder = reason
        for link in held.missing:
            dependents = self._dependents[link]
            del dependents[held.arrival]
            if not dependents:
                del self._dependents[link]
        held.missing.clear()
        self._make_ready(held)

    def _make_ready(self, held: HeldEvent) -> None:
        held.waiting = False
        self._ready.append(held)

    def _note_taken(self, held: HeldEvent) -> None:
        """Release what waited for an event, and remember its lasting names."""
        lasting = lasting_names_of(held)
        if held.event.correlation:
            lasting.append(conversation(held.event.correlation))
        # of a name that another held event has too, that one is to come first
        names = (name for name in dict.fromkeys([*held.names, *lasting]) if name not in self._held)
        freed = [one for name in names for one in self._freed_by(name)]
        for dependent in oldest_first(freed):
            self._make_ready(dependent)
        for name in lasting:
            self._known.pop(name, None)
            if len(self._known) >= limits.ORDER_NAMES_MAX:
                del self._known[next(iter(self._known))]
            self._known[name] = None

    def _freed_by(self, name: str) -> Iterator[HeldEvent]:
        """Yield the events that waited for this name last."""
        for dependent in self._dependents.pop(name, _NONE).values():
            dependent.missing.discard(name)
            if not dependent.missing:
                yield dependent
