"""The numpy engine of the match index: it looks up names as the Python engine does, and verifies
and copies conjunctions all at once. Plain module.
"""

from typing import Any

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.lookup import EventKeys, Lookup, Span, mark_event, unmark
from registrations.match_index.engines.python_engine import (
    NOTHING,
    Verdicts,
    conjunction_ranges,
    interval_ranges,
    result_of,
    verify,
)
from registrations.match_index.engines.residual import Tests
from registrations.match_index.format.columns import NOT, NUMBER, TEST
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.layout import POSITION, SHARED
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.ragged import Array, spread
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.tombstones import Tombstones, conjunction_at
from registrations.matching.matcher import Counters

# Below these, loops in Python are faster than the first calls of numpy.
SPAN_FEW = 32  # runs of a range of thresholds
VERIFIED_FEW = 100  # conjunctions to verify
COPIED_FEW = 300  # conjunctions that hold


class NumpyEngine:
    """The numpy engine. Its counters have the meaning of those of PythonEngine."""

    name = "numpy"

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._look = Lookup(shard, hierarchy)
        self._tests = Tests(shard, hierarchy, self.counters)
        self._tombstones = Tombstones(shard)
        self._partly_deleted = np.zeros(0, bool)  # by conjunction, once there is a tombstone
        self._present = np.frombuffer(self._look.present, np.uint8)
        self._views = {name: np.asarray(view) for name, view in shard.views.items()}
        self._first_interval = shard.head.conjunctions - shard.head.intervals
        rest = self._views["rest"]
        self._has_keys_only = not len(rest) or int(rest.max()) < NOT

    def match(self, event: Event, *, positions: bool = False) -> memoryview:
        try:
            marked = mark_event(self._look, event)
            if marked is None:
                return NOTHING
            try:
                found = self._found(event, marked)
            finally:
                unmark(self._look, marked)
                self._tests.end()
            self.counters.lookups += len(event.attributes)
            if len(found) > COPIED_FEW:
                return self._copied(np.asarray(found), positions=positions)
            few = found if isinstance(found, list) else found.tolist()
            return result_of(self._look.shard, self._tombstones, few, positions=positions)
        except (IndexError, ValueError) as error:
            name = self._look.shard.path.name
            raise IndexDamaged(f"{name} has an offset out of range.") from error

    def mark_removed(self, position: int) -> None:
        if not len(self._partly_deleted):
            self._partly_deleted = np.zeros(self._look.head.conjunctions, bool)
        self._partly_deleted[conjunction_at(self._look.shard, position)] = True
        self._tombstones.mark_removed(position)

    def _found(self, event: Event, marked: EventKeys) -> "list[int] | Array":
        """Return the conjunctions that hold: few as a list, many as an array."""
        key_runs = self._look.shard.views["key_runs"]
        many = any(key_runs[end] - key_runs[first] > SPAN_FEW for first, end in marked.spans)
        ranges = conjunction_ranges(self._look, marked._replace(spans=[]) if many else marked)
        ranges += interval_ranges(self._look, marked, self._stabbed)
        if not many and sum(end - first for first, end in ranges) <= VERIFIED_FEW:
            return self._verified(ranges, event)
        first, end = np.array(ranges, np.int64).reshape(-1, 2).T
        if many:
            more = self._under(np.array(marked.spans, np.int64))
            first, end = np.concatenate((first, more[0])), np.concatenate((end, more[1]))
        self.counters.touched += int((end - first).sum())
        rest_at = self._views["rest_at"]
        low, high = rest_at[first].astype(np.int64), rest_at[end].astype(np.int64)
        words = self._views["rest"].take(within(low, high, len(self._views["rest"])))
        fails = failing(words, self._present, has_keys_only=self._has_keys_only)
        found: Array = without_fails(spread(first, end - first), rest_at, fails)
        if self._look.head.tests:
            return self._passing(found, event)
        return found

    def _verified(self, ranges: list[Span], event: Event) -> list[int]:
        found: list[int] = []
        passes = Verdicts(self._tests, event)
        for first, end in ranges:
            self.counters.touched += end - first
            verify(self._look, first, end, passes, found)
        return found

    def _stabbed(self, first: int, end: int, below: int, above: int) -> list[Span]:
        """Return the intervals that a value is in; comparing all of them at once takes less than
        the tree, unless there are some 100,000.
        """
        begin, until = first - self._first_interval, end - self._first_interval
        until = begin + int(self._views["lows"][begin:until].searchsorted(below))
        found = np.flatnonzero(self._views["highs"][begin:until] >= above) + first
        return [(at, at + 1) for at in found.tolist()]

    def _under(self, spans: Array) -> tuple[Array, Array]:
        """Return the conjunctions of ranges of thresholds, as merged ranges."""
        gates, conjunctions = self._views["run_gates"], self._views["run_conjunctions"]
        low, high = self._views["key_runs"][spans].astype(np.int64).T
        runs = within(low, high, len(gates))
        runs = runs[self._present.take(gates.take(runs)) != 0]
        first, end = conjunctions.take(runs).astype(np.int64), conjunctions.take(runs + 1)
        joined = first[1:] == end[:-1]
        is_first, is_last = np.append(True, ~joined)[: len(runs)], np.append(~joined, True)
        return first[is_first], end[is_last[: len(runs)]].astype(np.int64)

    def _passing(self, found: Array, event: Event) -> Array:
        """Return those whose tests hold; evaluate each test once."""
        rest_at, rest = self._views["rest_at"], self._views["rest"]
        ends = rest_at[found + 1].astype(np.int64)
        last = rest[np.maximum(ends - 1, 0)]
        tested = (ends > rest_at[found]) & (last >= TEST)  # tests are the last words
        keep = np.ones(len(found), bool)
        passes = Verdicts(self._tests, event)
        for at in np.flatnonzero(tested):
            begin, end = int(rest_at[found[at]]), int(ends[at])
            words = rest[begin:end].tolist()
            keep[at] = all(passes[word - TEST] for word in words if word >= TEST)
        return found[keep]

    def _copied(self, found: Array, *, positions: bool) -> memoryview:
        special = self._views["dense_at"][found] >= SHARED
        if len(self._partly_deleted):
            special |= self._partly_deleted[found]
        taken = self._entries(found[~special])
        if special.any():
            taken = np.concatenate((taken, self._distinct_entries(found[special])))
        made: Any = taken if positions else self._views["ids"].take(taken)
        return memoryview(made).cast("B").cast("q")

    def _distinct_entries(self, found: Array) -> Array:
        """Return the live entries of conjunctions, one for each filter."""
        partly = (
            self._partly_deleted[found] if len(self._partly_deleted) else np.zeros(len(found), bool)
        )
        parts = [self._entries(found[~partly])]
        for conjunction in found[partly].tolist():
            low, end = self._look.shard.views["dense_at"][conjunction : conjunction + 2]
            parts.append(
                np.array(self._tombstones.live(conjunction, low & POSITION, end & POSITION))
            )
        taken = np.concatenate(parts).astype(np.int64)
        ids = self._views["ids"].take(taken)
        return taken[np.unique(ids, return_index=True)[1]]

    def _entries(self, found: Array) -> Array:
        low = (self._views["dense_at"].take(found) & np.uint32(POSITION)).astype(np.int64)
        end = (self._views["dense_at"].take(found + 1) & np.uint32(POSITION)).astype(np.int64)
        return within(low, end, self._look.head.entries)


# --- the hot loops ---


def within(low: Array, end: Array, size: int) -> Array:
    """Return all positions from each `low` to before its `end`. Raises IndexError beyond `size`."""
    counts = end - low
    if len(end) and (int(end.max()) > size or int(counts.min()) < 0):
        raise IndexError
    return spread(low, counts)


def failing(words: Array, present: Array, *, has_keys_only: bool) -> Array:
    """Return for each word whether it fails; a test counts as holding."""
    found: Array
    if has_keys_only:
        found = present.take(words) == 0
    else:
        there = present.take(words & np.uint32(NUMBER), mode="clip")
        excluded = (words >> np.uint32(30)) & np.uint32(1)
        found = (there == excluded) & (words < TEST)
    return found


def without_fails(candidates: Array, rest_at: Array, fails: Array) -> Array:
    """Return the conjunctions without a failing word; the words are in their order."""
    lengths = rest_at[candidates + 1].astype(np.int64) - rest_at[candidates]
    before = np.zeros(len(fails) + 1, np.int64)
    np.cumsum(fails, out=before[1:])
    ends = np.cumsum(lengths)
    found: Array = candidates[before[ends] == before[ends - lengths]]
    return found
