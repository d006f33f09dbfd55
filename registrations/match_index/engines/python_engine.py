"""The engine of the match index in Python alone, over the mapped file. Plain module."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.lookup import Lookup, Seen, forget, see
from registrations.match_index.engines.residual import Tests
from registrations.match_index.format.columns import NOT, NUMBER, TEST
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.layout import PLACE, SHARED
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.tombstones import Graves
from registrations.matching.matcher import Counters

RUNS_FEW = 16  # of one key; of more, the event's gates are looked for

NOTHING = memoryview(b"").cast("q")


class PythonEngine:
    """`counters.touched` counts conjunctions looked at, `counters.lookups` values."""

    name = "python"

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._look = Lookup(shard, hierarchy)
        self._tests = Tests(shard, hierarchy, self.counters)
        self._graves = Graves(shard)

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
            return copied(self._look.shard, self._graves, found, places=places)
        except (IndexError, ValueError) as error:
            raise IndexDamaged(f"{self._look.shard.path.name} leads outside of itself.") from error

    def bury(self, place: int) -> None:
        self._graves.bury(place)

    def _found(self, event: Event, seen: Seen) -> list[int]:
        found: list[int] = []
        passes = Verdicts(self._tests, event)
        for first, end in stretches(self._look, seen):
            self.counters.touched += end - first
            verify(self._look, first, end, passes, found)
        return found


class Verdicts(dict[int, bool]):
    """Of tests, each tried when it is first asked for."""

    def __init__(self, tests: Tests, event: Event) -> None:
        super().__init__()
        self._tests, self._event = tests, event

    def __missing__(self, test: int) -> bool:
        verdict = self[test] = self._tests(test, self._event)
        return verdict


# --- the hot loops ---


def stretches(look: Lookup, seen: Seen) -> list[tuple[int, int]]:
    """The conjunctions under what the event has, and in gates that it passes: ranges of them."""
    views, present = look.shard.views, look.present
    key_runs, gates, conjunctions = (
        views["key_runs"],
        views["run_gates"],
        views["run_conjunctions"],
    )
    found: list[tuple[int, int]] = []
    for key in seen.keys:
        first, end = key_runs[key], key_runs[key + 1]
        if end - first > RUNS_FEW:
            runs = runs_of_gates(gates, seen.gates, first, end)
        else:
            runs = [run for run in range(first, end) if present[gates[run]]]
        found += [(conjunctions[run], conjunctions[run + 1]) for run in runs]
    for low, high in seen.spans:
        runs = [run for run in range(key_runs[low], key_runs[high]) if present[gates[run]]]
        found += [(conjunctions[run], conjunctions[run + 1]) for run in runs]
    return found


def verify(look: Lookup, first: int, end: int, passes: Verdicts, found: list[int]) -> None:
    """Add the conjunctions from `first` to before `end` all of whose words hold."""
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
    """A word that is no key which must be there."""
    return passes[word - TEST] if word >= TEST else not present[word & NUMBER]


def runs_of_gates(gates: memoryview, wanted: list[int], first: int, end: int) -> list[int]:
    """The runs of one key, which are in the order of their gates, that are of a wanted gate."""
    found = []
    for gate in wanted:
        at = bisect_left(gates, gate, first, end)
        if at < end and gates[at] == gate:
            found.append(at)
    return found


def copied(shard: Shard, graves: Graves, found: list[int], *, places: bool) -> memoryview:
    """The ids of conjunctions, or their dense places, those of one filter once."""
    dense_at, ids = shard.views["dense_at"], shard.views["ids"]
    out, shared = array("q"), array("q")
    for conjunction in found:
        low, high = dense_at[conjunction], dense_at[conjunction + 1] & PLACE
        into = shared if low & SHARED else out
        low &= PLACE
        if not low <= high <= len(ids):
            raise IndexError
        if conjunction in graves.wounded:
            alive: Iterable[int] = graves.alive(conjunction, low, high)
            into.extend(alive if places or into is shared else (ids[at] for at in alive))
        elif places or into is shared:
            into.extend(range(low, high))
        else:
            out.frombytes(ids[low:high].cast("B"))
    if shared:
        once = {ids[at]: at for at in reversed(shared)}
        out.extend(sorted(once.values() if places else once))
    return memoryview(out)
