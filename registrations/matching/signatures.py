"""Signatures: the properties that a subscription requires of an event (OIF-24), as bit vectors, so
that one operation checks all of them. Plain module.

A property is an attribute, or the first step of a dotted path: `a.b` may be an attribute `a.b` or a
field of `a`.
"""

from typing import Any, NamedTuple

from registrations.filters.ast import And, Compare, Exists, Expression, In, Node, Or, Text, Within
from registrations.filters.paths import attributes_of
from registrations.matching.spec import Spec

NOTHING: frozenset[str] = frozenset()


def required_properties(node: Node) -> frozenset[str]:
    """Return the properties that a filter requires: of `or` those that all its parts require, of
    `not` none, so that no match is lost.
    """
    match node:
        case And(items):
            return NOTHING.union(*map(required_properties, items))
        case Or(items):
            required = [required_properties(item) for item in items]
            return required[0].intersection(*required) if required else NOTHING
        case Compare() | In() | Text() | Exists() | Expression():
            return frozenset(map(property_of, attributes_of(node)))
        case Within(path):
            return frozenset((property_of(path.name),))
        case _:
            return NOTHING


def signature_of(spec: Spec) -> frozenset[str]:
    """Return the signature S(s), by name."""
    pairs = frozenset(property_of(path) for path, _ in spec.pairs)
    return pairs.union(*map(required_properties, spec.tests))


def property_of(path: str) -> str:
    return path.partition(".")[0]


class Signed(NamedTuple):
    """A spec with its number and its signature."""

    id: int
    spec: Spec
    names: frozenset[str]
    bits: int

    def may_match(self, given: int) -> bool:
        """Return whether S(s) is a subset of F(e)."""
        return self.bits & given == self.bits


class Signatures:
    """The specs of a matcher with their signatures. A name has a bit while a signature has it."""

    def __init__(self) -> None:
        self.specs: dict[int, Signed] = {}
        self._bits: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._free: list[int] = []

    def add(self, id: int, spec: Spec) -> Signed:
        names = signature_of(spec)
        signed = Signed(id, spec, names, sum(map(self._use, names)))
        self.specs[id] = signed
        return signed

    def remove(self, id: int) -> Signed | None:
        """Remove a number and return its spec."""
        signed = self.specs.pop(id, None)
        for name in signed.names if signed else ():
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                self._free.append(self._bits.pop(name))
        if not self._bits:
            self._free.clear()
        return signed

    def given(self, attributes: dict[str, Any]) -> int:
        """Return F(e), without properties that no signature has."""
        found, bit_of = 0, self._bits.get
        for name in attributes:
            found |= bit_of(property_of(name), 0)
        return found

    def _use(self, name: str) -> int:
        if name not in self._bits:
            self._bits[name] = self._free.pop() if self._free else 1 << len(self._bits)
        self._users[name] = self._users.get(name, 0) + 1
        return self._bits[name]
