"""The joins of one registration, the beta part of the network: partial matches, indexed by the
values that the next event must equal, and those that wait for an event in `not` to leave the
memory. Plain module.

The memory is a window over the most recent events, so events leave it in the order in which they
came. Three things follow, on which this module relies:

* A combination of events is new only at the step of its most recent event, or at the step at which
  the last event that `not` excluded leaves. So each combination is found once.
* An excluded event that is no older than the oldest event of a combination outlives it: such a
  combination will never match, and is discarded.
* Of the events that exclude a combination only the most recent one counts.

The first join reads the alpha memory of the first event directly, so a pattern of two events stores
no partial match at all.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass

from eventhub.base import limits
from registrations.temporal.entries import AlphaMemory, Entry, Key
from registrations.temporal.join import Combination, Join, exhaust, oldest_of, result_of
from registrations.temporal.plan import PatternPlan

Hits = Mapping[AlphaMemory, Entry]  # the entries of the latest event, by memory
Schedule = Callable[[int, "PatternJoins"], None]  # calls `step` at this index at the latest


@dataclass(slots=True)
class JoinCounters:
    """The work of joins: examined pairs of a combination and an event, stored partial matches, and
    found matches.
    """

    examined: int = 0
    stored: int = 0
    found: int = 0


class PartialTotal:
    """The number of stored partial matches of all registrations of a network."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class PatternJoins:
    """The joins of one registration. Concurrency: none.

    `size`: stored partial matches. `start`: the index up to which it has forgotten all events.
    `dropped`: events forgotten early and matches not reported, by reason, since the last report.
    """

    def __init__(
        self,
        number: int,
        plan: PatternPlan,
        alphas: list[AlphaMemory],
        schedule: Schedule,
        total: PartialTotal,
    ) -> None:
        self.number = number
        self.plan = plan
        self.memory = plan.pattern.memory
        self.alphas = alphas
        self.start = 0
        self.is_ended = False
        self.dropped: dict[str, int] = {}
        self.counters = JoinCounters()
        count = len(plan.joins)
        self._last = count - 1
        self._text_order = sorted(range(count), key=lambda level: plan.joins[level].number)
        parts = zip((*plan.joins, *plan.absent), alphas, strict=True)
        joins = [Join(*part, (number, index)) for index, part in enumerate(parts)]
        self._joins, self._absent = joins[:count], joins[count:]
        if count > 1:  # the first memory, as the combinations of the second event
            fields = tuple(slot.field for slot in plan.joins[1].earlier)
            self._first = alphas[0].index(fields)
        self._schedule = schedule
        self._now = self._low = 0
        self._budget = 0  # of examined pairs at this step, before it forgets events again ...
        self._left = 0  # ... and what is left of it
        self._pause_at = 0
        self.size = 0  # stored partial matches
        self._total = total
        self._blocked: dict[Combination, int] = {}  # with the index of the latest excluded event
        self._found: dict[Combination, None] = {}
        self._by_oldest: dict[int, dict[Combination, int]] = {}  # with the level
        self._by_blocker: dict[int, dict[Combination, None]] = {}

    def partners_of(self, memory: AlphaMemory) -> list[AlphaMemory | None]:
        """Return what an entry of a memory is joined with, as one of the first two events: the
        memory of the other one; None for the only event of a pattern.
        """
        first = self.alphas[0]
        if self._last == 0:
            return [None] if first is memory else []
        second = self.alphas[1]
        found: list[AlphaMemory | None] = [second] if first is memory else []
        return [*found, first] if second is memory and second is not first else found

    @property
    def stores_nothing(self) -> bool:
        """Whether it has no partial matches but the events in memory."""
        return self._last < 2 and not self._absent

    def step(self, now: int, hits: Hits) -> Iterator[None]:
        """Take the event with an index; pause from time to time."""
        self.allow(limits.TEMPORAL_JOINS_PER_EVENT_MAX)
        yield from self.take(now, hits, max(self.start, now - self.memory))

    def allow(self, joins: int) -> None:
        """Examine so many pairs; then forget events, and examine half as many, and so on."""
        self._budget = self._left = joins
        self._pause_at = max(joins - limits.TEMPORAL_JOINS_AT_ONCE, 0)

    def take(self, now: int, hits: Hits, low: int) -> Iterator[None]:
        """Take the event with an index like `step`. `low`: the index up to which events have left
        the memory.
        """
        self._now, self._low = now, low
        for join in self._absent:
            if join.alpha in hits:
                yield from self._exclude(join, hits[join.alpha])
        self._expire(self._low)
        for level in range(self._last, -1, -1):  # the event is not yet in earlier combinations
            alpha = self._joins[level].alpha
            if alpha in hits:
                yield from self._take(level, hits[alpha])

    def take_found(self) -> list[Combination]:
        """Return the combinations found since the last call, in the order of the text, sorted; at
        most the limit, of the most recent events.
        """
        if not self._found:
            return []
        self._drop_older()
        self.counters.found += len(self._found)
        found = sorted(self._found, key=self._indexes_in_text)
        self._found.clear()
        return [tuple(one[level] for level in self._text_order) for one in found]

    def _find(self, combination: Combination) -> None:
        """Note a match; there are never many more than are reported."""
        self._found[combination] = None
        if len(self._found) > 2 * limits.TEMPORAL_MATCHES_PER_EVENT_MAX:
            self._drop_older()

    def _drop_older(self) -> None:
        """Drop the older of the found combinations that are too many."""
        more = len(self._found) - limits.TEMPORAL_MATCHES_PER_EVENT_MAX
        if more > 0:
            for one in sorted(self._found, key=self._indexes_in_text)[:more]:
                del self._found[one]
            self.count_dropped("matches_max", more)
            self.counters.found += more

    def _indexes_in_text(self, combination: Combination) -> list[int]:
        return [combination[level].index for level in self._text_order]

    def discard_excluded(self) -> None:
        """Discard found combinations that an event of a later step excludes."""
        for combination in [*self._found]:
            if result_of(self._latest_excluded(combination)) is not None:
                del self._found[combination]

    def forget_until(self, index: int, reason: str) -> None:
        """Forget all events up to an index, with the partial matches that have one of them; do
        nothing if they are forgotten.
        """
        exhaust(self._forgetting(index, reason))

    def _forgetting(self, index: int, reason: str) -> Iterator[None]:
        if index <= self._low:
            return
        self.count_dropped(reason, index - self._low)
        self.start = self._low = index
        for oldest in sorted({*self._by_oldest, *self._by_blocker}):
            if oldest <= index:
                self._expire(oldest)
                yield

    def partial(self, now: int) -> list[tuple[int, Combination]]:
        """Return the partial matches after the event with an index, with their level: the longest
        first, of these those of the most recent events. Those of the last level have all events and
        wait for an excluded one to leave.
        """
        low = max(self.start, now - self.memory)
        alone = self._joins[0].alpha.entries if self._last else ()
        found: list[tuple[int, Combination]] = [
            (0, (entry,)) for entry in alone if entry.index > low
        ]
        for level, join in enumerate(self._joins[2:], 1):
            found += ((level, one) for waiting in join.waiting.values() for one in waiting)
        found += ((self._last, one) for one in self._blocked)
        return sorted(found, key=lambda one: [one[0], *_indexes(one[1])], reverse=True)

    def clear(self) -> None:
        """Discard all partial matches."""
        for join in (*self._joins, *self._absent):
            join.clear()
        for part in (self._blocked, self._found, self._by_oldest, self._by_blocker):
            part.clear()
        self._resize(-self.size)

    # --- joins ---

    def _take(self, level: int, entry: Entry) -> Iterator[None]:
        """Join an event with the combinations before it."""
        if level == 0:
            yield from self._reach((entry,), 0)
            return
        join = self._joins[level]
        key, check, low = join.key_of_entry(entry), join.check, self._low
        for combination in self._combinations(level, key):
            if self._left < self._pause_at:
                yield from self._pause()
            if self._low != low and oldest_of(combination) <= self._low:
                continue  # forgotten meanwhile
            self._count()
            longer = (*combination, entry)
            if check is None or check(longer):
                yield from self._reach(longer, level)

    def _combinations(self, level: int, key: Key) -> list[Combination]:
        if level > 1:
            return list(self._joins[level].waiting.get(key, ()))
        found: list[Combination] = []
        for entry in reversed(self._first.get(key, ())):
            if entry.index <= self._low:
                break
            if entry.index < self._now:  # this event is first itself: it comes later
                found.append((entry,))
        return found

    def _reach(self, combination: Combination, level: int) -> Iterator[None]:
        """Take a combination that is complete, or extend it."""
        if level < self._last:
            return self._extend(combination, level)
        if self._absent or self._left < 0:
            return self._complete(combination)
        self._find(combination)
        return iter(())

    def _extend(self, combination: Combination, level: int) -> Iterator[None]:
        """Store a combination, and join it with the events of the next level."""
        join = self._joins[level + 1]
        key, check = join.key_of(combination), join.check
        oldest = oldest_of(combination)
        if level:
            join.wait(key, combination)
            self._store(level, combination, oldest)
            while self.size > limits.TEMPORAL_PARTIAL_MATCHES_MAX:
                yield from self._forgetting_half("partial_matches_max")
        for entry in reversed(join.entries.get(key, ())):
            if entry.index > self._now:
                continue
            if self._left < self._pause_at:
                yield from self._pause()
            if entry.index <= self._low or oldest <= self._low:
                break
            self._count()
            longer = (*combination, entry)
            if check is None or check(longer):
                yield from self._reach(longer, level + 1)

    def _complete(self, combination: Combination) -> Iterator[None]:
        """Take a combination of all events."""
        excluded = yield from self._latest_excluded(combination)
        if self._left < 0:
            yield from self._pause()
        if excluded is None or excluded <= self._low:
            self._find(combination)
            return
        oldest = oldest_of(combination)
        if oldest <= max(excluded, self._low):
            return
        self._blocked[combination] = excluded
        for join in self._absent:
            join.wait(join.key_of(combination), combination)
        if excluded not in self._by_blocker:
            self._by_blocker[excluded] = {}
            self._schedule(excluded + self.memory, self)
        self._by_blocker[excluded][combination] = None
        self._store(self._last, combination, oldest)
        while self.size > limits.TEMPORAL_PARTIAL_MATCHES_MAX:
            yield from self._forgetting_half("partial_matches_max")

    def _latest_excluded(self, combination: Combination) -> Generator[None, None, int | None]:
        """Return the index of the latest remembered event that `not` excludes, if there is one."""
        latest: int | None = None
        for join in self._absent:
            index = yield from self._latest_of(join, combination)
            if index is not None:
                latest = index if latest is None else max(latest, index)
        return latest

    def _latest_of(self, join: Join, combination: Combination) -> Generator[None, None, int | None]:
        for entry in reversed(join.entries.get(join.key_of(combination), ())):
            if entry.index > self._now:
                continue
            self._count()
            if self._left < self._pause_at:  # the caller forgets events if these are too many
                self._pause_at = self._left - limits.TEMPORAL_JOINS_AT_ONCE
                yield
            if entry.index <= self._low:
                break
            if join.check is None or join.check((*combination, entry)):
                return entry.index
        return None

    def _exclude(self, join: Join, entry: Entry) -> Iterator[None]:
        """Discard the complete combinations that an event excludes: it outlives them."""
        waiting = list(join.waiting.get(join.key_of_entry(entry), ()))
        for number, combination in enumerate(waiting, 1):
            self.counters.examined += 1
            if number % limits.TEMPORAL_JOINS_AT_ONCE == 0:
                yield
            if join.check is None or join.check((*combination, entry)):
                self._unblock(combination)

    # --- what is stored ---

    def _store(self, level: int, combination: Combination, oldest: int) -> None:
        listed = self._by_oldest.get(oldest)
        if listed is None:
            listed = self._by_oldest[oldest] = {}
            self._schedule(oldest + self.memory, self)
        listed[combination] = level
        self._resize(1)
        self.counters.stored += 1

    def _unblock(self, combination: Combination) -> None:
        """Remove a complete combination from those that wait."""
        self._by_blocker.get(self._blocked.pop(combination), {}).pop(combination, None)
        self._by_oldest.get(oldest_of(combination), {}).pop(combination, None)
        self._resize(-1)
        for join in self._absent:
            join.end_wait(combination)

    def _expire(self, index: int) -> None:
        """Let the event with an index leave: discard the combinations that it is in, and find those
        that it excluded.
        """
        for combination in self._by_blocker.pop(index, ()):
            self._unblock(combination)
            if oldest_of(combination) > self._low:
                self._find(combination)
        for combination, level in self._by_oldest.pop(index, {}).items():
            if level == self._last:
                self._unblock(combination)
                continue
            join = self._joins[level + 1]
            join.end_wait(combination)
            self._resize(-1)

    def _resize(self, more: int) -> None:
        self.size += more
        self._total.count += more

    def _count(self) -> None:
        self.counters.examined += 1
        self._left -= 1

    def _pause(self) -> Iterator[None]:
        """Pause; if too many pairs were examined, forget events."""
        if self._left < 0:
            self.allow(self._budget // 2)
            yield from self._forgetting_half("joins_max")
        else:
            self._pause_at = max(self._left - limits.TEMPORAL_JOINS_AT_ONCE, 0)
            yield

    def forget_half(self, reason: str) -> None:
        """Forget the older half of the remembered events, never the latest one."""
        exhaust(self._forgetting_half(reason))

    def _forgetting_half(self, reason: str) -> Iterator[None]:
        return self._forgetting((self._low + self._now) // 2, reason)

    def count_dropped(self, reason: str, count: int) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + count


def _indexes(combination: Combination) -> list[int]:
    return [entry.index for entry in combination]
