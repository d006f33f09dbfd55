"""The pure Python engine of the match index, over the mapped file. Plain module."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.interval_lookup import Intervals, Span
from registrations.match_index.engines.lookup import EventKeys, Lookup, mark_event, unmark
from registrations.match_index.engines.residual import Tests
from registrations.match_index.format.columns import NOT, NUMBER, TEST
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.layout import POSITION, SHARED
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.tombstones import Tombstones
from registrations.matching.matcher import Counters

RUNS_FEW = 16  # of one key; among more, the event's gates are searched

NOTHING = memoryview(b"").cast("q")
# the intervals of a range of conjunctions that a value is in, as interval_lookup.stabbed
Stabbed = Callable[[int, int, int, int], Iterable[Span]]


class PythonEngine:
    """The Python engine. `counters.touched` counts visited conjunctions, `counters.lookups`
    values.
    """

    name = "python"

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._look = Lookup(shard, hierarchy)
        self._tests = Tests(shard, hierarchy, self.counters)
        self._tombstones = Tombstones(shard)
        self._intervals = Intervals(shard)

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
            return result_of(self._look.shard, self._tombstones, found, positions=positions)
        except (IndexError, ValueError) as error:
            name = self._look.shard.path.name
            raise IndexDamaged(f"{name} has an offset out of range.") from error

    def mark_removed(self, position: int) -> None:
        self._tombstones.mark_removed(position)

    def _found(self, event: Event, marked: EventKeys) -> list[int]:
        found: list[int] = []
        passes = Verdicts(self._tests, event)
        ranges = conjunction_ranges(self._look, marked)
        for first, end in ranges + interval_ranges(self._look, marked, self._intervals.stabbed):
            self.counters.touched += end - first
            verify(self._look, first, end, passes, found)
        return found


class Verdicts(dict[int, bool]):
    """The results of tests, each evaluated on first access."""

    def __init__(self, tests: Tests, event: Event) -> None:
        super().__init__()
        self._tests, self._event = tests, event

    def __missing__(self, test: int) -> bool:
        verdict = self[test] = self._tests(test, self._event)
        return verdict


# --- the hot loops ---


def conjunction_ranges(look: Lookup, marked: EventKeys) -> list[tuple[int, int]]:
    """Return the conjunctions of the event's keys and gates, as ranges."""
    views, present = look.shard.views, look.present
    key_runs, gates, conjunctions = (
        views["key_runs"],
        views["run_gates"],
        views["run_conjunctions"],
    )
    found: list[tuple[int, int]] = []
    for key in marked.keys:
        first, end = key_runs[key], key_runs[key + 1]
        if end - first > RUNS_FEW:
            runs = runs_of_gates(gates, marked.gates, first, end)
        else:
            runs = [run for run in range(first, end) if present[gates[run]]]
        found += [(conjunctions[run], conjunctions[run + 1]) for run in runs]
    for low, high in marked.spans:
        runs = [run for run in range(key_runs[low], key_runs[high]) if present[gates[run]]]
        found += [(conjunctions[run], conjunctions[run + 1]) for run in runs]
    return found


def interval_ranges(look: Lookup, marked: EventKeys, stabbed: Stabbed) -> list[Span]:
    """Return the conjunctions whose intervals the event's values are in, as ranges."""
    views, found = look.shard.views, list[Span]()
    key_runs, conjunctions = views["key_runs"], views["run_conjunctions"]
    for group, below, above in marked.stabs:
        first, end = key_runs[group], key_runs[group + 1]
        for run in runs_of_gates(views["run_gates"], marked.gates, first, end):
            found += stabbed(conjunctions[run], conjunctions[run + 1], below, above)
    return found


def verify(look: Lookup, first: int, end: int, passes: Verdicts, found: list[int]) -> None:
    """Add the conjunctions from `first` to before `end` whose words all hold."""
    rest_at, present = look.rest_at, look.present
    at = rest_at[first]
    for conjunction in range(first, end):
        until = rest_at[conjunction + 1]
        for word in look.rest[at:until]:
            if not (present[word] if word < NOT else holds(word, present, passes)):
                break
        else:
            found.append(conjunction)
        at = until


def holds(word: int, present: bytearray, passes: Verdicts) -> bool:
    """Return whether a word holds that is a test or a negated key."""
    return passes[word - TEST] if word >= TEST else not present[word & NUMBER]


def runs_of_gates(gates: memoryview, passed: list[int], first: int, end: int) -> list[int]:
    """Return the runs of one key (sorted by gate) that have one of the passed gates."""
    found = []
    for gate in passed:
        at = bisect_left(gates, gate, first, end)
        if at < end and gates[at] == gate:
            found.append(at)
    return found


def result_of(
    shard: Shard, tombstones: Tombstones, found: list[int], *, positions: bool
) -> memoryview:
    """Return the ids of conjunctions, or their dense positions, one for each filter."""
    dense_at, ids = shard.views["dense_at"], shard.views["ids"]
    out, shared = array("q"), array("q")
    for conjunction in found:
        low, high = dense_at[conjunction], dense_at[conjunction + 1] & POSITION
        into = shared if low & SHARED else out
        low &= POSITION
        if not low <= high <= len(ids):
            raise IndexError
        if conjunction in tombstones.partly_deleted:
            alive: Iterable[int] = tombstones.live(conjunction, low, high)
            into.extend(alive if positions or into is shared else (ids[at] for at in alive))
        elif positions or into is shared:
            into.extend(range(low, high))
        else:
            out.frombytes(ids[low:high].cast("B"))
    if shared:
        once = {ids[at]: at for at in reversed(shared)}
        out.extend(sorted(once.values() if positions else once))
    return memoryview(out)
