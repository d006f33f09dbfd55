"""Which declared types stand above an event's own, as the hub knows it (RDY-13). Plain module."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow.dataset as ds

from eventhub.event.envelope import Event, version_number
from sparkjobs.segment_reader import read_rows
from sparkjobs.tables import TYPES


class DeclaredType(NamedTuple):
    """A row of `tables.TYPES` of one zone. It can be hashed, so workers may keep what they make of
    it.
    """

    domain: str
    type: str
    versions: int
    lineage: tuple[str, ...]
    declared_us: tuple[int, ...] = ()  # of each version; empty: always were


def declared_type(row: Any) -> DeclaredType:
    """Of Spark's row, or of a dict."""
    return DeclaredType(
        row["domain"],
        row["type"],
        row["versions"],
        tuple(row["lineage"]),
        tuple(row["declared_us"] or ()),
    )


class ZoneTypes:
    """The type hierarchy of a zone's events (a `TypeHierarchy` of the matchers). Without
    declarations no type has supertypes. One thread at a time.
    """

    def __init__(self, types: Iterable[DeclaredType]) -> None:
        self._types = {(one.domain, one.type): one for one in types}
        self._alone = False

    def __call__(self, event: Event) -> tuple[str, ...]:
        """Return the event's type, then its supertypes if the event was checked."""
        found = None if self._alone else self._found(event)
        return (event.type,) if found is None else found.lineage

    def declared_us(self, event: Event) -> int | None:
        """Return when the event's version was declared, None if its type has no supertypes. An
        older event has supertypes for a matcher that matched it after that.
        """
        found = self._found(event)
        if found is None or len(found.lineage) < 2 or not found.declared_us:
            return None
        return found.declared_us[version_number(event.version) - 1]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Drop supertypes within the block, as before a type was declared."""
        self._alone = True
        try:
            yield
        finally:
            self._alone = False

    def _found(self, event: Event) -> DeclaredType | None:
        found = self._types.get((event.domain, event.type))
        known = found is not None and 0 < version_number(event.version) <= found.versions
        return found if known else None


def types_of_zone(inputs: str, zone_id: int) -> ZoneTypes:
    """Of a zone's events; on `system` no types are declared."""
    types = read_rows(inputs, "types", TYPES, ds.field("zone_id") == zone_id)
    return ZoneTypes(map(declared_type, types))
