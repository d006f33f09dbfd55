"""Strategy `lattice`: if a signature is not a subset of the event's fields, its supersets are
skipped (OIF-27). Plain module.

In the lattice of signatures each has one link, to one of its subsets. These links form a forest,
stored flat: a signature precedes its descendants and has the index of their end.
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


class PathEntry(NamedTuple):
    """A signature on the path, and the index to continue at if the event's fields lack it."""

    bits: int
    members: Members
    beyond: int


class LatticeMatcher:
    """A forest of signatures. If signatures were added or removed, the path is rebuilt before the
    next event: `counters.rebuilds`. `counters.compared` counts signatures.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self.hierarchy = hierarchy
        self._signatures = Signatures()
        self._members: dict[int, Members] = {}
        self._path: list[PathEntry] | None = []

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
            self._path = flattened(self._members)
            self.counters.rebuilds += 1
        given = self._signatures.given(event.attributes)
        candidates, compared = walk(self._path, given)
        self.counters.compared += compared
        self.counters.touched += len(candidates)
        values = EventValues(event)
        return [each.id for each in candidates if matches(each.spec, values, self)]

    def __len__(self) -> int:
        return len(self._signatures.specs)


def walk(path: list[PathEntry], given: int) -> tuple[list[Signed], int]:
    """Return the specs whose signature is in the fields, and the number of compared signatures."""
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


def flattened(members: dict[int, Members]) -> list[PathEntry]:
    """Return the path: each signature, followed by its descendants in the forest."""
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
    return [PathEntry(bits, members[bits], at + sizes[bits]) for at, bits in enumerate(order)]


def forest(members: dict[int, Members]) -> dict[int | None, list[int]]:
    """Return the children of each signature, and the roots (None)."""
    above: dict[int | None, list[int]] = {None: []}
    for bits in sorted(members, key=int.bit_count):  # subsets come before their supersets
        below: int | None = None
        while (closer := _subset(above[below], bits)) is not None:
            below = closer
        above[below].append(bits)
        above[bits] = []
    return above


def _subset(signatures: list[int], bits: int) -> int | None:
    return next((each for each in signatures if each & bits == each), None)
