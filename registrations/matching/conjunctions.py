"""The atoms of strategy `access` and the conjunctions linked to them. Plain module."""

from operator import attrgetter

from registrations.matching.atoms import Key, Pair, prefixes_of
from registrations.matching.conditions import Condition, anchor_of, type_of
from registrations.matching.gates import GateKey

REVIEW_MIN = 16  # conjunctions on one atom; below it a review costs more than it saves


class Atom:
    """A pair in conjunctions of one gate."""

    __slots__ = (
        *("alone", "frequency", "number", "partners", "path", "posted", "review_at", "value"),
    )

    def __init__(self, number: int, path: str, value: Key) -> None:
        self.number = number  # sorts the atoms of a conjunction, so that equal sets are found
        self.path = path
        self.value = value
        self.frequency = 0  # conjunctions that have it
        self.alone: list[int] | None = None  # registrations with this atom only
        # by the second rarest atom of a conjunction; by itself if this is the only one, with tests
        self.partners: dict[Atom, AtomPair] | None = None
        self.posted = 0  # conjunctions under its partners
        self.review_at = REVIEW_MIN


class AtomPair:
    """The conjunctions linked to two atoms."""

    __slots__ = ("both", "more")

    def __init__(self) -> None:
        self.both: list[int] | None = None  # registrations with these two atoms only
        self.more: list[Conjunction] | None = None  # with more atoms or tests to verify


class Conjunction:
    """A set of atoms and tests, and the registrations with exactly these, ascending."""

    __slots__ = ("access", "at", "atoms", "gate", "ids", "listed", "partner", "rest", "tests")

    def __init__(
        self, gate: "GateConjunctions", atoms: tuple[Atom, ...], tests: tuple[Condition, ...]
    ) -> None:
        self.gate = gate
        self.atoms = atoms  # ascending by number
        self.tests = tests  # ascending by number
        self.ids: list[int] = []
        self.access: Atom | None = None  # the rarest atom, to which it is linked ...
        self.partner: Atom | None = None  # ... under the second rarest ...
        self.rest: tuple[Atom, ...] = ()  # ... and the atoms to verify
        self.listed: list[Conjunction] | None = None  # the list of conjunctions that it is in ...
        self.at = 0  # ... and its index there


class GateConjunctions:
    """The conjunctions of one domain, one type and one application (None: any)."""

    __slots__ = (
        *("anchored", "atoms_made", "conjunctions", "everything", "key", "loose", "names"),
        *("prefixes", "typed"),
    )

    def __init__(self, key: GateKey) -> None:
        self.key = key
        self.names: dict[str, dict[Key, Atom]] = {}
        self.conjunctions: dict[Parts, Conjunction] = {}
        self.everything: list[int] | None = None  # registrations with the gate only (SUN-05)
        # without atoms, by a type that the event or one of its supertypes must have ...
        self.typed: dict[str, list[Conjunction]] = {}
        self.anchored: dict[str, list[Conjunction]] = {}  # ... by a required attribute ...
        self.loose: list[Conjunction] = []  # ... and those that require none
        self.prefixes: dict[str, int] = {}  # objects to open in events, and the number of paths
        self.atoms_made = 0


Parts = tuple[Atom | Condition, ...]  # the atoms, then the tests, each ascending by number


def conjunction_of(
    gate: GateConjunctions, pairs: tuple[Pair, ...], tests: tuple[Condition, ...]
) -> tuple[Conjunction, int]:
    """Return the conjunction of these pairs and tests, created and linked if there is none, and the
    number of atoms that were reviewed because of it.
    """
    atoms = _in_order([_atom(gate, path, value) for path, value in pairs])
    key = atoms + tests
    found = gate.conjunctions.get(key)
    if found is not None:
        return found, 0
    made = gate.conjunctions[key] = Conjunction(gate, atoms, tests)
    for atom in atoms:
        atom.frequency += 1
    link(made)
    return made, review_if_due(gate, made.access)


def remove_conjunction(gone: Conjunction) -> None:
    """Remove a conjunction, and the atoms that only it had."""
    unlink(gone)
    del gone.gate.conjunctions[gone.atoms + gone.tests]
    for atom in gone.atoms:
        atom.frequency -= 1
        if not atom.frequency:
            _forget(gone.gate, atom)


