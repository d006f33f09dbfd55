"""The inverse of a matcher: events by their atoms, for many filters that are applied to the same
stored events, one after the other. Plain module.

A look-up narrows which events a filter has to be evaluated for, and never decides.
"""

from collections.abc import Iterable
from typing import Any

from eventhub.event.envelope import Event
from eventhub.event.filterable import is_in_data
from registrations.matching.atoms import Pair, atoms_of, keys_of
from registrations.matching.spec import Spec

_DOMAIN, _TYPE = 0, 1  # in place of a path: no attribute has such a name

PostingKey = tuple[str | int, Any]
SpecKeys = tuple[PostingKey, ...]  # an event that matches the spec has all of them


def keys_of_specs(specs: Iterable[Spec]) -> list[SpecKeys] | None:
    """Return the keys of each spec; None if one has none, so that every event may match."""
    found = [_keys(spec) for spec in specs]
    return found if all(found) else None


def _keys(spec: Spec) -> SpecKeys:
    """Return the keys of a spec. Paths into objects and the body are left out: they need a walk."""
    atoms: list[Pair] = [
        atom for atom in atoms_of(spec) if "." not in atom[0] and not is_in_data(atom[0])
    ]
    gate = [(_DOMAIN, spec.domain), (_TYPE, spec.type)]
    return (*atoms, *((name, value) for name, value in gate if value is not None))


class Postings:
    """The positions of some events, by the hash of a key: where two have the same, more events are
    candidates.
    """

    def __init__(self) -> None:
        self.count = 0  # of the events
        self._found: dict[int, int | list[int]] = {}  # many keys have a single event

    def add(self, event: Event) -> None:
        """Add an event, at the position after the others."""
        at = self.count
        self.count += 1
        self._add((_DOMAIN, event.domain), at)
        self._add((_TYPE, event.type), at)
        for name, value in event.attributes.items():
            for key in keys_of(value):
                self._add((name, key), at)

    def candidates(self, specs: Iterable[SpecKeys]) -> list[int]:
        """Return the positions of the events that may match one of the specs, ascending."""
        found: set[int] = set()
        for keys in specs:
            least: list[int] | None = None
            for key in keys:
                listed = self._found.get(hash(key))
                if listed is None:
                    break
                if isinstance(listed, int):
                    least = [listed]
                elif least is None or len(listed) < len(least):
                    least = listed
            else:
                found.update(least or ())
        return sorted(found)

    def _add(self, key: PostingKey, at: int) -> None:
        hashed = hash(key)
        known = self._found.setdefault(hashed, at)
        if isinstance(known, list):
            known.append(at)
        elif known != at:
            self._found[hashed] = [known, at]
