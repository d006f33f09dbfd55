"""The engine of the match index in numpy: names are looked for as in Python, conjunctions are
verified and copied all at once. Plain module.
"""

from typing import Any

import numpy as np

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.lookup import Lookup, Seen, Span, forget, see
from registrations.match_index.engines.python_engine import (
    NOTHING,
    Verdicts,
    copied,
    stretches,
    verify,
)
from registrations.match_index.engines.residual import Tests
from registrations.match_index.format.columns import NOT, NUMBER, TEST
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.layout import PLACE, SHARED
from registrations.match_index.format.ragged import Array, spread
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.tombstones import Graves, conjunction_at
from registrations.matching.matcher import Counters

# Below these, loops in Python take less time than the first calls of numpy.
SPAN_FEW = 32  # runs under a range of thresholds
VERIFIED_FEW = 100  # conjunctions to be looked at
COPIED_FEW = 300  # conjunctions that hold


class NumpyEngine:
    """Counters are those of the engine in Python."""

    name = "numpy"

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._look = Lookup(shard, hierarchy)
        self._tests = Tests(shard, hierarchy, self.counters)
        self._graves = Graves(shard)
        self._wounded = np.zeros(0, bool)  # by conjunction, once something is gone
        self._present = np.frombuffer(self._look.present, np.uint8)
        self._views = {name: np.asarray(view) for name, view in shard.views.items()}
        rest = self._views["rest"]
        self._has_keys_only = not len(rest) or int(rest.max()) < NOT

    def match(self, event: Event, *, places: bool = False) -> memoryview:
        try:
            seen = see(self._look, event)
            if seen is None:
                return NOTHING
            try:
                found = self._found(event, seen)
            finally:
                forget(self._look, seen)
                self._tests.end()
            self.counters.lookups += len(event.attributes)
            if len(found) > COPIED_FEW:
                return self._copied(np.asarray(found), places=places)
            few = found if isinstance(found, list) else found.tolist()
            return copied(self._look.shard, self._graves, few, places=places)
        except (IndexError, ValueError) as error:
            raise IndexDamaged(f"{self._look.shard.path.name} leads outside of itself.") from error

    def bury(self, place: int) -> None:
        if not len(self._wounded):
            self._wounded = np.zeros(self._look.head.conjunctions, bool)
        self._wounded[conjunction_at(self._look.shard, place)] = True
        self._graves.bury(place)

    def _found(self, event: Event, seen: Seen) -> list[int] | Array:
        """A list of few, an array of many."""
        key_runs = self._look.shard.views["key_runs"]
        many = any(key_runs[end] - key_runs[first] > SPAN_FEW for first, end in seen.spans)
        ranges = stretches(self._look, seen._replace(spans=[]) if many else seen)
        if not many and sum(end - first for first, end in ranges) <= VERIFIED_FEW:
            return self._verified(ranges, event)
        first, end = np.array(ranges, np.int64).reshape(-1, 2).T
        if many:
            more = self._under(np.array(seen.spans, np.int64))
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

    def _under(self, spans: Array) -> tuple[Array, Array]:
        """The stretches of conjunctions under ranges of thresholds, joined where they touch."""
        gates, conjunctions = self._views["run_gates"], self._views["run_conjunctions"]
        low, high = self._views["key_runs"][spans].astype(np.int64).T
        runs = within(low, high, len(gates))
        runs = runs[self._present.take(gates.take(runs)) != 0]
        first, end = conjunctions.take(runs).astype(np.int64), conjunctions.take(runs + 1)
        joined = first[1:] == end[:-1]
        is_first, is_last = np.append(True, ~joined)[: len(runs)], np.append(~joined, True)
        return first[is_first], end[is_last[: len(runs)]].astype(np.int64)

    def _passing(self, found: Array, event: Event) -> Array:
        """Those whose tests hold, too; each test is tried once."""
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

    def _copied(self, found: Array, *, places: bool) -> memoryview:
        special = self._views["dense_at"][found] >= SHARED
        if len(self._wounded):
            special |= self._wounded[found]
        taken = self._entries(found[~special])
        if special.any():
            taken = np.concatenate((taken, self._told_once(found[special])))
        made: Any = taken if places else self._views["ids"].take(taken)
        return memoryview(made).cast("B").cast("q")

    def _told_once(self, found: Array) -> Array:
        """The entries that are left of conjunctions, those of one filter once."""
        gone = self._wounded[found] if len(self._wounded) else np.zeros(len(found), bool)
        parts = [self._entries(found[~gone])]
        for conjunction in found[gone].tolist():
            low, end = self._look.shard.views["dense_at"][conjunction : conjunction + 2]
            parts.append(np.array(self._graves.alive(conjunction, low & PLACE, end & PLACE)))
        taken = np.concatenate(parts).astype(np.int64)
        ids = self._views["ids"].take(taken)
        return taken[np.unique(ids, return_index=True)[1]]

    def _entries(self, found: Array) -> Array:
        low = (self._views["dense_at"].take(found) & np.uint32(PLACE)).astype(np.int64)
        end = (self._views["dense_at"].take(found + 1) & np.uint32(PLACE)).astype(np.int64)
        return within(low, end, self._look.head.entries)


# --- the hot loops ---


def within(low: Array, end: Array, size: int) -> Array:
    """All places from each `low` to before its `end`. Raises IndexError beyond `size`."""
    counts = end - low
    if len(end) and (int(end.max()) > size or int(counts.min()) < 0):
        raise IndexError
    return spread(low, counts)


def failing(words: Array, present: Array, *, has_keys_only: bool) -> Array:
    """True for each word that does not hold; a test is not tried here."""
    found: Array
    if has_keys_only:
        found = present.take(words) == 0
    else:
        there = present.take(words & np.uint32(NUMBER), mode="clip")
        unwanted = (words >> np.uint32(30)) & np.uint32(1)
        found = (there == unwanted) & (words < TEST)
    return found


def without_fails(candidates: Array, rest_at: Array, fails: Array) -> Array:
    """The conjunctions none of whose words fails; the words stand in the order of these."""
    lengths = rest_at[candidates + 1].astype(np.int64) - rest_at[candidates]
    before = np.zeros(len(fails) + 1, np.int64)
    np.cumsum(fails, out=before[1:])
    ends = np.cumsum(lengths)
    found: Array = candidates[before[ends] == before[ends - lengths]]
    return found
