"""The network of all temporal patterns on the same streams: a matcher that finds the event patterns
of an event, the alpha memories that it enters, and the joins of each registration (OIF-29). Plain
module.

Registrations share alpha memories; joins are each registration's own. A registration is called for
an event that one of its event patterns matches, and at the step at which one of its partial matches
has to leave: an event costs nothing for the others.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import Path, Scalar
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.values import MISSING
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.strategies import new_matcher
from registrations.patterns.pattern_engine import Dropped, Ended, EventPosition, Match, Output
from registrations.temporal.compiled_tests import Check, Slot, all_of, compiled
from registrations.temporal.entries import AlphaMemory, AlphaPattern, Entry
from registrations.temporal.joins import Combination, PatternJoins
from registrations.temporal.pattern import SEQUENCE
from registrations.temporal.plan import JoinPlan, PatternPlan

# The index before that of the first event: a registration may recall as many events before it.
BEFORE_FIRST = limits.TEMPORAL_MEMORY_MAX
RememberedEvent = tuple[EventPosition, Event]


class TemporalRegistration(NamedTuple):
    """A pattern to search for. `once`: it ends with its first match."""

    plan: PatternPlan
    once: bool = False


class _Alpha(NamedTuple):
    """An alpha memory, the test of its entries' values, and its registrations."""

    number: int
    memory: AlphaMemory
    check: Check | None
    users: dict[int, PatternJoins]


