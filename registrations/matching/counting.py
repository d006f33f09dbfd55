"""Strategy `counting`: SUN's inverse mapping with counters (US 7,111,305). Plain module.

A hash table maps a pair, within its gate (gates.py), to every registration that has the pair. An
event increments the counters of the registrations of its pairs; a registration whose counter
reaches its total is due. Afterwards only the incremented counters are reset to zero.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.matching.atoms import Key, atoms_of, keys_of, nested_pairs, prefixes_of
from registrations.matching.conditions import Condition, Conditions, EventTestResults
from registrations.matching.gates import GateKey, gate_of, gates_of
from registrations.matching.matcher import Counters
from registrations.matching.spec import Spec

K = TypeVar("K")
HashKey = tuple[GateKey, str, Key]  # one per (domain, type, application, name=value) (SUN-06)


class Step(NamedTuple):
    """One lookup of a trace."""

    path: str
    value: Any
    counters: dict[int, int]  # of the registrations of the entry, after their increments
    due: tuple[int, ...]  # all registrations due so far, in order


class Trace(NamedTuple):
    """The steps of matching one event (SUN-12, SUN-13)."""

    due: list[int]
    lookups: int
    increments: int
    steps: list[Step]


class CountedRegistration:
    """A registration's counter, and the total that it must reach."""

    __slots__ = ("counter", "gate", "id", "keys", "tests", "total")

    def __init__(self, id: int, spec: Spec, tests: tuple[Condition, ...]) -> None:
        self.gate = gate = gate_of(spec)
        self.id = id
        self.keys: tuple[HashKey, ...] = tuple((gate, *atom) for atom in atoms_of(spec))
        self.total = len(self.keys)
        self.tests = tests  # evaluated once the total is reached
        self.counter = 0


Entry = dict[int, CountedRegistration]  # the list of pointers, with removal in constant time


class CountingMatcher:
    """The index, the zero-pair buckets, and the number of registrations of each gate and path."""

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._tests = Conditions(hierarchy)
        self._registrations: dict[int, CountedRegistration] = {}
        self._index: dict[HashKey, Entry] = {}
        self._no_pairs: dict[GateKey, Entry] = {}  # total 0, which no counter reaches (SUN-05)
        self._gates: dict[GateKey, int] = {}
        self._prefixes: dict[str, int] = {}

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        made = self._registrations[id] = CountedRegistration(id, spec, self._tests.of(spec.tests))
        self._tests.use(made.tests)
        _count_up(self._gates, made.gate)
        if not made.keys:
            self._no_pairs.setdefault(made.gate, {})[id] = made
        for key in made.keys:
            self._index.setdefault(key, {})[id] = made
            for prefix in prefixes_of(key[1]):
                _count_up(self._prefixes, prefix)

    def remove(self, id: int) -> None:
        gone = self._registrations.pop(id, None)
        if gone is None:
            return
        self._tests.forget(gone.tests)
        _count_down(self._gates, gone.gate)
        if not gone.keys:
            _take_out(self._no_pairs, gone.gate, id)
        for key in gone.keys:
            _take_out(self._index, key, id)
            for prefix in prefixes_of(key[1]):
                _count_down(self._prefixes, prefix)

    def match(self, event: Event) -> list[int]:
        return self._run(event, None).due

    def trace(self, event: Event) -> Trace:
        """Match an event and return every lookup and increment."""
        return self._run(event, [])

    def _run(self, event: Event, steps: list[Step] | None) -> Trace:
        gates = [gate for gate in gates_of(event) if gate in self._gates]
        due = [id for gate in gates for id in self._no_pairs.get(gate, ())]
        visited: list[CountedRegistration] = []
        lookups = 0
        for key in event_keys(event, gates, self._prefixes):
            lookups += 1
            entry = self._index.get(key, {})
            count(entry, visited, due)
            if steps is not None:
                counters = {id: registration.counter for id, registration in entry.items()}
                steps.append(Step(*key[1:], counters, tuple(due)))
        reset(visited)
        due = self._passing(due, event)
        self.counters.lookups += lookups
        self.counters.touched += len(visited)
        return Trace(due, lookups, len(visited), steps or [])

    def _passing(self, due: list[int], event: Event) -> list[int]:
        """Return those due registrations that pass their tests."""
        if not self._tests.known:
            return due
        trial = EventTestResults(self._tests, event)
        passing = [id for id in due if trial.passes(self._registrations[id].tests)]
        self.counters.evaluated += trial.evaluated
        return passing

    def dump(self) -> list[tuple[HashKey, list[int]]]:
        """Return every hash entry with its registrations, in one order regardless of its history
        (SUN-07, SUN-10); a gate's registrations without pairs have the path `` and the value `()`.
        """
        entries: dict[HashKey, Entry] = {
            **{(gate, "", ()): entry for gate, entry in self._no_pairs.items()},
            **self._index,
        }
        return sorted(((key, sorted(entry)) for key, entry in entries.items()), key=repr)

    def totals(self) -> dict[int, int]:
        """Return the number of pairs that each registration needs (SUN-08)."""
        return {id: registration.total for id, registration in self._registrations.items()}

    def residue(self) -> dict[int, int]:
        """Return the counters that are not zero: none between two events (SUN-14)."""
        left = {id: registration.counter for id, registration in self._registrations.items()}
        return {id: counter for id, counter in left.items() if counter}

    def __len__(self) -> int:
        return len(self._registrations)


def event_keys(event: Event, gates: list[GateKey], prefixes: dict[str, int]) -> Iterator[HashKey]:
    """Yield the hash keys of an event: each of its pairs under each gate."""
    pairs = [*event.attributes.items(), *nested_pairs(event.attributes, prefixes)]
    for gate in gates:
        for path, value in pairs:
            for key in keys_of(value):
                yield gate, path, key


def count(entry: Entry, visited: list[CountedRegistration], due: list[int]) -> None:
    """Increment the counters of an entry, and add the registrations that are due (SUN-12)."""
    for registration in entry.values():
        registration.counter += 1
        visited.append(registration)
        if registration.counter == registration.total:
            due.append(registration.id)


def reset(visited: list[CountedRegistration]) -> None:
    """Reset the visited counters to zero, and only these (SUN-14)."""
    for registration in visited:
        registration.counter = 0


def _count_up(counts: dict[K, int], key: K) -> None:
    counts[key] = counts.get(key, 0) + 1


def _count_down(counts: dict[K, int], key: K) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _take_out(entries: dict[K, Entry], key: K, id: int) -> None:
    del entries[key][id]
    if not entries[key]:
        del entries[key]
