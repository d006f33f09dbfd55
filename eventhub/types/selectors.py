"""Reads of definitions. What lies in another zone is not found."""

from typing import NamedTuple

from eventhub.access.system import raw_connection
from eventhub.event.inbound import EventIn
from eventhub.types import rows
from eventhub.types.book import ZoneTypes
from eventhub.types.definitions import Checker, Definition, schemas_of
from eventhub.types.errors import UnknownType
from eventhub.types.rows import Declared
from eventhub.types.schemas import immutable


class Shown(NamedTuple):
    """A version, with what is known of the type as a whole."""

    declared: Declared
    latest: int  # version of the type
    immutable: list[str]  # dotted paths, also those of the parents

    @property
    def definition(self) -> Definition:
        return self.declared.definition

    @property
    def declared_at_us(self) -> int:
        return self.declared.declared_at_us


def list_types(*, zone_id: int, after: int, count: int) -> list[Declared]:
    """The newest version of each type, in the order of their first declaration."""
    return rows.newest(raw_connection(), zone_id, after, count)


def find_type(*, zone_id: int, domain: str, type: str, version: int | None) -> Shown:
    """A version of a type, None: the newest. Raises UnknownType."""
    found = rows.versions(raw_connection(), zone_id, domain, type)
    number = len(found) if version is None else version
    if not 1 <= number <= len(found):
        raise UnknownType(field="version" if found else "type")
    return show(zone_id, found[number - 1], len(found))


def checker(*, zone_id: int, event: EventIn, undeclared: str) -> Checker | None:
    """What the event must satisfy, as the emit door asks it of its book. Raises TypeViolation,
    UndeclaredType.
    """
    known = lineage_of(zone_id=zone_id, domain=event.domain, type=event.type)
    return known.checker(event, undeclared=undeclared)


def lineage_of(*, zone_id: int, domain: str, type: str) -> ZoneTypes:
    """What is declared of a type and of those above it; nothing if it is not declared."""
    connection = raw_connection()
    names = rows.lineage(connection, zone_id, domain, type)
    return ZoneTypes(
        [
            one.definition
            for name in names
            for one in rows.versions(connection, zone_id, domain, name)
        ]
    )


def show(zone_id: int, declared: Declared, latest: int) -> Shown:
    definitions = [declared.definition, *_parents(zone_id, declared.definition)]
    paths = {path for one in definitions for path in immutable(schemas_of(one).attributes)}
    return Shown(declared, latest, sorted(paths))


def _parents(zone_id: int, definition: Definition) -> list[Definition]:
    """The newest version of each, the nearest first."""
    if definition.parent is None:
        return []
    connection = raw_connection()
    names = rows.lineage(connection, zone_id, definition.domain, definition.parent)
    found = [rows.versions(connection, zone_id, definition.domain, name)[-1] for name in names]
    return [one.definition for one in found]
