"""Declares types; each new version is announced in its own transaction. Django module."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db import transaction

from eventhub.access.actor import Actor
from eventhub.accounts.services import lock_zone
from eventhub.api.announcements import announce
from eventhub.api.conditions import require_unchanged
from eventhub.base import limits
from eventhub.base.errors import LimitReached, NumberOutOfRange
from eventhub.eventlog.resource_changes import Resource
from eventhub.types.definitions import read_schemas, schemas_of
from eventhub.types.described_fields import Spoken
from eventhub.types.errors import IncompatibleType, InvalidSchema, UnknownType
from eventhub.types.evolution import breaks
from eventhub.types.models import EventType
from eventhub.types.paths import encoded
from eventhub.types.selectors import definition_of, lineage, subtypes, versions_of

_DECLARED = ("parent", "evolution", "schema", "header")


def resource_of(zone_id: int, domain: str, type: str) -> Resource:
    """The type, for conditions on changes."""
    return Resource("type", zone_id, f"{encoded(domain)}/{encoded(type)}")


def declare(
    *, actor: Actor, names: Mapping[str, str], given: Mapping[str, Any], since: int | None
) -> tuple[Sequence[EventType], bool]:
    """All versions of the type, and whether the last is new: the same again changes nothing.
    `names`: its domain and type; `given`: its `schema`, `header`, `parent` and `evolution`.

    Raises InvalidSchema, IncompatibleType with `breaks`, UnknownType for the parent, LimitReached,
    Changed if the type was declared anew after the sequence `since` of `system`.
    """
    read_schemas(given["schema"], given["header"])
    resource = resource_of(actor.zone_id, **names)
    with transaction.atomic():
        lock_zone(zone_id=actor.zone_id)
        found = [*versions_of(zone_id=actor.zone_id, **names)]
        require_unchanged(resource, since, exists=bool(found), version=len(found))
        texts = {name: _text(given[name], name) for name in ("header", "schema")}
        wanted = EventType(
            zone_id=actor.zone_id, version=len(found) + 1, **names, **{**given, **texts}
        )
        if found and all(getattr(found[-1], name) == getattr(wanted, name) for name in _DECLARED):
            return found, False
        if (
            EventType.objects.filter(zone=actor.zone_id).count()
            >= limits.TYPE_VERSIONS_PER_ZONE_MAX
        ):
            raise LimitReached(limit=limits.TYPE_VERSIONS_PER_ZONE_MAX)
        _check_parent(wanted)
        if found:
            _check_evolution(found[-1], wanted)
        wanted.save(force_insert=True)
        attributes = {**names, "version": str(wanted.version)}
        announce(zone=actor.zone, type="type.declared", attributes=attributes, resource=resource)
    return [*found, wanted], True


def _text(schema: Any, field: str) -> str | None:
    """The schema as canonical JSON, so that the order of names makes no new version."""
    if schema is None:
        return None
    try:
        text = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        raise NumberOutOfRange(field=field) from None
    if len(text) > limits.TYPE_SCHEMA_BYTES_MAX:
        message = f"A schema has {limits.TYPE_SCHEMA_BYTES_MAX} bytes at most."
        raise InvalidSchema(message, field=field)
    return text.decode()


def _check_parent(wanted: EventType) -> None:
    if wanted.parent is None:
        return
    above = lineage(zone_id=wanted.zone_id, domain=wanted.domain, type=wanted.parent)
    if not above:
        raise UnknownType("The parent is declared first.", field="parent")
    if wanted.type in [one.type for one in above]:
        raise InvalidSchema("A type is not its own parent.", field="parent")
    if len(above) > limits.TYPE_PARENTS_MAX:
        message = f"A type has {limits.TYPE_PARENTS_MAX} parents above it at most."
        raise InvalidSchema(message, field="parent")


def _check_evolution(old: EventType, new: EventType) -> None:
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
    before, after = schemas_of(definition_of(old)), schemas_of(definition_of(new))
    # what else is asked of the same events: by the parents, and by the subtypes of all times
    parents = lineage(zone_id=old.zone_id, domain=old.domain, type=old.parent)
    related = map(definition_of, (*parents, *subtypes(old)))
    spoken = Spoken([before.attributes, *(schemas_of(one).attributes for one in related)])
    found += breaks(before.attributes, after.attributes, "attributes", spoken)
    if after.header is not None:
        found += breaks(before.header or {}, after.header, "header", Spoken([], all=True))
    if found:
        message = "Events of the version before would not satisfy this one: " + "; ".join(found)
        raise IncompatibleType(f"{message}.", field="schema", breaks=found)
