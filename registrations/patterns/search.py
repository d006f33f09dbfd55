"""The possible matches of the parts of a pattern, found among the events that its elements took
(RDY-20 to RDY-29). Plain module.

A possible match has an end, the order of the event that completes it, and bindings. `matches` of a
part yields those that start after one event and end at another or before, the preferred one first:
with the earliest event for the first element of the text, then for the second, and so on. Nothing
is computed in advance: an event is only stored unless it can complete the pattern, and then the
search begins with the elements that it passed. Right sides of `;` start at the end of a match of
the left, however late they are searched, because the events are stored with their orders (RDY-45).

A search may be long, so it pauses: `matches` yields None, and `earliest`, which returns the least
end, yields None too.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterator

from registrations.patterns.ast import Element
from registrations.patterns.candidates import (
    BY_ORDER,
    COPIES_PER_STEP,
    Bound,
    BoundPart,
    Candidates,
    Found,
    OpenSequence,
    bindings_of,
    closed,
    evaluation_steps,
)
from registrations.patterns.new_events import NewEventValues
from registrations.patterns.values import BoundEvent, PatternCondition

Search = Iterator[Found | None]
End = Generator[None, None, int | None]


class SearchNode:
    """A part of a pattern, as it is searched.

    `finishing`: the elements whose events can complete it; `opening`: those that can be its first
    event (both as bits). `monotone`: a later start never adds a match.
    """

    finishing: int
    opening: int
    monotone = True

    @property
    def takes_more(self) -> bool:
        """Whether its matches have a Run."""
        return False

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        """Yield the possible matches of events after `start` that end at `until` or, unless
        `exact`, before.
        """
        raise NotImplementedError

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        """Return the least end of these matches; None if there is none."""
        least: int | None = None
        for one in self.matches(candidates, start, until, exact=False):
            if one is None:
                yield
            elif least is None or one.end < least:
                least = one.end
        return least


class ElementNode(SearchNode):
    """One event."""

    def __init__(self, index: int, variable: str) -> None:
        self.index = index
        self.variable = variable
        self.finishing = self.opening = 1 << index

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        events = candidates.events[self.index]
        for index in range(bisect_right(events, start, key=BY_ORDER), len(events)):
            event = events[-1] if exact else events[index]
            if event.order > until or (exact and event.order != until):
                return
            candidates.count()
            if candidates.is_due:
                yield from candidates.pause()
            yield Found(event.order, ((self.variable, event),))
            if exact:
                return

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        yield from _counted(candidates)
        events = candidates.events[self.index]
        index = bisect_right(events, start, key=BY_ORDER)
        return _order_at(events, index, until)


class SequenceNode(SearchNode):
    """A sequence of consecutive events of one element."""

    def __init__(self, index: int, element: Element, variable: str) -> None:
        self.index = index
        self.variable = variable
        self.least, self.most = element.least, element.most
        self.monotone = element.least > 0  # an empty one ends where it starts
        self.finishing = self.opening = 1 << index

    @property
    def takes_more(self) -> bool:
        return True

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        events = candidates.events[self.index]
        first = bisect_right(events, start, key=BY_ORDER)
        if self.least == 0:
            if not exact or start == until:
                yield self._found(start, first)
            return
        last = len(events) - self.least
        for index in range(last if exact and last >= first else first, last + 1):
            end = events[index + self.least - 1].order
            if end > until or (exact and end != until):
                return
            candidates.count()
            if candidates.is_due:
                yield from candidates.pause()
            yield self._found(end, index)

    def runs(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        """Yield the possible matches of every length, the part around it being a condition."""
        events = candidates.events[self.index]
        most = len(events) if self.most is None else self.most
        first = bisect_right(events, start, key=BY_ORDER)
        if exact:
            if not events or events[-1].order != until:
                return
            first = max(first, len(events) - most)
        for index in range(first, len(events) - self.least + 1):
            stops = range(index + self.least, min(index + most, len(events)) + 1)
            for stop in (len(events),) if exact else stops:
                end = events[stop - 1].order
                if end > until:
                    break
                candidates.count(1 + (stop - index) // COPIES_PER_STEP)
                if candidates.is_due:
                    yield from candidates.pause()
                yield Found(end, ((self.variable, tuple(events[index:stop])),))

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        yield from _counted(candidates)
        if self.least == 0:
            return start
        events = candidates.events[self.index]
        index = bisect_right(events, start, key=BY_ORDER) + self.least - 1
        return _order_at(events, index, until)

    def _found(self, end: int, first: int) -> Found:
        return Found(
            end, ((self.variable, OpenSequence(self.index, first, self.least, self.most)),)
        )


class PairNode(SearchNode):
    """Two parts and an operator. Its match ends the sequences that are its sides.

    `in_row`: it is the left side of the same operator, with which it is one row, `A && B && C`.
    """

    def __init__(self, left: SearchNode, right: SearchNode) -> None:
        self.left = left
        self.right = right
        self.in_row = False
        self.monotone = left.monotone and right.monotone
        self.finishing = left.finishing | right.finishing
        self.opening = left.opening | right.opening

    def joined(self, candidates: Candidates, one: Found, other: Found) -> Found:
        """Return a match of both sides, their sequences complete."""
        end = max(one.end, other.end)
        return Found(end, self._left(candidates, one, end) + self._right(candidates, other, end))

    def _left(self, candidates: Candidates, one: Found, end: int) -> Bound:
        return closed(candidates, one.bound, end) if self.left.takes_more else one.bound

    def _right(self, candidates: Candidates, other: Found, end: int) -> Bound:
        return closed(candidates, other.bound, end) if self.right.takes_more else other.bound


class BothNode(PairNode):
    """`&&`: both parts match, in any order. In a row the sequences end with the row."""

    @property
    def takes_more(self) -> bool:
        return self.in_row and (self.left.takes_more or self.right.takes_more)

    def joined(self, candidates: Candidates, one: Found, other: Found) -> Found:
        if self.in_row:
            return Found(max(one.end, other.end), one.bound + other.bound)
        return super().joined(candidates, one, other)

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        both = self.left, self.right
        last_must = [exact and not _may_end(candidates, side, until) for side in both]
        for one in self.left.matches(candidates, start, until, exact=last_must[1]):
            if one is None:
                yield None
                continue
            missing = exact and one.end != until
            for other in self.right.matches(candidates, start, until, exact=missing):
                yield None if other is None else self.joined(candidates, one, other)

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        one = yield from self.left.earliest(candidates, start, until)
        if one is None:
            return None
        other = yield from self.right.earliest(candidates, start, until)
        return None if other is None else max(one, other)


class EitherNode(PairNode):
    """`||`: one of the parts matches; the left is preferred."""

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        for side, closes in ((self.left, self._left), (self.right, self._right)):
            for one in side.matches(candidates, start, until, exact=exact):
                yield None if one is None else Found(one.end, closes(candidates, one, one.end))

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        one = yield from self.left.earliest(candidates, start, until)
        other = yield from self.right.earliest(candidates, start, until)
        return min((end for end in (one, other) if end is not None), default=None)


class ThenNode(PairNode):
    """`;`: the right part starts where a match of the left ends. In a row a sequence ends with the
    next part.
    """

    def __init__(
        self, left: SearchNode, right: SearchNode, *, left_empty: bool, right_empty: bool
    ) -> None:
        super().__init__(left, right)
        self.finishing = right.finishing | (left.finishing if right_empty else 0)
        self.opening = left.opening | (right.opening if left_empty else 0)

    @property
    def takes_more(self) -> bool:
        return self.in_row and self.right.takes_more

    def _right(self, candidates: Candidates, other: Found, end: int) -> Bound:
        return other.bound if self.in_row else super()._right(candidates, other, end)

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        fails_from: int | None = None  # the right side does not match from there
        failed: set[int] = set()
        for one in self.left.matches(candidates, start, until, exact=False):
            if one is None:
                yield None
                continue
            if one.end in failed or (fails_from is not None and one.end >= fails_from):
                continue
            any_found = False
            for other in self.right.matches(candidates, one.end, until, exact=exact):
                if other is None:
                    yield None
                    continue
                any_found = True
                yield self.joined(candidates, one, other)
            if not any_found and self.right.monotone:
                fails_from = one.end if fails_from is None else min(one.end, fails_from)
            elif not any_found:
                failed.add(one.end)

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        if not self.right.monotone:
            return (yield from super().earliest(candidates, start, until))
        one = yield from self.left.earliest(candidates, start, until)
        return None if one is None else (yield from self.right.earliest(candidates, one, until))


class ButNotNode(PairNode):
    """`butnot`: the left part matches before the right. An event that completes both fails it."""

    def __init__(self, left: SearchNode, right: SearchNode) -> None:
        super().__init__(left, right)
        self.monotone = False
        self.finishing = left.finishing

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        failed = yield from self.right.earliest(candidates, start, until)
        if failed is not None and exact:
            return
        for one in self.left.matches(candidates, start, until, exact=exact):
            if one is None:
                yield None
            elif failed is None or one.end < failed:
                yield Found(one.end, self._left(candidates, one, one.end))

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        one = yield from self.left.earliest(candidates, start, until)
        failed = yield from self.right.earliest(candidates, start, until)
        return one if one is not None and (failed is None or one < failed) else None


class WhereNode(SearchNode):
    """A part whose matches meet a condition."""

    def __init__(self, part: SearchNode, condition: PatternCondition) -> None:
        self.part = part
        self.condition = condition
        self.finishing, self.opening = part.finishing, part.opening
        self.monotone = part.monotone

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        part = self.part
        for one in of_every_length(part, candidates, start, until, exact=exact):
            if one is None:
                yield None
                continue
            bindings = bindings_of(candidates, one)
            candidates.count(evaluation_steps(bindings))
            if self.condition.holds(bindings):
                yield one


class DoNode(SearchNode):
    """A part that binds new events; its other actions are not the search's (actions.py)."""

    def __init__(self, part: SearchNode, assigned: tuple[NewEventValues, ...]) -> None:
        self.part = part
        self.assigned = assigned
        self.finishing, self.opening = part.finishing, part.opening
        self.monotone = part.monotone

    @property
    def takes_more(self) -> bool:
        return self.part.takes_more

    def matches(self, candidates: Candidates, start: int, until: int, *, exact: bool) -> Search:
        for one in self.part.matches(candidates, start, until, exact=exact):
            yield None if one is None else self.assign(candidates, one)

    def assign(self, candidates: Candidates, found: Found) -> Found:
        """Return a match with the events that the actions create for it."""
        if not self.assigned:
            return found
        bindings = bindings_of(candidates, found)
        candidates.count(evaluation_steps(bindings))
        new: list[tuple[str, BoundPart]] = []
        for form in self.assigned:
            bindings[form.variable] = event = form.of(bindings)
            new.append((form.variable, event))
        return Found(found.end, (*found.bound, *new))

    def earliest(self, candidates: Candidates, start: int, until: int) -> End:
        return (yield from self.part.earliest(candidates, start, until))


def of_every_length(
    part: SearchNode, candidates: Candidates, start: int, until: int, *, exact: bool
) -> Search:
    """Yield the possible matches of a part in a condition: a sequence may have taken any number."""
    if isinstance(part, SequenceNode):
        yield from part.runs(candidates, start, until, exact=exact)
    elif isinstance(part, DoNode) and part.takes_more:
        for one in of_every_length(part.part, candidates, start, until, exact=exact):
            yield None if one is None else part.assign(candidates, one)
    else:
        yield from part.matches(candidates, start, until, exact=exact)


def _may_end(candidates: Candidates, node: SearchNode, until: int) -> bool:
    """Return whether the event `until`, the newest, can complete a part."""
    bits = node.finishing
    while bits:
        last = bits & -bits
        events = candidates.events[last.bit_length() - 1]
        if events and events[-1].order == until:
            return True
        bits ^= last
    return False


def _counted(candidates: Candidates) -> Iterator[None]:
    """Count one step, and pause if it is due."""
    candidates.count()
    if candidates.is_due:
        yield from candidates.pause()


def _order_at(events: list[BoundEvent], index: int, until: int) -> int | None:
    if index >= len(events) or events[index].order > until:
        return None
    return events[index].order
