"""Strategy `access`, the default: identical conjunctions are stored once, and each is reached
through its rarest pair only. Plain.

An event's pairs are looked up once; each that is known leads to the conjunctions of which it is
the rarest pair, and only these are verified against the event's other pairs. A popular pair leads
to few: what asks for it nearly always asks for a rarer one as well. The registrations of a
conjunction stand together, so a match is one `extend`, however many they are.

Rarest means: in the fewest conjunctions of the same domain and type, when the conjunction came.
Frequencies move on, so when twice as many conjunctions hang on a pair as after the last look, all
of these are looked at again and go to what is their rarest pair by now; that is at most a constant
of work per registration added. Nothing else is ever made anew: a registration comes and goes in
place.
"""

from bisect import bisect_left, insort
from typing import Any

from eventhub.event.envelope import Event
from registrations.match.atoms import Key, atoms_of, canonical, nested_pairs, prefixes_of
from registrations.match.matcher import Counters
from registrations.match.spec import Spec

REVIEW_MIN = 16  # conjunctions on one pair; below it a look costs more than it saves


class Atom:
    """A pair that registrations of one gate ask for."""

    __slots__ = ("alone", "frequency", "number", "path", "postings", "review_at", "value")

    def __init__(self, number: int, path: str, value: Key) -> None:
        self.number = number  # orders the atoms of a conjunction, so that equal ones are found
        self.path = path
        self.value = value
        self.frequency = 0  # conjunctions that have it
        self.alone: Conjunction | None = None  # the one that has nothing else
        self.postings: dict[Rest, Conjunction] = {}  # whose rarest pair it is, by their others
        self.review_at = REVIEW_MIN


Rest = tuple[Atom, ...]  # ascending by number


class Conjunction:
    """A set of pairs, and the registrations that ask for exactly these, ascending."""

    __slots__ = ("access", "gate", "ids", "rest")

    def __init__(self, gate: "Gate", access: Atom | None, rest: Rest) -> None:
        self.gate = gate
        self.access = access  # None: it has no pairs
        self.rest = rest
        self.ids: list[int] = []


class Gate:
    """What registrations of one domain and one type (None: any) ask for."""

    __slots__ = ("atoms_made", "domain", "everything", "names", "prefixes", "type")

    def __init__(self, domain: str | None, type: str | None) -> None:
        self.domain = domain
        self.type = type
        self.everything: Conjunction | None = None  # no pairs (SUN-05)
        self.names: dict[str, dict[Key, Atom]] = {}
        self.prefixes: dict[str, int] = {}  # objects to open in events, and how many paths go there
        self.atoms_made = 0


class AccessMatcher:
    """Gates by domain and type, and where each number is.

    `counters.touched` counts conjunctions; `counters.rebuilds` the looks at all conjunctions of
    one pair.
    """

    def __init__(self) -> None:
        self.counters = Counters()
        self._gates: dict[str | None, dict[str | None, Gate]] = {}
        self._places: dict[int, Conjunction] = {}

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        gate = self._gate(spec.domain, spec.type)
        atoms = sorted((_atom(gate, path, value) for path, value in atoms_of(spec)), key=_number_of)
        found = find(gate, atoms)
        if found is None:
            found = post(gate, atoms)
            self.counters.rebuilds += review_if_due(found.access)
        if not found.ids or id > found.ids[-1]:
            found.ids.append(id)
        else:
            insort(found.ids, id)
        self._places[id] = found

    def remove(self, id: int) -> None:
        place = self._places.pop(id, None)
        if place is None:
            return
        del place.ids[bisect_left(place.ids, id)]
        if not place.ids:
            unpost(place)
            self._drop_if_empty(place.gate)

    def match(self, event: Event) -> list[int]:
        due: list[int] = []
        for types in (self._gates.get(event.domain), self._gates.get(None)):
            if types is None:
                continue
            for gate in (types.get(event.type), types.get(None)):
                if gate is not None:
                    self._match_gate(gate, event.attributes, due)
        return due

    def _match_gate(self, gate: Gate, attributes: dict[str, Any], due: list[int]) -> None:
        if gate.everything is not None:
            due += gate.everything.ids
        present = known_atoms(gate.names, attributes)
        self.counters.lookups += len(attributes)
        if gate.prefixes:
            inside = dict(nested_pairs(attributes, gate.prefixes))
            present |= known_atoms(gate.names, inside)
            self.counters.lookups += len(inside)
        self.counters.touched += collect(present, due)

    def __len__(self) -> int:
        return len(self._places)

    def size(self) -> tuple[int, int, int]:
        """Gates, atoms and conjunctions in the structure (SUN-09)."""
        gates = [gate for types in self._gates.values() for gate in types.values()]
        atoms = [
            atom for gate in gates for values in gate.names.values() for atom in values.values()
        ]
        conjunctions = sum(len(atom.postings) + (atom.alone is not None) for atom in atoms)
        conjunctions += sum(gate.everything is not None for gate in gates)
        return len(gates), len(atoms), conjunctions

    def _gate(self, domain: str | None, type: str | None) -> Gate:
        types = self._gates.setdefault(domain, {})
        gate = types.get(type)
        if gate is None:
            gate = types[type] = Gate(domain, type)
        return gate

    def _drop_if_empty(self, gate: Gate) -> None:
        if gate.names or gate.everything is not None:
            return
        types = self._gates[gate.domain]
        del types[gate.type]
        if not types:
            del self._gates[gate.domain]


