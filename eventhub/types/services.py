"""Declaration of types; each new version is announced in its transaction. Django module."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db import transaction

from eventhub.access.principal import Actor
from eventhub.accounts.services import lock_zone
from eventhub.api.announcements import announce
from eventhub.api.if_match import require_unchanged
from eventhub.base import limits
from eventhub.base.errors import LimitReached, NumberOutOfRange
from eventhub.eventlog.resource_changes import Resource
from eventhub.types.definitions import read_schemas, schemas_of
from eventhub.types.described_fields import DescribedFields
from eventhub.types.errors import IncompatibleType, InvalidSchema, UnknownType
from eventhub.types.evolution import breaks
from eventhub.types.models import EventType
from eventhub.types.paths import encoded
from eventhub.types.selectors import definition_of, lineage, subtypes, versions_of

_DECLARED = ("parent", "evolution", "schema", "header")


def resource_of(zone_id: int, domain: str, type: str) -> Resource:
    """Return the resource of a type, for conditional changes."""
    return Resource("type", zone_id, f"{encoded(domain)}/{encoded(type)}")


def declare(
    *, actor: Actor, names: Mapping[str, str], definition: Mapping[str, Any], since: int | None
) -> tuple[Sequence[EventType], bool]:
    """Declare a version of a type. Return all its versions, and True if the last is new.
    Idempotent. `names`: its domain and type; `definition`: `schema`, `header`, `parent` and
    `evolution`.

    Raises InvalidSchema, IncompatibleType with `breaks`, UnknownType for the parent, LimitReached,
    and Changed if a version was declared after the sequence `since` of `system`.
    """
    read_schemas(definition["schema"], definition["header"])
    resource = resource_of(actor.zone_id, **names)
    with transaction.atomic():
        lock_zone(zone_id=actor.zone_id)
        found = [*versions_of(zone_id=actor.zone_id, **names)]
        require_unchanged(resource, since, exists=bool(found), version=len(found))
        texts = {name: _text(definition[name], name) for name in ("header", "schema")}
        new = EventType(
            zone_id=actor.zone_id, version=len(found) + 1, **names, **{**definition, **texts}
        )
        if found and all(getattr(found[-1], name) == getattr(new, name) for name in _DECLARED):
            return found, False
        if (
            EventType.objects.filter(zone=actor.zone_id).count()
            >= limits.TYPE_VERSIONS_PER_ZONE_MAX
        ):
            raise LimitReached(limit=limits.TYPE_VERSIONS_PER_ZONE_MAX)
        _check_parent(new)
        if found:
            _check_evolution(found[-1], new)
        new.save(force_insert=True)
        attributes = {**names, "version": str(new.version)}
        announce(zone=actor.zone, type="type.declared", attributes=attributes, resource=resource)
    return [*found, new], True


def _text(schema: Any, field: str) -> str | None:
    """Return the schema as canonical JSON, so that the order of names makes no new version."""
    if schema is None:
        return None
    try:
        text = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        raise NumberOutOfRange(field=field) from None
    if len(text) > limits.TYPE_SCHEMA_BYTES_MAX:
        message = f"A schema has at most {limits.TYPE_SCHEMA_BYTES_MAX} bytes."
        raise InvalidSchema(message, field=field)
    return text.decode()


def _check_parent(new: EventType) -> None:
    if new.parent is None:
        return
    supertypes = lineage(zone_id=new.zone_id, domain=new.domain, type=new.parent)
    if not supertypes:
        raise UnknownType("The zone has no such parent; declare it first.", field="parent")
    if new.type in [one.type for one in supertypes]:
        raise InvalidSchema("A type cannot be its own parent.", field="parent")
    if len(supertypes) > limits.TYPE_PARENTS_MAX:
        message = f"A type has at most {limits.TYPE_PARENTS_MAX} supertypes."
        raise InvalidSchema(message, field="parent")


def _check_evolution(old: EventType, new: EventType) -> None:
    """Raise IncompatibleType if the new version breaks its own `evolution`, or changes the parent.
    Interest in the parent matches events of this type, whenever they are matched (RDY-13).
    """
    if new.parent != old.parent:
        change = f"parent: was {old.parent or 'none'}"
        message = f"The parent of a type cannot change; {change}."
        raise IncompatibleType(message, field="parent", breaks=[change])
    if new.evolution == "none":
        return
    found = []
    before, after = schemas_of(definition_of(old)), schemas_of(definition_of(new))
    # the parents, and all versions of the subtypes, also describe fields of the same events
    parents = lineage(zone_id=old.zone_id, domain=old.domain, type=old.parent)
    related = map(definition_of, (*parents, *subtypes(old)))
    described = DescribedFields(
        [before.attributes, *(schemas_of(one).attributes for one in related)]
    )
    found += breaks(before.attributes, after.attributes, "attributes", described)
    if after.header is not None:
        found += breaks(before.header or {}, after.header, "header", DescribedFields([], all=True))
    if found:
        message = "Events of the previous version might not satisfy this one: " + "; ".join(found)
        raise IncompatibleType(f"{message}.", field="schema", breaks=found)