def link(conjunction: Conjunction) -> None:
    """Link a conjunction to its rarest atom, under the second rarest."""
    if not conjunction.atoms:
        if conjunction.tests:
            _anchor(conjunction)
        else:
            conjunction.gate.everything = conjunction.ids
        return
    access, *others = sorted(conjunction.atoms, key=attrgetter("frequency"))
    conjunction.access = access
    if not others and not conjunction.tests:
        access.alone = conjunction.ids
        return
    partner = conjunction.partner = others[0] if others else access
    if access.partners is None:
        access.partners = {}
    couple = access.partners.get(partner)
    if couple is None:
        couple = access.partners[partner] = AtomPair()
    access.posted += 1
    conjunction.rest = tuple(others[1:])
    if not conjunction.rest and not conjunction.tests:
        couple.both = conjunction.ids
        return
    couple.more = couple.more or []
    _list(conjunction, couple.more)


def unlink(conjunction: Conjunction) -> None:
    """Remove the links of a conjunction, in constant time."""
    _unlist(conjunction)
    access, partner = conjunction.access, conjunction.partner
    if access is None:
        if not conjunction.tests:
            conjunction.gate.everything = None
        _unanchor(conjunction)
        return
    if partner is None or access.partners is None:
        access.alone = None
        return
    access.posted -= 1
    couple = access.partners[partner]
    if not conjunction.rest and not conjunction.tests:
        couple.both = None
    couple.more = couple.more or None
    if couple.both is None and couple.more is None:
        del access.partners[partner]
        access.partners = access.partners or None


def review_if_due(gate: GateConjunctions, atom: Atom | None) -> int:
    """Link the conjunctions of an atom again if they doubled since the last review; return 1 if so,
    else 0.
    """
    if atom is None or atom.partners is None or atom.posted < atom.review_at:
        return 0
    posted = [each for couple in atom.partners.values() for each in couple.more or ()]
    couples = [partner for partner, couple in atom.partners.items() if couple.both is not None]
    posted += [gate.conjunctions[_in_order([atom, partner])] for partner in couples]
    for conjunction in posted:
        unlink(conjunction)
        link(conjunction)
    atom.review_at = max(REVIEW_MIN, 2 * atom.posted)
    return 1


def _atom(gate: GateConjunctions, path: str, value: Key) -> Atom:
    """Return the atom of a pair; create it if there is none."""
    values = gate.names.get(path)
    if values is None:
        values = gate.names[path] = {}
        _enter_path(gate, path)
    atom = values.get(value)
    if atom is None:
        gate.atoms_made += 1
        atom = values[value] = Atom(gate.atoms_made, path, value)
    return atom


def _forget(gate: GateConjunctions, atom: Atom) -> None:
    values = gate.names[atom.path]
    del values[atom.value]
    if values:
        return
    del gate.names[atom.path]
    _leave_path(gate, atom.path)


def _anchor(conjunction: Conjunction) -> None:
    gate, nodes = conjunction.gate, [test.node for test in conjunction.tests]
    type = type_of(nodes)
    anchor = anchor_of(nodes) if type is None else None
    if type is not None:
        _list(conjunction, gate.typed.setdefault(type, []))
    elif anchor is None:
        _list(conjunction, gate.loose)
    else:
        if anchor not in gate.anchored:
            gate.anchored[anchor] = []
            _enter_path(gate, anchor)
        _list(conjunction, gate.anchored[anchor])


def _unanchor(conjunction: Conjunction) -> None:
    """Remove the list that a conjunction without atoms has left, if it is empty."""
    gate, nodes = conjunction.gate, [test.node for test in conjunction.tests]
    type = type_of(nodes)
    anchor = anchor_of(nodes) if type is None else None
    if type is not None and not gate.typed[type]:
        del gate.typed[type]
    if anchor is not None and not gate.anchored[anchor]:
        del gate.anchored[anchor]
        _leave_path(gate, anchor)


def _list(conjunction: Conjunction, others: list[Conjunction]) -> None:
    conjunction.listed, conjunction.at = others, len(others)
    others.append(conjunction)


def _unlist(conjunction: Conjunction) -> None:
    if conjunction.listed is None:
        return
    last = conjunction.listed.pop()
    if last is not conjunction:
        conjunction.listed[conjunction.at] = last
        last.at = conjunction.at
    conjunction.listed = None


def _enter_path(gate: GateConjunctions, path: str) -> None:
    for prefix in prefixes_of(path):
        gate.prefixes[prefix] = gate.prefixes.get(prefix, 0) + 1


def _leave_path(gate: GateConjunctions, path: str) -> None:
    for prefix in prefixes_of(path):
        gate.prefixes[prefix] -= 1
        if not gate.prefixes[prefix]:
            del gate.prefixes[prefix]


def _in_order(atoms: list[Atom]) -> tuple[Atom, ...]:
    return tuple(sorted(atoms, key=attrgetter("number")))
