"""Reads of definitions. Types of another zone are not found. Django module."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from psycopg.rows import namedtuple_row

from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.types.definitions import Definition, immutable_paths, schemas_of
from eventhub.types.errors import UnknownType
from eventhub.types.models import EventType
from eventhub.types.registry import SQL, ZoneTypes


def list_types(after: tuple[Any, ...] | None, count: int, *, zone_id: int) -> list[Any]:
    """Return the newest version of each type, in the order of their first declarations. Each has
    the id of its first version, the cursor of the list.
    """
    rows = raw_connection().cursor(row_factory=namedtuple_row)
    return rows.execute(SQL["newest"], (zone_id, *(after or (0,)), count)).fetchall()


def versions_of(*, zone_id: int, domain: str, type: str) -> QuerySet[EventType]:
    """Select all versions of a type, in ascending order."""
    found = EventType.objects.filter(zone=zone_id, domain=domain, type=type)
    return found.order_by("version")


def find_type(*, zone_id: int, domain: str, type: str, version: int | None) -> EventType:
    """Return a version of a type; None: the newest. Raises UnknownType."""
    versions = [*versions_of(zone_id=zone_id, domain=domain, type=type)]
    if version is None and versions and versions[-1].deleted:
        raise UnknownType("The type is deleted; its versions remain readable.", field="type")
    return described(versions, version)


def described(versions: Sequence[EventType], version: int | None = None) -> EventType:
    """Return one of a type's versions with its derived fields: the `latest` version, and the dotted
    paths that are `immutable` here or in a parent. Raises UnknownType.
    """
    number = len(versions) if version is None else version
    if not 1 <= number <= len(versions):
        raise UnknownType(field="version" if versions else "type")
    one = versions[number - 1]
    parents = lineage(zone_id=one.zone_id, domain=one.domain, type=one.parent)
    one.latest = len(versions)
    one.immutable = immutable_paths(schemas_of(definition_of(each)) for each in (one, *parents))
    return one


def lineage(*, zone_id: int, domain: str, type: str | None) -> list[EventType]:
    """Return the newest version of the type and of its parents, nearest first; empty if the type is
    not declared.
    """
    found: list[EventType] = []
    while type is not None and len(found) <= limits.TYPE_PARENTS_MAX:
        newest = versions_of(zone_id=zone_id, domain=domain, type=type).last()
        if newest is None:
            break
        found.append(newest)
        type = newest.parent
    return found


def subtypes(of: EventType) -> QuerySet[EventType]:
    """Select all versions of the type's subtypes, direct and indirect."""
    of_domain = EventType.objects.filter(zone=of.zone_id, domain=of.domain)
    found: set[str] = set()
    level = {of.type}
    while level:
        level = {*of_domain.filter(parent__in=level).values_list("type", flat=True)} - found
        found |= level
    return of_domain.filter(type__in=found)


def lineage_of(*, zone_id: int, domain: str, type: str) -> ZoneTypes:
    """Return the definitions of a type and its supertypes; empty if it is not declared."""
    names = [one.type for one in lineage(zone_id=zone_id, domain=domain, type=type)]
    found = EventType.objects.filter(zone=zone_id, domain=domain, type__in=names)
    return ZoneTypes([definition_of(one) for one in found.order_by("version")])


def definition_of(one: EventType) -> Definition:
    return Definition(*(getattr(one, name) for name in Definition._fields))
