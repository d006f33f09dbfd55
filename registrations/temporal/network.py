"""The network of all temporal patterns on the same streams: the alpha memories that an event
enters, and the joins of each registration (OIF-29). Plain module.

Registrations share alpha memories; joins are each registration's own. The filters of all of them
are leaves of the group's patterns, which one look-up finds. A registration is called for an event
that it may join with others, and at the step at which one of its partial matches has to leave: an
event costs nothing for the others.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import Scalar
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.values import MISSING
from registrations.patterns.pattern_engine import (
    Dropped,
    Ended,
    EventPosition,
    Match,
    Output,
    PatternLeaves,
)
from registrations.temporal.compiled_tests import Slot, all_of, compiled
from registrations.temporal.entries import AlphaMemory, AlphaPattern, Entry
from registrations.temporal.join import Combination, exhaust
from registrations.temporal.joins import PartialTotal, PatternJoins
from registrations.temporal.pattern import SEQUENCE
from registrations.temporal.plan import JoinPlan, PatternPlan
from registrations.temporal.shared_alpha import SharedAlpha, Users

# The index before that of the first event: a registration may recall as many events before it.
BEFORE_FIRST = limits.TEMPORAL_MEMORY_MAX
_ENTRIES_GOAL = 0.9  # of the limit, once it is exceeded
_ENTRY_BYTES = 600
_PARTIAL_BYTES = 200
RememberedEvent = tuple[EventPosition, Event]


class TemporalRegistration(NamedTuple):
    """A pattern to search for. `once`: it ends with its first match."""

    plan: PatternPlan
    once: bool = False


class TemporalNetwork:
    """The registrations under numbers that the caller gives, and their memory.

    `index`: of the latest event. Concurrency: none.
    """

    def __init__(self, leaves: PatternLeaves, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.index = BEFORE_FIRST
        self.position: EventPosition | None = None
        self.joins: dict[int, PatternJoins] = {}
        self.registrations: dict[int, TemporalRegistration] = {}
        self.alphas: dict[AlphaPattern, SharedAlpha] = {}
        self._leaves = leaves
        self._by_leaf: dict[int, list[SharedAlpha]] = {}
        self._filled: dict[AlphaMemory, None] = {}  # the memories that have entries
        self._entries = 0
        self._partial = PartialTotal()
        self._hierarchy = hierarchy
        self._due: defaultdict[int, list[PatternJoins]] = defaultdict(list)
        self._leaving: defaultdict[int, list[AlphaMemory]] = defaultdict(list)

    # --- registrations ---

    def add(
        self, number: int, registration: TemporalRegistration, recent: Sequence[RememberedEvent]
    ) -> list[Output]:
        """Add a registration, which replaces another under that number. It remembers later events
        only, unless `recent` has the last events up to the latest one that the network was fed:
        then it returns the matches of these.
        """
        self.remove(number)
        if recent and self.position is None:
            self.position = recent[-1][0]
        if recent and recent[-1][0] != self.position:
            raise ValueError("the recent events do not end with the latest one")
        plan = registration.plan
        alphas = [self._alpha(join) for join in (*plan.joins, *plan.absent)]
        memories = [one.memory for one in alphas]
        joins = PatternJoins(number, plan, memories, self._schedule, self._partial)
        joins.start = self.index
        self.registrations[number] = registration
        self.joins[number] = joins
        for alpha in alphas:
            alpha.use(joins)
        if not recent:
            return []
        recalled = recent[-joins.memory :]
        joins.start = self.index - len(recalled)
        for alpha in dict.fromkeys(alphas):
            self._recall(alpha, recalled, joins)
        joins.allow(limits.TEMPORAL_JOINS_RECALLED_MAX)
        for index, hits in self._remembered(joins):
            exhaust(joins.take(index, hits, joins.start))
        joins.discard_excluded()
        return self._outputs(joins, recent[-1][0])

    def remove(self, number: int) -> None:
        """Remove a registration with its partial matches; do nothing if it does not exist."""
        joins = self.joins.pop(number, None)
        if joins is not None:
            del self.registrations[number]
            self._release(joins)

    def close(self) -> None:
        """Remove all registrations."""
        for number in [*self.joins]:
            self.remove(number)

    def feed(self, position: EventPosition, event: Event) -> list[Output]:
        """Take the next event and return what it causes, registration by registration."""
        return [*chain.from_iterable(self.steps(position, event))]

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[Output]]:
        """Take the next event, and yield what it causes, registration by registration, and nothing
        between two parts of the joins of one.
        """
        self.index += 1
        self.position = position
        index = self.index
        for memory in self._leaving.pop(index, ()):
            self._leave(memory)
        due = {joins.number: joins for joins in self._due.pop(index, ()) if not joins.is_ended}
        hits: dict[AlphaMemory, Entry] = {}
        due |= self._hit(EventValues(event), position, hits)
        for number in sorted(due):
            for _ in due[number].step(index, hits):
                yield ()
            yield self._outputs(due[number], position)
        if self._entries > limits.TEMPORAL_ENTRIES_MAX:
            goal = limits.TEMPORAL_ENTRIES_MAX * _ENTRIES_GOAL
            yield self._forget_largest(position, goal, "entries_max")
        if self._partial.count > limits.TEMPORAL_PARTIAL_MATCHES_SUM_MAX:
            goal = limits.TEMPORAL_PARTIAL_MATCHES_SUM_MAX * _ENTRIES_GOAL
            yield self._forget_partial(position, goal, "partial_matches_sum_max")

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of all remembered events and partial matches."""
        return self._entries * _ENTRY_BYTES + self._partial.count * _PARTIAL_BYTES

    def shed_half(self, position: EventPosition) -> list[Output]:
        """Forget half of what is remembered; the position is that of the last event."""
        reason = "process_bytes_max"
        forgotten = self._forget_largest(position, self._entries / 2, reason)
        return forgotten + self._forget_partial(position, self._partial.count / 2, reason)

    def _hit(
        self, event: EventValues, position: EventPosition, hits: dict[AlphaMemory, Entry]
    ) -> Users:
        """Remember the latest event, which has its entries in `hits` then; return the registrations
        that it concerns.
        """
        due: Users = {}
        passed = [
            alpha
            for leaf in self._leaves.match(event.event)
            for alpha in self._by_leaf.get(leaf, ())
        ]
        for alpha in passed:
            values = _values_of(alpha.memory.pattern, event, position)
            if values is not None and _is_too_long(values):
                for joins in alpha.users.values():
                    joins.count_dropped("value_chars_max", 1)
                due |= alpha.users
            elif values is not None:
                entry = Entry(self.index, position, values)
                if alpha.check is None or alpha.check((entry,)):
                    hits[alpha.memory] = entry
                    self._remember(alpha.memory, entry)
        for alpha in passed:
            if alpha.memory in hits:
                due |= alpha.concerned(self._filled)
        return due

    def end(self, number: int) -> None:
        """End a registration that had to match once."""
        self._release(self.joins[number])

    def replay(self, joins: PatternJoins) -> None:
        """Build the partial matches of a registration from the memories of its events."""
        if joins.stores_nothing:
            return
        low = max(joins.start, self.index - joins.memory)
        joins.allow(limits.INTEGER_MAX)  # no more than before, and nothing may be forgotten now
        for index, hits in self._remembered(joins):
            exhaust(joins.take(index, hits, max(low, joins.start)))

    def _remembered(self, joins: PatternJoins) -> list[tuple[int, dict[AlphaMemory, Entry]]]:
        """Return the remembered events of a registration, in order, each with its entries."""
        low = max(joins.start, self.index - joins.memory)
        steps: defaultdict[int, dict[AlphaMemory, Entry]] = defaultdict(dict)
        for memory in joins.alphas:
            for entry in memory.entries:
                if entry.index > low:
                    steps[entry.index][memory] = entry
        return sorted(steps.items(), key=itemgetter(0))

    def restore_memory(
        self, pattern: AlphaPattern, entries: Iterable[Entry], complete_from: int
    ) -> None:
        """Fill an alpha memory, which is empty, in the order of the events."""
        memory = self.alphas[pattern].memory
        memory.complete_from = complete_from
        for entry in entries:
            self._remember(memory, entry)

    # --- alpha memories ---

    def _alpha(self, plan: JoinPlan) -> SharedAlpha:
        found = self.alphas.get(plan.alpha)
        if found is not None:
            return found
        slots = {str(field): Slot(0, field) for field in range(len(plan.alpha.paths))}
        checks = [compiled(test, slots) for test in plan.alpha.tests]
        memory = AlphaMemory(plan.alpha, self.index + 1)
        leaf = self._leaves.add(plan.alpha.filter)
        found = SharedAlpha(leaf, memory, all_of(checks) if checks else None)
        self.alphas[plan.alpha] = found
        self._by_leaf.setdefault(leaf, []).append(found)
        return found

    def _remember(self, memory: AlphaMemory, entry: Entry) -> None:
        memory.add(entry)
        self._filled[memory] = None
        self._entries += 1
        self._schedule_leaving(memory)

    def _remove_until(self, memory: AlphaMemory, index: int) -> None:
        self._entries -= memory.remove_until(index)
        if not memory.entries:
            self._filled.pop(memory, None)

    def _schedule_leaving(self, memory: AlphaMemory) -> None:
        """Have the first entry removed in time, if that is not yet scheduled."""
        if memory.entries and not memory.is_scheduled:
            memory.is_scheduled = True
            self._leaving[max(memory.entries[0].index + memory.memory, self.index + 1)].append(
                memory
            )

    def _leave(self, memory: AlphaMemory) -> None:
        """Remove the entries that no registration remembers any more."""
        self._remove_until(memory, self.index - memory.memory)
        memory.is_scheduled = False
        self._schedule_leaving(memory)

    def _recall(
        self, alpha: SharedAlpha, recent: Sequence[RememberedEvent], joins: PatternJoins
    ) -> None:
        """Add what an alpha memory lacks of the recent events, for a new registration."""
        memory = alpha.memory
        first = self.index - len(recent) + 1
        missing: list[Entry] = []
        for index, (position, event) in enumerate(recent, first):
            if index >= memory.complete_from:
                break
            event_values = EventValues(event)
            if not holds(memory.pattern.filter, event_values, self._hierarchy):
                continue
            values = _values_of(memory.pattern, event_values, position)
            if values is not None and _is_too_long(values):
                joins.count_dropped("value_chars_max", 1)
            elif values is not None:
                entry = Entry(index, position, values)
                missing += [entry] if alpha.check is None or alpha.check((entry,)) else []
        if missing:
            memory.put_before(missing, first)
            self._filled[memory] = None
            self._entries += len(missing)
            self._schedule_leaving(memory)

    def _forget_largest(self, position: EventPosition, goal: float, reason: str) -> list[Output]:
        """Forget the older half of the largest alpha memory, for all of its registrations, then of
        the next one, until at most `goal` events are remembered.
        """
        outputs: list[Output] = []
        while self._entries > goal:
            filled = [one for one in self.alphas.values() if one.memory.entries]
            for largest in sorted(filled, key=_largest_first):
                outputs += self._forget_half(largest, position, reason)
                if self._entries <= goal:
                    break
        return outputs

    def _forget_partial(self, position: EventPosition, goal: float, reason: str) -> list[Output]:
        """Have the registrations with the most partial matches forget the older half of their
        events, until all together have at most `goal`.
        """
        outputs: list[Output] = []
        before = self._partial.count + 1  # those of the latest event alone stay
        while goal < self._partial.count < before:
            before = self._partial.count
            holding = [one for one in self.joins.values() if one.size]
            for largest in sorted(holding, key=lambda one: (-one.size, one.number)):
                exhaust(largest.step(self.index, {}))  # it may not have been called for a while
                largest.forget_half(reason)
                outputs += self._outputs(largest, position)
                if self._partial.count <= goal:
                    break
        return outputs

    def _forget_half(
        self, alpha: SharedAlpha, position: EventPosition, reason: str
    ) -> list[Output]:
        entries = alpha.memory.entries
        until = entries[(len(entries) - 1) // 2].index
        outputs: list[Output] = []
        for number in sorted(alpha.users):
            joins = alpha.users[number]
            exhaust(joins.step(self.index, {}))  # it may not have been called for a while
            joins.forget_until(until, reason)
            outputs += self._outputs(joins, position)
        self._remove_until(alpha.memory, until)
        return outputs

    # --- outputs ---

    def _schedule(self, index: int, joins: PatternJoins) -> None:
        self._due[index].append(joins)

    def _outputs(self, joins: PatternJoins, position: EventPosition) -> list[Output]:
        """Return the matches that a registration found, and what it dropped."""
        outputs: list[Output] = []
        for found in joins.take_found():
            outputs.append(Match(joins.number, None, position, _bindings(found)))
            if self.registrations[joins.number].once:
                self._release(joins)
                return [*outputs, Ended(joins.number, position)]
        dropped = sorted(joins.dropped.items())
        joins.dropped.clear()
        return [
            *outputs,
            *(Dropped(joins.number, None, position, reason, n) for reason, n in dropped),
        ]

    def _release(self, joins: PatternJoins) -> None:
        """Discard the partial matches of a registration, and memories that it alone used."""
        joins.is_ended = True
        joins.clear()
        for memory in dict.fromkeys(joins.alphas):
            alpha = self.alphas.get(memory.pattern)
            if alpha is None or joins.number not in alpha.users:
                continue
            alpha.release(joins)
            if not alpha.users:
                self._remove_until(memory, self.index)
                self._leaves.remove(alpha.leaf)
                self._by_leaf[alpha.leaf].remove(alpha)
                if not self._by_leaf[alpha.leaf]:
                    del self._by_leaf[alpha.leaf]
                del self.alphas[memory.pattern]


def _values_of(
    pattern: AlphaPattern, event: EventValues, position: EventPosition
) -> tuple[Scalar, ...] | None:
    """Return the values of a pattern's fields; None if a field has no single value."""
    found: list[Scalar] = []
    for path in pattern.paths:
        value: Any = position.sequence if path == SEQUENCE else event.value(path)
        if value is MISSING or isinstance(value, dict | list | tuple):
            return None
        found.append(value)
    return tuple(found)


def _is_too_long(values: tuple[Scalar, ...]) -> bool:
    most = limits.TEMPORAL_VALUE_CHARS_MAX
    return any(isinstance(value, str) and len(value) > most for value in values)


def _largest_first(alpha: SharedAlpha) -> tuple[int, int]:
    return -len(alpha.memory.entries), min(alpha.users)


def _bindings(found: Combination) -> dict[str, tuple[EventPosition, ...]]:
    return {f"${number}": (entry.position,) for number, entry in enumerate(found, 1)}
