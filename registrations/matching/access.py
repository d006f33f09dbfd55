"""Strategy `access`, the default: identical conjunctions are stored once, and each is reached
through its rarest pair only. Plain module.

An event's pairs are looked up once; each that is known leads to the conjunctions of which it is
the rarest pair, there by the second rarest, and only what has both is verified against the event's
other pairs. A popular pair leads to few: what asks for it nearly always asks for a rarer one as
well. The registrations of a conjunction stand together, so a match is one `extend`, however many
they are.

Rarest means: in the fewest conjunctions of the same gate, when the conjunction came.
Frequencies move on, so when twice as many conjunctions hang on a pair as after the last look, all
of these are looked at again and go to what is their rarest pair by now; that is at most a constant
of work per registration added. Nothing else is ever made anew: a registration comes and goes in
place.

Conditions, which are what a conjunction has beyond pairs, are tried last, each once an event. What
has tests and no pairs hangs on an attribute that it needs, or is tried for every event of its gate.
"""

from bisect import bisect_left, insort
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.values import key_of
from registrations.matching.atoms import Key, atoms_of, keys_of, nested_pairs
from registrations.matching.conditions import NO_TRIAL, Conditions, Trial
from registrations.matching.conjunctions import Atom, Conjunction, Couple, Gate, conjunction_of, end
from registrations.matching.gates import GateKey, gate_of, gates_of
from registrations.matching.matcher import Counters
from registrations.matching.spec import Spec

PARTNERS_FEW = 32  # so many are asked for one by one; the keys of more are intersected


class AccessMatcher:
    """Gates, and in which conjunction each number is.

    `counters.touched` counts conjunctions and couples looked at, `counters.rebuilds` the looks at
    all that hangs on a pair.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._tests = Conditions(hierarchy)
        self._gates: dict[GateKey, Gate] = {}
        self._places: dict[int, Conjunction] = {}

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        key = gate_of(spec)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = Gate(key)
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
            end(place)
            if place.tests:
                self._tests.forget(place.tests)
            if not place.gate.conjunctions:
                del self._gates[place.gate.key]

    def match(self, event: Event) -> list[int]:
        due: list[int] = []
        trial = Trial(self._tests, event) if self._tests.known else NO_TRIAL
        seen = Seen(event.attributes, {})
        for key in gates_of(event):
            if (gate := self._gates.get(key)) is not None:
                self._match_gate(gate, seen, trial, due)
        if trial is not NO_TRIAL:
            self.counters.evaluated += trial.evaluated
        return due

    def _match_gate(self, gate: Gate, seen: "Seen", trial: Trial, due: list[int]) -> None:
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
        if gate.anchored:
            for path in (*attributes, *(inside or ())):
                if path in gate.anchored:
                    touched += verify(gate.anchored[path], trial, due)
        self.counters.lookups += lookups
        self.counters.touched += touched

    def __len__(self) -> int:
        return len(self._places)

    def size(self) -> tuple[int, int, int]:
        """Gates, atoms and conjunctions in the structure (SUN-09)."""
        gates = self._gates.values()
        atoms = sum(len(values) for gate in gates for values in gate.names.values())
        return len(gates), atoms, sum(len(gate.conjunctions) for gate in gates)


class Seen(NamedTuple):
    """What all gates see of an event."""

    attributes: dict[str, Any]
    lists: dict[str, dict[Key, None]]  # by path the keys of lists, which may be long: made once


# --- the hot loops ---


def known_atoms(
    names: dict[str, dict[Key, Atom]], pairs: dict[str, Any], lists: dict[str, dict[Key, None]]
) -> set[Atom]:
    """The atoms among an event's pairs: one look-up by path and, if that is asked for, by value."""
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


def collect(present: set[Atom], trial: Trial, due: list[int]) -> int:
    """Add the registrations of every conjunction that holds; how many were looked at."""
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


def collect_couple(couple: Couple, present: set[Atom], trial: Trial, due: list[int]) -> int:
    """The same for two atoms that are there; how many were looked at beyond the two."""
    if (both := couple.both) is not None:
        due += both
    if (more := couple.more) is None:
        return 0
    holds = present.issuperset
    for conjunction in more:
        if holds(conjunction.rest) and (not conjunction.tests or trial.passes(conjunction.tests)):
            due += conjunction.ids
    return len(more)


def verify(listed: list[Conjunction], trial: Trial, due: list[int]) -> int:
    """The same for what has tests only."""
    for conjunction in listed:
        if trial.passes(conjunction.tests):
            due += conjunction.ids
    return len(listed)
