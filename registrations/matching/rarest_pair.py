"""Strategy `access`, the in-memory core of the default `auto`: an access predicate for each
conjunction. Identical conjunctions are stored once and indexed by their rarest pair only.
Plain module.

An event's pairs are looked up once. Each known pair leads to the conjunctions of which it is the
rarest pair, indexed there by their second rarest; only conjunctions of which the event has both are
verified against its other pairs. A popular pair leads to few conjunctions, because most also have a
rarer one. The registrations of a conjunction are one list, so that a match is one `extend` for any
number of them.

The rarest pair is the one in the fewest conjunctions of the same gate when the conjunction was
added. Frequencies change, so when the conjunctions of a pair have doubled since the last review,
all of them are linked again to their rarest pair of now; that is amortized constant work per added
registration. Nothing else is ever rebuilt: a registration is added and removed in place.

Conditions, the tests of a conjunction that are not pairs, are evaluated last, each once per event.
A conjunction without pairs is indexed by a type or an attribute that it requires, or evaluated for
every event of its gate.
"""

from bisect import bisect_left, insort
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.values import key_of
from registrations.matching.atoms import Key, atoms_of, keys_of, nested_pairs
from registrations.matching.conditions import NO_TRIAL, Conditions, EventTestResults
from registrations.matching.conjunctions import (
    Atom,
    AtomPair,
    Conjunction,
    GateConjunctions,
    conjunction_of,
    remove_conjunction,
)
from registrations.matching.gates import GateKey, gate_of, gates_of
from registrations.matching.matcher import Counters
from registrations.matching.spec import Spec

PARTNERS_FEW = 32  # up to so many are looked up one by one; the keys of more are intersected


class RarestPairMatcher:
    """The gates, and the conjunction of each number.

    `counters.touched` counts visited conjunctions and couples, `counters.rebuilds` reviews of a
    pair.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._tests = Conditions(hierarchy)
        self._gates: dict[GateKey, GateConjunctions] = {}
        self._places: dict[int, Conjunction] = {}

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        key = gate_of(spec)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = GateConjunctions(key)
        tests = self._tests.of(spec.tests) if spec.tests else ()
        place, reviews = conjunction_of(gate, atoms_of(spec), tests)
        self.counters.rebuilds += reviews
        if place.tests and not place.ids:
            self._tests.use(place.tests)
        if not place.ids or id > place.ids[-1]:
            place.ids.append(id)
        else:
            insort(place.ids, id)
        self._places[id] = place

    def remove(self, id: int) -> None:
        place = self._places.pop(id, None)
        if place is None:
            return
        del place.ids[bisect_left(place.ids, id)]
        if not place.ids:
            remove_conjunction(place)
            if place.tests:
                self._tests.forget(place.tests)
            if not place.gate.conjunctions:
                del self._gates[place.gate.key]

    def match(self, event: Event) -> list[int]:
        due: list[int] = []
        trial = EventTestResults(self._tests, event) if self._tests.known else NO_TRIAL
        seen = AttributeValues(event.attributes, {})
        for key in gates_of(event):
            if (gate := self._gates.get(key)) is not None:
                self._match_gate(gate, seen, trial, due)
        if trial is not NO_TRIAL:
            self.counters.evaluated += trial.evaluated
        return due

    def _match_gate(
        self,
        gate: GateConjunctions,
        seen: "AttributeValues",
        trial: EventTestResults,
        due: list[int],
    ) -> None:
        attributes, lists = seen
        present = known_atoms(gate.names, attributes, lists)
        lookups = len(attributes)
        inside: dict[str, Any] | None = None
        if gate.prefixes:
            inside = dict(nested_pairs(attributes, gate.prefixes))
            present |= known_atoms(gate.names, inside, lists)
            lookups += len(inside)
        if gate.everything is not None:
            due += gate.everything
        touched = collect(present, trial, due)
        if gate.loose:
            touched += verify(gate.loose, trial, due)
        if gate.typed:
            for type in trial.types:
                if type in gate.typed:
                    touched += verify(gate.typed[type], trial, due)
        if gate.anchored:
            for path in (*attributes, *(inside or ())):
                if path in gate.anchored:
                    touched += verify(gate.anchored[path], trial, due)
        self.counters.lookups += lookups
        self.counters.touched += touched

    def __len__(self) -> int:
        return len(self._places)

    def size(self) -> tuple[int, int, int]:
        """Return the number of gates, atoms and conjunctions (SUN-09)."""
        gates = self._gates.values()
        atoms = sum(len(values) for gate in gates for values in gate.names.values())
        return len(gates), atoms, sum(len(gate.conjunctions) for gate in gates)


class AttributeValues(NamedTuple):
    """The attributes of an event, shared by all gates."""

    attributes: dict[str, Any]
    lists: dict[str, dict[Key, None]]  # keys of lists by path, computed once: they may be long


# --- the hot loops ---


def known_atoms(
    names: dict[str, dict[Key, Atom]], pairs: dict[str, Any], lists: dict[str, dict[Key, None]]
) -> set[Atom]:
    """Return the atoms among an event's pairs: one look-up by path and, if known, by value."""
    present: set[Atom] = set()
    values_of = names.get
    for path, value in pairs.items():
        if (values := values_of(path)) is None:
            continue
        if value.__class__ is str:
            if value in values:
                present.add(values[value])
        elif isinstance(value, list | tuple):
            if (keys := lists.get(path)) is None:
                keys = lists[path] = dict.fromkeys(keys_of(value))
            present.update(values[key] for key in values.keys() & keys.keys())
        elif (key := key_of(value)) in values:
            present.add(values[key])
    return present


def collect(present: set[Atom], trial: EventTestResults, due: list[int]) -> int:
    """Add the registrations of every conjunction that holds; return how many were visited."""
    touched = 0
    for atom in present:
        if (alone := atom.alone) is not None:
            due += alone
            touched += 1
        if (partners := atom.partners) is None:
            continue
        few = len(partners) <= PARTNERS_FEW
        found = partners if few else partners.keys() & present
        touched += len(found)
        for partner in found:
            if partner in present:
                touched += collect_couple(partners[partner], present, trial, due)
    return touched


def collect_couple(
    couple: AtomPair, present: set[Atom], trial: EventTestResults, due: list[int]
) -> int:
    """Do the same for two present atoms; return how many conjunctions were visited beyond them."""
    if (both := couple.both) is not None:
        due += both
    if (more := couple.more) is None:
        return 0
    holds = present.issuperset
    for conjunction in more:
        if holds(conjunction.rest) and (not conjunction.tests or trial.passes(conjunction.tests)):
            due += conjunction.ids
    return len(more)


def verify(listed: list[Conjunction], trial: EventTestResults, due: list[int]) -> int:
    """Do the same for conjunctions that have tests only."""
    for conjunction in listed:
        if trial.passes(conjunction.tests):
            due += conjunction.ids
    return len(listed)
