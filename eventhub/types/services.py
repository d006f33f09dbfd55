"""Declaration of types; each new version is announced in its transaction. Django module."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import transaction
from django.utils import timezone

from eventhub.access.principal import Actor
from eventhub.accounts.services import lock_zone, require_zone_not_deleting
from eventhub.api.announcements import announce
from eventhub.api.grace import end_of_grace
from eventhub.api.if_match import require_unchanged
from eventhub.base import limits
from eventhub.base.broker import DELETE_DUE, request_task
from eventhub.base.errors import LimitReached, NumberOutOfRange
from eventhub.event.json_codec import moment_text
from eventhub.eventlog.errors import NotDeleting
from eventhub.eventlog.resource_changes import Resource
from eventhub.types.definitions import check_declaration, schemas_of
from eventhub.types.described_fields import DescribedFields
from eventhub.types.errors import (
    IncompatibleType,
    InvalidSchema,
    TypeDeleting,
    TypeInUse,
    UnknownType,
)
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
    check_declaration(definition["schema"], definition["header"])
    resource = resource_of(actor.zone_id, **names)
    with transaction.atomic():
        zone = lock_zone(zone_id=actor.zone_id)
        found = [*versions_of(zone_id=actor.zone_id, **names)]
        live = bool(found) and not found[-1].deleted
        require_unchanged(resource, since, exists=live, version=len(found))
        texts = {name: _text(definition[name], name) for name in ("header", "schema")}
        new = EventType(
            zone_id=actor.zone_id, version=len(found) + 1, **names, **{**definition, **texts}
        )
        if found and all(getattr(found[-1], name) == getattr(new, name) for name in _DECLARED):
            if not live:
                _revive(found)
                _announce_declared(actor, found[-1], resource)
            return found, False
        require_zone_not_deleting(zone)
        if live:
            require_not_deleting(found[-1])
        if (
            EventType.objects.filter(zone=actor.zone_id).count()
            >= limits.TYPE_VERSIONS_PER_ZONE_MAX
        ):
            raise LimitReached(limit=limits.TYPE_VERSIONS_PER_ZONE_MAX)
        _check_parent(new)
        if found:
            _check_evolution(found[-1], new)
        _revive(found)
        new.save(force_insert=True)
        _announce_declared(actor, new, resource)
    return [*found, new], True


def schedule_deletion(
    *, actor: Actor, names: Mapping[str, str], grace_s: int | None, since: int | None
) -> Sequence[EventType]:
    """Schedule the deletion of a type; return its versions. Repeated without a time it changes
    nothing. Raises UnknownType, TypeInUse.
    """
    resource = resource_of(actor.zone_id, **names)
    with transaction.atomic():
        found = _locked(actor, names)
        require_unchanged(resource, since, version=len(found))
        used = {one.type for one in subtypes(found[-1]) if not one.deleted}
        if used:
            raise TypeInUse(subtypes=sorted(used))
        if found[-1].deletes_at is None or grace_s is not None:
            ends = end_of_grace(grace_s)
            _set_deletes_at(found, ends)
            attributes = {**names, "deletes_at": moment_text(ends)}
            announce(
                zone=actor.zone,
                type="type.deletion.scheduled",
                attributes=attributes,
                resource=resource,
            )
    if grace_s == 0:
        request_task(DELETE_DUE)
    return found


def withdraw_deletion(*, actor: Actor, names: Mapping[str, str]) -> Sequence[EventType]:
    """Withdraw the scheduled deletion of a type. Raises UnknownType, NotDeleting."""
    resource = resource_of(actor.zone_id, **names)
    with transaction.atomic():
        found = _locked(actor, names)
        ends = found[-1].deletes_at
        if ends is None or ends <= timezone.now():
            raise NotDeleting(field="type")
        _set_deletes_at(found, None)
        announce(
            zone=actor.zone,
            type="type.deletion.withdrawn",
            attributes={**names},
            resource=resource,
        )
    return found


def require_not_deleting(type: EventType) -> None:
    """Raise TypeDeleting if the deletion of the type is scheduled."""
    if type.deletes_at is not None:
        raise TypeDeleting(deletes_at=moment_text(type.deletes_at))


def _locked(actor: Actor, names: Mapping[str, str]) -> list[EventType]:
    """Return the versions of a type, which nothing changes before the end of the transaction."""
    lock_zone(zone_id=actor.zone_id)
    found = [*versions_of(zone_id=actor.zone_id, **names)]
    if not found or found[-1].deleted:
        raise UnknownType(field="type")
    return found


def _set_deletes_at(versions: Sequence[EventType], ends: datetime | None) -> None:
    EventType.objects.filter(pk__in=[one.pk for one in versions]).update(deletes_at=ends)
    for one in versions:
        one.deletes_at = ends


def _revive(versions: Sequence[EventType]) -> None:
    """Declare the versions of a deleted type again."""
    if versions and versions[-1].deleted:
        ids = [one.pk for one in versions]
        EventType.objects.filter(pk__in=ids).update(deletes_at=None, deleted_at=None)
        for one in versions:
            one.deletes_at = one.deleted_at = None


def _announce_declared(actor: Actor, version: EventType, resource: Resource) -> None:
    attributes = {
        "domain": version.domain,
        "type": version.type,
        "version": str(version.version),
    }
    announce(zone=actor.zone, type="type.declared", attributes=attributes, resource=resource)


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
    if supertypes and not supertypes[0].deleted:
        require_not_deleting(supertypes[0])
    if not supertypes or supertypes[0].deleted:
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