# --- the hot loops ---


def known_atoms(names: dict[str, dict[Key, Atom]], pairs: dict[str, Any]) -> set[Atom]:
    """The atoms among an event's pairs: one look-up by path and, if that is asked for, by value."""
    present = set()
    for path, value in pairs.items():
        values = names.get(path)
        if values is not None:
            if value.__class__ is not str:
                value = canonical(value)
            atom = values.get(value)
            if atom is not None:
                present.add(atom)
    return present


def collect(present: set[Atom], due: list[int]) -> int:
    """Add the registrations of every conjunction that holds; how many were touched."""
    touched = 0
    holds = present.issuperset
    for atom in present:
        alone = atom.alone
        if alone is not None:
            due += alone.ids
            touched += 1
        postings = atom.postings
        if postings:
            touched += len(postings)
            for rest in filter(holds, postings):
                due += postings[rest].ids
    return touched


# --- changes ---


def find(gate: Gate, atoms: list[Atom]) -> Conjunction | None:
    """The conjunction of exactly these atoms, under whichever of them it is."""
    if not atoms:
        return gate.everything
    if len(atoms) == 1:
        return atoms[0].alone
    for at, atom in enumerate(atoms):
        found = atom.postings.get((*atoms[:at], *atoms[at + 1 :])) if atom.postings else None
        if found is not None:
            return found
    return None


def post(gate: Gate, atoms: list[Atom]) -> Conjunction:
    """A new conjunction, under its rarest atom."""
    for atom in atoms:
        atom.frequency += 1
    if not atoms:
        gate.everything = Conjunction(gate, None, ())
        return gate.everything
    access = min(atoms, key=_frequency_of)
    made = Conjunction(gate, access, tuple(atom for atom in atoms if atom is not access))
    _put(made, access)
    return made


def unpost(gone: Conjunction) -> None:
    """Take a conjunction out, and the atoms that only it had."""
    access = gone.access
    if access is None:
        gone.gate.everything = None
        return
    if gone.rest:
        del access.postings[gone.rest]
    else:
        access.alone = None
    for atom in (access, *gone.rest):
        atom.frequency -= 1
        if not atom.frequency:
            _forget(gone.gate, atom)


def review_if_due(access: Atom | None) -> int:
    """Look at all conjunctions under an atom if they doubled since the last look; 1 if so."""
    if access is None or len(access.postings) < access.review_at:
        return 0
    for posted in list(access.postings.values()):
        rarest = min(posted.rest, key=_frequency_of)
        if rarest.frequency < access.frequency:
            del access.postings[posted.rest]
            others = (access, *(atom for atom in posted.rest if atom is not rarest))
            posted.rest = tuple(sorted(others, key=_number_of))
            posted.access = rarest
            _put(posted, rarest)
    access.review_at = max(REVIEW_MIN, 2 * len(access.postings))
    return 1


def _put(conjunction: Conjunction, access: Atom) -> None:
    if conjunction.rest:
        access.postings[conjunction.rest] = conjunction
    else:
        access.alone = conjunction


def _atom(gate: Gate, path: str, value: Key) -> Atom:
    """The atom of a pair, made if this is the first to ask for it."""
    values = gate.names.get(path)
    if values is None:
        values = gate.names[path] = {}
        for prefix in prefixes_of(path):
            gate.prefixes[prefix] = gate.prefixes.get(prefix, 0) + 1
    atom = values.get(value)
    if atom is None:
        gate.atoms_made += 1
        atom = values[value] = Atom(gate.atoms_made, path, value)
    return atom


def _forget(gate: Gate, atom: Atom) -> None:
    values = gate.names[atom.path]
    del values[atom.value]
    if values:
        return
    del gate.names[atom.path]
    for prefix in prefixes_of(atom.path):
        gate.prefixes[prefix] -= 1
        if not gate.prefixes[prefix]:
            del gate.prefixes[prefix]


def _number_of(atom: Atom) -> int:
    return atom.number


def _frequency_of(atom: Atom) -> int:
    return atom.frequency
