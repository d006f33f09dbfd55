"""Makes, changes and deletes endpoints; each change is announced in its own transaction."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.system import announce_all, raw_connection
from eventhub.errors import LimitReached, NotFound
from eventhub.eventlog.system import Announcement
from registrations import rows as registration_rows
from registrations.endpoints import rows, secrets
from registrations.endpoints.addresses import CallbackAddresses, parse_allowed
from registrations.endpoints.rows import Format
from registrations.endpoints.selectors import endpoints_of
from registrations.errors import EndpointInUse, UnknownEndpoint
from registrations.models import CURRENT, Endpoint, EndpointHealth, RegistrationVersion
from registrations.owners import Owner


class EndpointTerms(NamedTuple):
    """What a new endpoint is; without a secret the hub makes one."""

    url: str
    description: str = ""
    ordered: bool = False
    format: Format = "native"
    secret: bytes | None = None


@functools.cache
def callback_addresses() -> CallbackAddresses:
    """The rules of EVENTHUB_CALLBACK_ALLOW. Raises ValueError that names a bad entry."""
    return parse_allowed(settings.ENV.callback_allow)


def create_endpoint(*, actor: Actor, owner: Owner, terms: EndpointTerms) -> Endpoint:
    """A new endpoint of the client, with its secret as `secret_text`."""
    with transaction.atomic():
        if registration_rows.lock_session(raw_connection(), owner.id) is None:
            raise NotFound("This zone has no such client.", field="client")
        made = add_endpoint(actor=actor, owner=owner, terms=terms)
        found = endpoints_of(actor=actor).get(pk=made.pk)
        found.secret_text = made.secret_text
        told = [created(actor.zone_id, owner.name, made.pk, ordered=terms.ordered)]
        announce_all(zone=actor.zone, announcements=told)
    return found


def add_endpoint(*, actor: Actor, owner: Owner, terms: EndpointTerms) -> Endpoint:
    """The endpoint's row, with its secret as `secret_text`, for a caller that has locked the
    client's session and announces it.
    """
    there = Endpoint.objects.live().filter(client_id=owner.id)
    if there.count() >= limits.ENDPOINTS_PER_CLIENT_MAX:
        raise LimitReached(limit=limits.ENDPOINTS_PER_CLIENT_MAX)
    secret = terms.secret or secrets.new_secret()
    values = terms._asdict() | {"secret": secrets.seal(settings.ENV.secret_key, secret)}
    made = Endpoint.objects.create(zone_id=actor.zone_id, client_id=owner.id, **values)
    made.secret_text = secrets.secret_text(secret)
    return made


def created(zone_id: int, client: str, endpoint_id: int, *, ordered: bool = False) -> Announcement:
    attributes = {"client": client, "endpoint": endpoint_id, "ordered": ordered}
    return Announcement("endpoint.created", attributes, rows.resource_of(zone_id, endpoint_id))


def change_endpoint(
    *, actor: Actor, endpoint_id: int, given: Mapping[str, Any], if_match: int | None = None
) -> Endpoint:
    """Change what is given. The same again changes nothing; enabling forgets the reason. Where
    events go, and when, is for who may listen to all that the endpoint is sent.
    """
    with transaction.atomic():
        found = _lock(actor, endpoint_id)
        require_unchanged(rows.resource_of(actor.zone_id, endpoint_id), if_match)
        wanted = {name: value for name, value in given.items() if getattr(found, name) != value}
        if not wanted:
            return found
        if "enabled" in wanted:
            wanted["reason"] = None if wanted["enabled"] else "request"
        if wanted.keys() != {"description"}:
            _require_all_behind(actor, endpoint_id)
        if "url" in wanted:  # how another URL answers is not known yet
            EndpointHealth.objects.filter(pk=endpoint_id).delete()
        Endpoint.objects.filter(pk=endpoint_id).update(**wanted, changed_at=TransactionNow())
        changed = endpoints_of(actor=actor).get(pk=endpoint_id)
        told = rows.Told(changed.ordered, changed.format, changed.enabled, changed.reason)
        announced = rows.changed(actor.zone_id, changed.client_name, endpoint_id, told)
        announce_all(zone=actor.zone, announcements=[announced])
    return changed


def delete_endpoint(*, actor: Actor, endpoint_id: int, if_match: int | None = None) -> None:
    """End an endpoint that no registration names; else EndpointInUse."""
    with transaction.atomic():
        found = _lock(actor, endpoint_id)
        resource = rows.resource_of(actor.zone_id, endpoint_id)
        require_unchanged(resource, if_match)
        _require_all_behind(actor, endpoint_id)
        if RegistrationVersion.objects.filter(CURRENT, endpoint_id=endpoint_id).exists():
            raise EndpointInUse(field="endpoint")
        ended = {"deleted_at": TransactionNow(), "changed_at": TransactionNow()}
        Endpoint.objects.filter(pk=endpoint_id).update(**ended, enabled=False)
        attributes = {"client": found.client_name, "endpoint": endpoint_id}
        told = [Announcement("endpoint.deleted", attributes, resource)]
        announce_all(zone=actor.zone, announcements=told)


def _lock(actor: Actor, endpoint_id: int) -> Endpoint:
    """The endpoint, so that nobody else changes it; UnknownEndpoint if there is none."""
    found = endpoints_of(actor=actor).select_for_update(of=("self",)).filter(pk=endpoint_id)
    endpoint = found.first()
    if endpoint is None:
        raise UnknownEndpoint(field="endpoint")
    return endpoint


def _require_all_behind(actor: Actor, endpoint_id: int) -> None:
    """Forbidden unless the actor may listen to every stream of the registrations that name the
    endpoint, whose row is locked.
    """
    if actor.principal is None:
        return
    for stream in rows.streams_behind(raw_connection(), endpoint_id):
        actor.require_listen(stream, field="endpoint")
