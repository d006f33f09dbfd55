"""Strategy `lattice`: where a signature is not in the event's fields, none that holds it is asked
for (OIF-27). Plain module.

Of the lattice of signatures, each keeps one link down, to one of its subsets. What is left is a
forest, laid flat: a signature stands before all that are above it, and knows where these end.
"""

from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.matching.matcher import Counters
from registrations.matching.scan import matches
from registrations.matching.signatures import Signatures, Signed
from registrations.matching.spec import Spec

Members = dict[int, Signed]  # of one signature, by number


class Stop(NamedTuple):
    """A signature on the path, and how far to go on if it is not in the event's fields."""

    bits: int
    members: Members
    beyond: int


class LatticeMatcher:
    """The path is laid anew when signatures came or went, before the next event:
    `counters.rebuilds`. `counters.compared` counts signatures.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self.hierarchy = hierarchy
        self._signatures = Signatures()
        self._members: dict[int, Members] = {}
        self._path: list[Stop] | None = []

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        signed = self._signatures.add(id, spec)
        if signed.bits not in self._members:
            self._members[signed.bits] = {}
            self._path = None
        self._members[signed.bits][id] = signed

    def remove(self, id: int) -> None:
        signed = self._signatures.remove(id)
        if signed is None:
            return
        del self._members[signed.bits][id]
        if not self._members[signed.bits]:
            del self._members[signed.bits]
            self._path = None

    def match(self, event: Event) -> list[int]:
        if self._path is None:
            self._path = laid_flat(self._members)
            self.counters.rebuilds += 1
        given = self._signatures.given(event.attributes)
        candidates, compared = walk(self._path, given)
        self.counters.compared += compared
        self.counters.touched += len(candidates)
        values = EventValues(event)
        return [each.id for each in candidates if matches(each.spec, values, self)]

    def __len__(self) -> int:
        return len(self._signatures.specs)


def walk(path: list[Stop], given: int) -> tuple[list[Signed], int]:
    """The specs whose signature is in the fields, and how many signatures were compared."""
    found: list[Signed] = []
    at = compared = 0
    while at < len(path):
        bits, members, beyond = path[at]
        compared += 1
        if bits & given == bits:
            found += members.values()
            at += 1
        else:
            at = beyond
    return found, compared


def laid_flat(members: dict[int, Members]) -> list[Stop]:
    """The path: each signature and what is above it in the forest, one after the other."""
    above = forest(members)
    order: list[int] = []
    sizes = dict.fromkeys(members, 1)
    waiting = above[None][::-1]
    while waiting:
        bits = waiting.pop()
        order.append(bits)
        waiting += above[bits][::-1]
    for bits in reversed(order):
        sizes[bits] += sum(sizes[each] for each in above[bits])
    return [Stop(bits, members[bits], at + sizes[bits]) for at, bits in enumerate(order)]


def forest(members: dict[int, Members]) -> dict[int | None, list[int]]:
    """What stands directly above each signature, and above none (None)."""
    above: dict[int | None, list[int]] = {None: []}
    for bits in sorted(members, key=int.bit_count):  # subsets come before what holds them
        below: int | None = None
        while (closer := _subset(above[below], bits)) is not None:
            below = closer
        above[below].append(bits)
        above[bits] = []
    return above


def _subset(signatures: list[int], bits: int) -> int | None:
    return next((each for each in signatures if each & bits == each), None)
