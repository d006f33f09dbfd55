"""The state of one pattern for one value of its key: the events in its window. Plain module.

The partial matches are these events: search.py finds from them what is matched so far. A match
consumes them all, so nothing else is stored but when the actions of parts ran.
"""

from collections import deque
from collections.abc import Generator, Iterator
from typing import NamedTuple

from registrations.filters.ast import Scalar
from registrations.patterns.candidates import Candidates, Found
from registrations.patterns.plan import ActivePart, WayStep
from registrations.patterns.search import ButNotNode, EitherNode, Search, SearchNode, ThenNode
from registrations.patterns.values import BoundEvent

FoundFirst = Generator[None, None, Found | None]  # a search with its pauses
_OVERHEAD_BYTES = 1_000  # of an empty partition


class Window(NamedTuple):
    """How far a pattern looks back from an event: at most `within_us`, and `last` events of its
    partition, itself included.
    """

    within_us: int
    last: int


class PatternPartition:
    """The events that the elements of a pattern took, of one key, since its last match.

    `count`: of all of them, also those that have left the window. `time_us`: of the newest.
    `ran`: the event at which the actions of a part ran, by the number of the part.
    """

    __slots__ = ("bytes", "count", "events", "key", "ran", "taken", "time_us")

    def __init__(self, key: Scalar, elements: int) -> None:
        self.key = key
        self.bytes = _OVERHEAD_BYTES
        self.count = 0
        self.time_us = 0
        self.taken: deque[BoundEvent] = deque()  # in order
        self.events: list[list[BoundEvent]] = [[] for _ in range(elements)]
        self.ran: dict[int, BoundEvent] = {}

    def add(self, event: BoundEvent) -> None:
        """Add the next event."""
        self.count = event.number
        self.time_us = event.time_us
        self.taken.append(event)
        self.bytes += event.size
        for index in _bits(event.mask):
            self.events[index].append(event)

    def slide(self, window: Window, now_us: int) -> int:
        """Remove the events that are no longer in the window of an event of this time; return how
        many of them by their number only.
        """
        oldest_us, oldest = now_us - window.within_us, self.count - window.last
        crowded = 0
        while self.taken and (self.taken[0].time_us < oldest_us or self.taken[0].number <= oldest):
            crowded += self.taken[0].time_us >= oldest_us
            self.drop_oldest()
        return crowded

    def drop_oldest(self) -> None:
        """Remove the oldest event."""
        event = self.taken.popleft()
        self.bytes -= event.size
        for index in _bits(event.mask):
            del self.events[index][0]
        for number in [number for number, one in self.ran.items() if one is event]:
            del self.ran[number]


def match_of(node: SearchNode, candidates: Candidates, order: int) -> FoundFirst:
    """Return the preferred match of a whole pattern that ends with the newest event. Raises
    StepsExceeded.
    """
    return (yield from first(node.matches(candidates, 0, order, exact=True)))


def match_of_part(part: ActivePart, candidates: Candidates, order: int) -> FoundFirst:
    """Return the preferred match of an active part that ends with the newest event. Raises
    StepsExceeded.
    """
    for start in _starts(part.way, candidates, order):
        if start is None:
            yield
            continue
        found = yield from first(part.node.matches(candidates, start, order, exact=True))
        if found is not None:
            return found
    return None


def first(matches: Search) -> FoundFirst:
    """Return the first match; None if there is none."""
    for one in matches:
        if one is not None:
            return one
        yield
    return None


def _starts(way: tuple[WayStep, ...], candidates: Candidates, order: int) -> Iterator[int | None]:
    """Yield the events after which a part is active while the newest event comes."""
    starts: Iterator[int | None] = iter((0,))
    for node, is_right in way:
        starts = _inside(node, starts, candidates, order, is_right=is_right)
    return starts


def _inside(
    node: SearchNode,
    starts: Iterator[int | None],
    candidates: Candidates,
    order: int,
    *,
    is_right: bool,
) -> Iterator[int | None]:
    """Yield the starts of a side of a node that is active from each of `starts`."""
    for start in starts:
        if start is None:
            yield None
        elif isinstance(node, ThenNode) and is_right:
            yield from _ends(node.left.matches(candidates, start, order - 1, exact=False))
        elif (yield from _is_active(node, candidates, start, order, is_right=is_right)):
            yield start


def _ends(matches: Search) -> Iterator[int | None]:
    """Yield each end of matches once."""
    ends: set[int] = set()
    for one in matches:
        if one is None:
            yield None
        elif one.end not in ends:
            ends.add(one.end)
            yield one.end


def _is_active(
    node: SearchNode, candidates: Candidates, start: int, order: int, *, is_right: bool
) -> Generator[None, None, bool]:
    """Return whether a side of a node that started is still active."""
    if isinstance(node, ButNotNode):
        until = order - 1 if is_right else order
        return (yield from node.right.earliest(candidates, start, until)) is None
    if isinstance(node, EitherNode) and is_right:
        preferred = node.left.matches(candidates, start, order, exact=True)
        return (yield from first(preferred)) is None
    return True


def _bits(mask: int) -> Iterator[int]:
    while mask:
        last = mask & -mask
        yield last.bit_length() - 1
        mask ^= last
