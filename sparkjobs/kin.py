"""Which declared types stand above an event's own, as the hub knows it (RDY-13). Plain."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from eventhub.event.envelope import Event, version_number


class Declared(NamedTuple):
    """A row of `tables.TYPES` of one zone. It can be hashed, so workers may keep what they make of
    it.
    """

    domain: str
    type: str
    versions: int
    lineage: tuple[str, ...]


def declared(row: Any) -> Declared:
    """Of Spark's row, or of a dict."""
    return Declared(row["domain"], row["type"], row["versions"], tuple(row["lineage"]))


class ZoneKin:
    """The kin of a zone's events as matchers ask for it; without declarations each type stands
    alone.
    """

    def __init__(self, types: Iterable[Declared]) -> None:
        self._types = {(one.domain, one.type): one for one in types}

    def __call__(self, event: Event) -> tuple[str, ...]:
        """The event's type and the declared ones above it, if the event was checked against it."""
        found = self._types.get((event.domain, event.type))
        if found is None or not 0 < version_number(event.version) <= found.versions:
            return (event.type,)
        return found.lineage
