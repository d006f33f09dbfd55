"""The engine of READY's compound patterns: many patterns over the events of one group (RDY-20 to
RDY-34, RDY-46, RDY-47). Plain module.

An event is matched once against the distinct filters of all elements. It then costs about as much
as there are patterns that it concerns: a pattern takes the events of elements that cannot come
first only while it has taken others, of the same key if it has any (subscribers.py).
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import Scalar
from registrations.filters.values import key_of
from registrations.patterns.ast import Pattern
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.pattern_engine import (
    Ended,
    EventPosition,
    Output,
    PatternLeaves,
    Waiting,
)
from registrations.patterns.plan import plan_of
from registrations.patterns.running import Moment, RunningPattern
from registrations.patterns.saved import SavedGroup, decoded, encoded
from registrations.patterns.subscribers import Subscribers
from registrations.patterns.waiting import waiting_of

_GROUP_BYTES_GOAL = 0.9  # of the limit, once it is exceeded


class PatternLoad(NamedTuple):
    """What a pattern holds: partitions, and their estimated memory in bytes; and what it has
    discarded since it was added, by reason.
    """

    keys: int
    bytes: int
    dropped: dict[str, int]


class ReadyEngine:
    """All patterns of one group, under numbers that the caller gives (pattern_engine.py).

    Concurrency: none. One task owns an engine; no method awaits.
    """

    def __init__(self, leaves: PatternLeaves | None = None) -> None:
        self.leaves: PatternLeaves = LeafIndex() if leaves is None else leaves
        self._running: dict[int, RunningPattern] = {}
        self._subscribers = Subscribers()
        self._order = 0  # of the newest event
        self._clock_us = 0  # the greatest time of an event
        self._bytes = 0

    # --- patterns ---

    def add(self, number: int, pattern: Pattern) -> None:
        """Add a pattern; it starts with the next event. It replaces another one under that
        number.
        """
        self.remove(number)
        running = RunningPattern(number, plan_of(pattern), self._subscribers)
        self._running[number] = running
        self._register(running)

    def remove(self, number: int) -> None:
        """Remove a pattern and its state; do nothing if it does not exist."""
        running = self._running.pop(number, None)
        if running is not None:
            self._discard(running)
            self._unregister(running)

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of all partial matches."""
        return self._bytes

    # --- events ---

    def feed(self, position: EventPosition, event: Event) -> list[Output]:
        """Take the next event; return its outputs: those of patterns in the order of their
        numbers, of each the actions of its parts, then its match, then its actions.

        Raises ValueError for a position that is not after the others.
        """
        return [*chain.from_iterable(self.steps(position, event))]

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[Output]]:
        """Take the next event like `feed`, and yield the outputs of one pattern after the other,
        and nothing between two parts of a search. The caller takes all steps before it calls
        another method.
        """
        if position.order <= self._order:
            raise ValueError(f"event {position.order} comes after event {self._order}")
        self._order = position.order
        self._clock_us = max(self._clock_us, position.time_us)
        moment = Moment(position, event, self._clock_us)
        takers = self._subscribers.concerned(event, self.leaves.match(event))
        for number in sorted(takers):
            outputs: list[Output] = []
            for _ in self._give(self._running[number], moment, takers[number], outputs):
                yield ()
            yield outputs
        if self._bytes > limits.PATTERN_GROUP_BYTES_MAX:
            goal = int(limits.PATTERN_GROUP_BYTES_MAX * _GROUP_BYTES_GOAL)
            yield self._shed(moment, goal, "group_bytes_max")

    def shed_half(self, position: EventPosition, event: Event) -> list[Output]:
        """Discard half of what is held; the position is that of the last event."""
        moment = Moment(position, event, self._clock_us)
        return self._shed(moment, self._bytes // 2, "process_bytes_max")

    def pass_time(self, time_us: int) -> None:
        """Take the time of an event that concerns no pattern, and forget what has left windows."""
        self._clock_us = max(self._clock_us, time_us)
        for running in self._running.values():
            before, waited = running.bytes, bool(running.partitions)
            running.expire(self._clock_us)
            self._bytes += running.bytes - before
            if waited and not running.partitions:
                self._follow(running)

    def _give(
        self, running: RunningPattern, moment: Moment, mask: int, outputs: list[Output]
    ) -> Iterator[None]:
        before, waited = running.bytes, bool(running.partitions)
        yield from running.take(moment, mask, outputs)
        self._bytes += running.bytes - before
        if running.ended:
            outputs.append(Ended(running.number, moment.position))
            self._discard(running)
            self._unregister(running)
        elif bool(running.partitions) != waited:
            self._follow(running)

    def _shed(self, moment: Moment, goal: int, reason: str) -> list[Output]:
        """Discard half of the largest pattern's partitions, then of the next one's, until the group
        holds at most `goal` bytes.
        """
        outputs: list[Output] = []
        while self._bytes > goal:
            holding = (one for one in self._running.values() if one.partitions)
            for largest in sorted(holding, key=lambda one: (-one.bytes, one.number)):
                before = largest.bytes
                largest.shed(before // 2, reason, moment, outputs)
                self._bytes += largest.bytes - before
                if not largest.partitions:
                    self._follow(largest)
                if self._bytes <= goal:
                    break
        return outputs

    # --- registration of elements ---

    def _register(self, running: RunningPattern) -> None:
        running.leaves = tuple(self.leaves.add(one.node) for one in running.plan.elements)
        per, opening = running.plan.pattern.per, running.plan.root.opening
        for leaf, bit in running.of_leaves():
            if bit & opening:
                self._subscribers.add_opening(leaf, running.number, bit)
            elif per is not None:
                self._subscribers.add_later(leaf, per, running.number, bit)

    def _follow(self, running: RunningPattern) -> None:
        """Register the elements that cannot come first if the pattern has taken events; otherwise
        unregister them. With `per` they are always registered, and found by the key.
        """
        if running.plan.pattern.per is not None:
            return
        for leaf, bit in running.of_leaves():
            if bit & running.plan.root.opening:
                continue
            if running.partitions:
                self._subscribers.add_later(leaf, None, running.number, bit)
            else:
                self._subscribers.remove_later(leaf, None, running.number)

    def _unregister(self, running: RunningPattern) -> None:
        for leaf, _ in running.of_leaves():
            self._subscribers.remove_opening(leaf, running.number)
            self._subscribers.remove_later(leaf, running.plan.pattern.per, running.number)
        for leaf in running.leaves:
            self.leaves.remove(leaf)
        running.leaves = ()

    def _discard(self, running: RunningPattern) -> None:
        self._bytes -= running.bytes
        running.discard()

    # --- state ---

    def state(self) -> bytes:
        """Return the state of all partial matches, counters and reports, with the version of its
        format.
        """
        self.pass_time(self._clock_us)
        found = (running.saved() for running in self._running.values())
        saved = [one for one in found if one is not None]
        return encoded(SavedGroup(self._order, self._clock_us, saved))

    def restore(self, state: bytes) -> None:
        """Replace the state of an engine that has the same patterns; the outputs from then on
        equal those of the engine that returned it. Partial matches of a pattern that is unknown, or
        whose normal form is another, are discarded. Raises ValueError for an unknown format.
        """
        group = decoded(state)
        self._order, self._clock_us = group.order, group.clock_us
        for running in self._running.values():
            if running.ended:
                self._register(running)
            running.forget()
            self._follow(running)
        self._bytes = 0
        for saved in group.patterns:
            found = self._running.get(saved.number)
            if found is None or not found.restore(saved):
                continue
            self._bytes += found.bytes
            if found.ended:
                self._unregister(found)
            elif found.partitions:
                self._follow(found)

    def waiting(self, pattern: int, key: Scalar = None) -> Waiting | None:
        """Return what a pattern waits for, of one partition; None if it has no such partition."""
        running = self._running[pattern]
        partition = running.partitions.get(key_of(key))
        return None if partition is None else waiting_of(running.plan, partition, self._clock_us)

    def keys(self, pattern: int) -> Iterator[Scalar]:
        """Yield the keys of a pattern's partitions, those with the oldest events first."""
        return (one.key for one in self._running[pattern].partitions.values())

    def load(self, pattern: int) -> PatternLoad:
        """Return what a pattern holds and has discarded."""
        running = self._running[pattern]
        return PatternLoad(len(running.partitions), running.bytes, running.dropped())
