"""A pattern in an engine: its partitions, the matches that an event completes in them, and what is
discarded at limits. Plain module.
"""

from collections.abc import Generator, Iterator
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import Scalar
from registrations.filters.values import MISSING, key_of, value_of
from registrations.patterns.actions import Occasion, outer, run
from registrations.patterns.candidates import Candidates, StepsExceeded, bindings_of
from registrations.patterns.partition import PatternPartition, Window, match_of, match_of_part
from registrations.patterns.pattern_engine import Dropped, EventPosition, Match, Output
from registrations.patterns.plan import Plan
from registrations.patterns.printed import normal_pattern
from registrations.patterns.saved import SavedEvent, SavedPartition, SavedPattern
from registrations.patterns.subscribers import Subscribers, key_value
from registrations.patterns.values import BoundEvent, Number


class Moment(NamedTuple):
    """An event that comes. `now_us`: its time, or that of an event before it if that is later."""

    position: EventPosition
    event: Event
    now_us: int


class RunningPattern:
    """A pattern and its state.

    `leaves`: the numbers of its elements in the index; none once it has ended.
    `partitions`: by key, those with the oldest newest event first. `subscribers`: is notified of
    them.
    """

    def __init__(self, number: int, plan: Plan, subscribers: Subscribers) -> None:
        self.number = number
        self.plan = plan
        self.leaves: tuple[int, ...] = ()
        self.partitions: dict[Any, PatternPartition] = {}
        self.counters: dict[str, Number] = {}
        self.bytes = 0
        self.ended = False
        self._subscribers = subscribers
        self._window = Window(plan.within_us, plan.last)
        self._dropped: dict[str, tuple[int, int]] = {}  # by reason: in all, and as reported last

    @cached_property
    def _digest(self) -> bytes:
        """16 bytes that are equal for patterns with equal normal forms."""
        return blake2b(normal_pattern(self.plan.pattern).encode(), digest_size=16).digest()

    def of_leaves(self) -> Iterator[tuple[int, int]]:
        """Yield the filter of each element, and the element as a bit."""
        return ((leaf, 1 << index) for index, leaf in enumerate(self.leaves))

    # --- events ---

    def take(self, moment: Moment, mask: int, outputs: list[Output]) -> Iterator[None]:
        """Take an event that passed elements (bits), and append its outputs; pause from time to
        time.
        """
        self.expire(moment.now_us)
        value = key_value(self.plan.pattern.per, moment.event)
        if value is MISSING:
            return
        key = key_of(value)
        partition = self.partitions.pop(key, None)
        is_new = partition is None
        if partition is None:
            if not mask & self.plan.root.opening:
                return
            partition = PatternPartition(value, len(self.plan.elements))
        else:
            self.bytes -= partition.bytes
        self._add(partition, moment, mask, outputs)
        if (yield from self._is_matched(partition, moment, mask, outputs)):
            self.ended = self.plan.pattern.once
            if not is_new:
                self._has_ended(key)
            return
        self.partitions[key] = partition
        if is_new:
            self._has_begun(key)
        self.bytes += partition.bytes
        self._keep_limits(moment, outputs)

    def _has_begun(self, key: Any) -> None:
        if self.plan.pattern.per is not None:
            self._subscribers.begin(self.plan.pattern.per, key, self.number)

    def _has_ended(self, key: Any) -> None:
        if self.plan.pattern.per is not None:
            self._subscribers.end(self.plan.pattern.per, key, self.number)

    def _add(
        self, partition: PatternPartition, moment: Moment, mask: int, outputs: list[Output]
    ) -> None:
        values = {
            path: value_of(path, moment.event)
            for index, paths in enumerate(self.plan.components)
            if paths and mask >> index & 1
            for path in paths
        }
        found = {path: value for path, value in values.items() if value is not MISSING}
        number = partition.count + 1
        partition.add(BoundEvent(moment.position, moment.now_us, number, mask, found))
        crowded = partition.slide(self._window, moment.now_us)
        if crowded and not self.plan.last_given:
            self._report(crowded, "last", partition.key, moment, outputs)

    def _is_matched(
        self, partition: PatternPartition, moment: Moment, mask: int, outputs: list[Output]
    ) -> Generator[None, None, bool]:
        """Run the actions of the parts and of the pattern that the newest event completes; return
        whether it completes the pattern.
        """
        order = moment.position.order
        occasion = Occasion(self.number, partition.key, moment.position)
        candidates = Candidates(partition.events)
        try:
            for part in self.plan.parts:
                if part.number in partition.ran or not mask & part.node.finishing:
                    continue
                found = yield from match_of_part(part, candidates, order)
                if found is not None:
                    partition.ran[part.number] = partition.taken[-1]
                    bindings = bindings_of(candidates, found)
                    outputs += run(part.effects, occasion, bindings, self.counters)
            if not mask & self.plan.root.finishing:
                return False
            found = yield from match_of(self.plan.root, candidates, order)
        except StepsExceeded:
            self._report(1, "steps_max", partition.key, moment, outputs)
            return False
        if found is None:
            return False
        bindings = bindings_of(candidates, found)
        bound = {name: outer(value) for name, value in bindings.items()}
        outputs.append(Match(*occasion, bound))
        outputs += run(self.plan.effects, occasion, bindings, self.counters)
        return True

    # --- limits ---

    def expire(self, now_us: int) -> None:
        """Remove the partitions whose newest event is no longer in the window."""
        oldest_us = now_us - self.plan.within_us
        while self.partitions:
            partition = next(iter(self.partitions.values()))
            if partition.time_us >= oldest_us:
                return
            self._drop_first()

    def shed(self, size: int, reason: str, moment: Moment, outputs: list[Output]) -> None:
        """Discard partitions, those without an event for longest first, of this size together."""
        goal = self.bytes - size
        while self.partitions and self.bytes > goal:
            key = self._drop_first()
            self._report(1, reason, key, moment, outputs)

    def discard(self) -> None:
        """Discard all partitions."""
        while self.partitions:
            self._drop_first()

    def forget(self) -> None:
        """Discard the whole state, as of a new pattern."""
        self.discard()
        self.counters.clear()
        self._dropped.clear()
        self.ended = False

    def dropped(self) -> dict[str, int]:
        """Return how much was discarded, by reason."""
        return {reason: total for reason, (total, _) in self._dropped.items()}

    def _keep_limits(self, moment: Moment, outputs: list[Output]) -> None:
        while len(self.partitions) > limits.PATTERN_KEYS_MAX:
            self._report(1, "keys_max", self._drop_first(), moment, outputs)
        while self.bytes > limits.PATTERN_BYTES_MAX and len(self.partitions) > 1:
            self._report(1, "bytes_max", self._drop_first(), moment, outputs)
        if self.bytes > limits.PATTERN_BYTES_MAX:
            self._shorten(moment, outputs)

    def _shorten(self, moment: Moment, outputs: list[Output]) -> None:
        """Discard the oldest events of the only partition."""
        (partition,) = self.partitions.values()
        count = 0
        while self.bytes > limits.PATTERN_BYTES_MAX and partition.taken:
            before = partition.bytes
            partition.drop_oldest()
            self.bytes += partition.bytes - before
            count += 1
        self._report(count, "bytes_max", partition.key, moment, outputs)

    def _drop_first(self) -> Scalar:
        key = next(iter(self.partitions))
        partition = self.partitions.pop(key)
        self.bytes -= partition.bytes
        self._has_ended(key)
        return partition.key

    def _report(
        self, count: int, reason: str, key: Scalar, moment: Moment, outputs: list[Output]
    ) -> None:
        """Count what was discarded; report it first at once, then whenever it has doubled."""
        total, reported = self._dropped.get(reason, (0, 0))
        total += count
        if total >= 2 * reported:
            lost = Dropped(self.number, key, moment.position, reason, total - reported)
            outputs.append(lost)
            reported = total
        self._dropped[reason] = total, reported

    # --- state ---

    def saved(self) -> SavedPattern | None:
        """Return the state of the pattern; None if it is that of a new one."""
        if not (self.partitions or self.ended or self.counters or self._dropped):
            return None
        partitions = [self._saved_partition(one) for one in self.partitions.values()]
        dropped = [(reason, *counts) for reason, counts in self._dropped.items()]
        return SavedPattern(
            self.number, self._digest, self.ended, partitions, dropped, dict(self.counters)
        )

    def restore(self, saved: SavedPattern) -> bool:
        """Replace the state, which is empty, by one of the same pattern; return whether it is."""
        if saved.digest != self._digest:
            return False
        self.ended = saved.ended
        self.counters = dict(saved.counters)
        self._dropped = {reason: (total, reported) for reason, total, reported in saved.dropped}
        for one in saved.partitions:
            partition = self._restored(one)
            key = key_of(partition.key)
            self.partitions[key] = partition
            self._has_begun(key)
            self.bytes += partition.bytes
        return True

    def _saved_partition(self, partition: PatternPartition) -> SavedPartition:
        events = [self._saved_event(event) for event in partition.taken]
        orders = [(part, event.order) for part, event in partition.ran.items()]
        return SavedPartition(partition.key, partition.count, events, orders)

    def _saved_event(self, event: BoundEvent) -> SavedEvent:
        values = [event.values.get(path, MISSING) for path in self._paths(event.mask)]
        present = [value is not MISSING for value in values]
        given = [value for value in values if value is not MISSING]
        bits = sum(1 << index for index, one in enumerate(present) if one)
        return SavedEvent(event.position, event.time_us, event.number, event.mask, bits, given)

    def _restored(self, saved: SavedPartition) -> PatternPartition:
        partition = PatternPartition(saved.key, len(self.plan.elements))
        for one in saved.events:
            paths = [
                path for index, path in enumerate(self._paths(one.mask)) if one.present >> index & 1
            ]
            values = dict(zip(paths, one.values, strict=True))
            partition.add(BoundEvent(one.position, one.time_us, one.number, one.mask, values))
        partition.count = saved.count
        by_order = {event.order: event for event in partition.taken}
        partition.ran = {part: by_order[order] for part, order in saved.ran if order in by_order}
        return partition

    def _paths(self, mask: int) -> list[Any]:
        """Return the components that are read of an event that passed elements, in order."""
        found = (paths for index, paths in enumerate(self.plan.components) if mask >> index & 1)
        return [*dict.fromkeys(path for paths in found for path in paths)]