class TemporalNetwork:
    """The registrations under numbers that the caller gives, and their memory.

    `index`: of the latest event. Concurrency: none.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.index = BEFORE_FIRST
        self.position: EventPosition | None = None
        self.joins: dict[int, PatternJoins] = {}
        self.registrations: dict[int, TemporalRegistration] = {}
        self.alphas: dict[AlphaPattern, _Alpha] = {}
        self._by_number: dict[int, _Alpha] = {}
        self._numbers = 0
        self._entries = 0
        self._matcher = FilterMatcher(new_matcher("access", hierarchy))
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
        joins = PatternJoins(number, plan, [one.memory for one in alphas], self._schedule)
        joins.start = self.index
        self.registrations[number] = registration
        self.joins[number] = joins
        for alpha in alphas:
            alpha.users[number] = joins
            alpha.memory.memory = max(alpha.memory.memory, joins.memory)
        if not recent:
            return []
        recalled = recent[-joins.memory :]
        joins.start = self.index - len(recalled)
        for alpha in alphas:
            self._recall(alpha, recalled)
        self.replay(joins)
        joins.discard_excluded()
        return self._outputs(joins, recent[-1][0])

    def remove(self, number: int) -> None:
        """Remove a registration with its partial matches; do nothing if it does not exist."""
        joins = self.joins.pop(number, None)
        if joins is not None:
            del self.registrations[number]
            self._release(joins)

    def feed(self, position: EventPosition, event: Event) -> list[Output]:
        """Take the next event and return what it causes, registration by registration."""
        self.index += 1
        self.position = position
        index = self.index
        for memory in self._leaving.pop(index, ()):
            self._leave(memory)
        due = {joins.number: joins for joins in self._due.pop(index, ()) if not joins.is_ended}
        values = EventValues(event)
        hits: dict[AlphaMemory, Entry] = {}
        for number in sorted(self._matcher.match(event)):
            alpha = self._by_number[number]
            due |= alpha.users
            entry = self._entry(alpha, values, index, position)
            if entry is not None:
                hits[alpha.memory] = entry
                self._remember(alpha.memory, entry)
        outputs: list[Output] = []
        for number in sorted(due):
            due[number].step(index, hits)
            outputs += self._outputs(due[number], position)
        while self._entries > limits.TEMPORAL_ENTRIES_MAX:
            outputs += self._forget_largest(position)
        return outputs

    def end(self, number: int) -> None:
        """End a registration that had to match once."""
        self._release(self.joins[number])

    def replay(self, joins: PatternJoins) -> None:
        """Build the partial matches of a registration from the memories of its events."""
        low = max(joins.start, self.index - joins.memory)
        steps: defaultdict[int, dict[AlphaMemory, Entry]] = defaultdict(dict)
        for memory in joins.alphas:
            for entry in memory.entries:
                if entry.index > low:
                    steps[entry.index][memory] = entry
        for index in sorted(steps):
            joins.step(index, steps[index], max(low, joins.start))

    def restore_memory(
        self, pattern: AlphaPattern, entries: Iterable[Entry], complete_from: int
    ) -> None:
        """Fill an alpha memory, which is empty, in the order of the events."""
        memory = self.alphas[pattern].memory
        memory.complete_from = complete_from
        for entry in entries:
            self._remember(memory, entry)

    # --- alpha memories ---

    def _alpha(self, plan: JoinPlan) -> _Alpha:
        found = self.alphas.get(plan.alpha)
        if found is not None:
            return found
        slots = {str(field): Slot(0, field) for field in range(len(plan.alpha.paths))}
        checks = [compiled(test, slots) for test in plan.alpha.tests]
        memory = AlphaMemory(plan.alpha, self.index + 1)
        check = all_of(checks) if checks else None
        found = self.alphas[plan.alpha] = _Alpha(self._numbers, memory, check, {})
        self._by_number[self._numbers] = found
        self._matcher.add(self._numbers, plan.specs)
        self._numbers += 1
        return found

    def _entry(
        self, alpha: _Alpha, event: EventValues, index: int, position: EventPosition
    ) -> Entry | None:
        """Return the entry of an event that passes the filter; None if a field has no single value
        or the tests of the values fail.
        """
        values: list[Scalar] = []
        for path in alpha.memory.pattern.paths:
            value = position.sequence if path == SEQUENCE else _single(path, event)
            if value is MISSING:
                return None
            if isinstance(value, str) and len(value) > limits.TEMPORAL_VALUE_CHARS_MAX:
                for joins in alpha.users.values():
                    joins.count_dropped("value_chars_max", 1)
                return None
            values.append(value)  # type: ignore[arg-type]
        entry = Entry(index, position, tuple(values))
        return entry if alpha.check is None or alpha.check((entry,)) else None

    def _remember(self, memory: AlphaMemory, entry: Entry) -> None:
        memory.add(entry)
        self._entries += 1
        self._schedule_leaving(memory)

    def _schedule_leaving(self, memory: AlphaMemory) -> None:
        """Have the first entry removed in time, if that is not yet scheduled."""
        if memory.entries and not memory.is_scheduled:
            memory.is_scheduled = True
            self._leaving[max(memory.entries[0].index + memory.memory, self.index + 1)].append(
                memory
            )

    def _leave(self, memory: AlphaMemory) -> None:
        """Remove the entries that no registration remembers any more."""
        self._entries -= memory.remove_until(self.index - memory.memory)
        memory.is_scheduled = False
        self._schedule_leaving(memory)

    def _recall(self, alpha: _Alpha, recent: Sequence[RememberedEvent]) -> None:
        """Add what an alpha memory lacks of the recent events."""
        memory = alpha.memory
        first = self.index - len(recent) + 1
        missing: list[Entry] = []
        for index, (position, event) in enumerate(recent, first):
            if index >= memory.complete_from:
                break
            values = EventValues(event)
            if holds(memory.pattern.filter, values, self._hierarchy):
                entry = self._entry(alpha, values, index, position)
                missing += [entry] if entry is not None else []
        if missing:
            memory.put_before(missing, first)
            self._entries += len(missing)
            self._schedule_leaving(memory)

    def _forget_largest(self, position: EventPosition) -> list[Output]:
        """Forget the older half of the largest alpha memory, for all of its registrations."""
        largest = max(
            self.alphas.values(), key=lambda one: (len(one.memory.entries), -min(one.users))
        )
        entries = largest.memory.entries
        until = entries[(len(entries) - 1) // 2].index
        outputs: list[Output] = []
        for number in sorted(largest.users):
            joins = largest.users[number]
            joins.step(self.index, {})  # it may not have been called for a while
            joins.forget_until(until, "entries_max")
            outputs += self._outputs(joins, position)
        self._entries -= largest.memory.remove_until(until)
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
        for memory in joins.alphas:
            alpha = self.alphas.get(memory.pattern)
            if alpha is None or alpha.users.pop(joins.number, None) is None:
                continue
            memory.memory = max((one.memory for one in alpha.users.values()), default=0)
            if not alpha.users:
                self._entries -= len(memory.entries)
                memory.entries.clear()
                self._matcher.remove(alpha.number)
                del self.alphas[memory.pattern], self._by_number[alpha.number]


def _single(path: Path, event: EventValues) -> object:
    value = event.value(path)
    return MISSING if isinstance(value, dict | list | tuple) else value


def _bindings(found: Combination) -> dict[str, tuple[EventPosition, ...]]:
    return {f"${number}": (entry.position,) for number, entry in enumerate(found, 1)}
