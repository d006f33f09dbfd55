"""Declares types; each new version is announced in its own transaction."""

from typing import Any, NamedTuple

import orjson
from django.db import transaction

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.services import lock_zone
from eventhub.access.system import announce, raw_connection
from eventhub.errors import LimitReached, NumberOutOfRange
from eventhub.eventlog.changes import Resource
from eventhub.types import rows
from eventhub.types.definitions import Definition, read_schemas, schemas_of
from eventhub.types.errors import IncompatibleType, InvalidSchema, UnknownType
from eventhub.types.evolution import breaks
from eventhub.types.paths import encoded
from eventhub.types.rows import Connection, Declared
from eventhub.types.spoken import Spoken


class Declaration(NamedTuple):
    """What is declared of a type."""

    domain: str
    type: str
    schema: Any
    header: Any = None
    parent: str | None = None
    evolution: str = "backward"


def resource_of(zone_id: int, domain: str, type: str) -> Resource:
    """The type, for conditions on changes."""
    return Resource("type", zone_id, f"{encoded(domain)}/{encoded(type)}")


def declare(*, actor: Actor, given: Declaration, since: int | None) -> tuple[list[Declared], bool]:
    """All versions of the type, and whether the last is new: the same again changes nothing.

    Raises InvalidSchema, IncompatibleType with `breaks`, UnknownType for the parent, LimitReached,
    Changed if the type was declared anew after the sequence `since` of `system`.
    """
    read_schemas(given.schema, given.header)
    connection = raw_connection()
    with transaction.atomic():
        lock_zone(zone_id=actor.zone_id)
        found = rows.versions(connection, actor.zone_id, given.domain, given.type)
        resource = resource_of(actor.zone_id, given.domain, given.type)
        require_unchanged(resource, since, there=bool(found), version=len(found))
        wanted = _definition(given, len(found) + 1)
        if found and found[-1].definition == wanted._replace(version=len(found)):
            return found, False
        if rows.count(connection, actor.zone_id) >= limits.TYPE_VERSIONS_PER_ZONE_MAX:
            raise LimitReached(limit=limits.TYPE_VERSIONS_PER_ZONE_MAX)
        _check_parent(connection, actor.zone_id, wanted)
        if found:
            related = _related(connection, actor.zone_id, found[-1].definition)
            _check_evolution(found[-1].definition, wanted, related)
        made = rows.insert(connection, actor.zone_id, wanted)
        told = {"domain": wanted.domain, "type": wanted.type, "version": str(wanted.version)}
        announce(zone=actor.zone, type="type.declared", attributes=told, resource=resource)
    return [*found, made], True


def _definition(given: Declaration, version: int) -> Definition:
    header = None if given.header is None else _text(given.header, "header")
    schema = _text(given.schema, "schema")
    return Definition(
        given.domain, given.type, version, given.parent, given.evolution, schema, header
    )


def _text(schema: Any, field: str) -> str:
    """The schema as canonical JSON, so that the order of names makes no new version."""
    try:
        text = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        raise NumberOutOfRange(field=field) from None
    if len(text) > limits.TYPE_SCHEMA_BYTES_MAX:
        message = f"A schema has {limits.TYPE_SCHEMA_BYTES_MAX} bytes at most."
        raise InvalidSchema(message, field=field)
    return text.decode()


def _check_parent(connection: Connection, zone_id: int, wanted: Definition) -> None:
    if wanted.parent is None:
        return
    above = rows.lineage(connection, zone_id, wanted.domain, wanted.parent)
    if not above:
        raise UnknownType("The parent is declared first.", field="parent")
    if wanted.type in above:
        raise InvalidSchema("A type is not its own parent.", field="parent")
    if len(above) > limits.TYPE_PARENTS_MAX:
        message = f"A type has {limits.TYPE_PARENTS_MAX} parents above it at most."
        raise InvalidSchema(message, field="parent")


def _related(connection: Connection, zone_id: int, of: Definition) -> list[Definition]:
    """What else is asked of the same events: by the parents, and by the subtypes of all times."""
    above = rows.lineage(connection, zone_id, of.domain, of.type)[1:]
    parents = [rows.versions(connection, zone_id, of.domain, name)[-1] for name in above]
    below = rows.subtypes(connection, zone_id, of.domain, of.type)
    return [*(one.definition for one in parents), *below]


def _check_evolution(old: Definition, new: Definition, related: list[Definition]) -> None:
    """`evolution` of the new version says what it wants to be. The parent stays in any case:
    interest in it is interest in this type's events, whenever they are matched (RDY-13).
    """
    if new.parent != old.parent:
        told = f"parent: was {old.parent or 'none'}"
        message = f"The parent of a type stays in all its versions; {told}."
        raise IncompatibleType(message, field="parent", breaks=[told])
    if new.evolution == "none":
        return
    found = []
    before, after = schemas_of(old), schemas_of(new)
    spoken = Spoken([before.attributes, *(schemas_of(one).attributes for one in related)])
    found += breaks(before.attributes, after.attributes, "attributes", spoken)
    if after.header is not None:
        found += breaks(before.header or {}, after.header, "header", Spoken([], all=True))
    if found:
        message = "Events of the version before would not satisfy this one: " + "; ".join(found)
        raise IncompatibleType(f"{message}.", field="schema", breaks=found)
