"""The declared supertypes of event types (RDY-13), from an input table. Plain module."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from eventhub.event.envelope import Event, version_number
from sparkjobs.arrow_dataset import ds
from sparkjobs.segment_files import read_rows
from sparkjobs.tables import TYPES


class DeclaredType(NamedTuple):
    """A row of `tables.TYPES`, of one zone; hashable, so that workers can cache by it."""

    domain: str
    type: str
    versions: int
    lineage: tuple[str, ...]
    declared_us: tuple[int, ...] = ()  # of each version; empty: declared before all events


def declared_type(row: Any) -> DeclaredType:
    """Build a declared type from a Spark row or a dict."""
    return DeclaredType(
        row["domain"],
        row["type"],
        row["versions"],
        tuple(row["lineage"]),
        tuple(row["declared_us"] or ()),
    )


class ExportedHierarchy:
    """The type hierarchy of a zone, as matchers use it. An undeclared type has no supertypes. One
    thread at a time.
    """

    def __init__(self, types: Iterable[DeclaredType]) -> None:
        self._types = {(each.domain, each.type): each for each in types}
        self._is_undeclared = False

    def __call__(self, event: Event) -> tuple[str, ...]:
        """Return the event's type and its supertypes, if the event was validated against it."""
        declared = None if self._is_undeclared else self._declared(event)
        return (event.type,) if declared is None else declared.lineage

    def declared_us(self, event: Event) -> int | None:
        """Return when the event's version was declared; None if its type has no supertypes. An
        event that is older has supertypes only for matchers that evaluated it after that time.
        """
        declared = self._declared(event)
        if declared is None or len(declared.lineage) < 2 or not declared.declared_us:
            return None
        return declared.declared_us[version_number(event.version) - 1]

    @contextmanager
    def undeclared(self) -> Iterator[None]:
        """Ignore all supertypes in the block, as before the types were declared."""
        self._is_undeclared = True
        try:
            yield
        finally:
            self._is_undeclared = False

    def _declared(self, event: Event) -> DeclaredType | None:
        declared = self._types.get((event.domain, event.type))
        if declared is None or not 0 < version_number(event.version) <= declared.versions:
            return None
        return declared


def types_of_zone(inputs: str, zone_id: int) -> ExportedHierarchy:
    """Read the types of a zone; the stream `system` has none."""
    types = read_rows(inputs, "types", TYPES, ds.field("zone_id") == zone_id)
    return ExportedHierarchy(map(declared_type, types))
