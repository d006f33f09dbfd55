"""Makes, changes and deletes endpoints; each change is announced in its own transaction.
Django module.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import F, Func, QuerySet

from eventhub.access.actor import Actor
from eventhub.api.announcements import announce_all, raw_connection
from eventhub.base import limits
from eventhub.base.errors import LimitReached, NotFound
from eventhub.eventlog.models import Stream
from eventhub.eventlog.system import Announcement
from registrations.endpoints import secrets
from registrations.endpoints.addresses import CallbackAddresses, parse_allowed
from registrations.endpoints.rows import Format, announcement
from registrations.errors import EndpointInUse
from registrations.models import CURRENT, Endpoint, EndpointHealth, RegistrationVersion
from registrations.owners import Owner
from registrations.rows import lock_session

# How an endpoint answers; all null of one that was not tried.
HEALTH = ("attempted_at", "outcome", "status", "delivered_at", "failing_since")
# As they are shown.
ENDPOINTS = Endpoint.objects.annotate(
    client_name=F("client__name"), **{name: F(f"health__{name}") for name in HEALTH}
)


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
        lock_client(owner)
        made = add_endpoint(actor=actor, owner=owner, terms=terms)
        found = ENDPOINTS.get(pk=made.pk)
        found.secret_text = made.secret_text
        _announce(actor, "created", found, "ordered")
    return found


def lock_client(owner: Owner) -> None:
    """Keep the client from ending, and others from adding to what it has; NotFound if it ended."""
    if lock_session(raw_connection(), owner.id) is None:
        raise NotFound("This zone has no such client.", field="client")


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


def created(zone_id: int, client: str, endpoint_id: int) -> Announcement:
    """What is told of an endpoint that `add_endpoint` made of a URL alone."""
    attributes = {"client": client, "endpoint": endpoint_id, "ordered": False}
    return announcement("created", zone_id, attributes)


def change_endpoint(*, actor: Actor, endpoint: Endpoint, given: Mapping[str, Any]) -> Endpoint:
    """Change what is given of an endpoint whose row is locked. The same again changes nothing;
    enabling forgets the reason. Where events go, and when, is for who may listen to all that the
    endpoint is sent.
    """
    wanted = {name: value for name, value in given.items() if getattr(endpoint, name) != value}
    if not wanted:
        return endpoint
    if "enabled" in wanted:
        wanted["reason"] = None if wanted["enabled"] else "request"
    if wanted.keys() != {"description"}:
        _require_all_behind(actor, endpoint)
    if "url" in wanted:  # how another URL answers is not known yet
        EndpointHealth.objects.filter(endpoint=endpoint).delete()
    Endpoint.objects.filter(pk=endpoint.pk).update(**wanted, changed_at=TransactionNow())
    changed = ENDPOINTS.get(pk=endpoint.pk)
    _announce(actor, "changed", changed, "ordered", "format", "enabled", "reason")
    return changed


def delete_endpoint(*, actor: Actor, endpoint: Endpoint) -> None:
    """End an endpoint, whose row is locked, that no registration names; else EndpointInUse."""
    _require_all_behind(actor, endpoint)
    if _behind(endpoint).exists():
        raise EndpointInUse(field="endpoint")
    ended = {"deleted_at": TransactionNow(), "changed_at": TransactionNow()}
    Endpoint.objects.filter(pk=endpoint.pk).update(**ended, enabled=False)
    _announce(actor, "deleted", endpoint)


def _behind(endpoint: Endpoint) -> QuerySet[RegistrationVersion]:
    """What of registrations names the endpoint."""
    return RegistrationVersion.objects.filter(CURRENT, endpoint=endpoint)


def _require_all_behind(actor: Actor, endpoint: Endpoint) -> None:
    """Forbidden unless the actor may listen to every stream that the endpoint is sent events of."""
    if actor.principal is None:
        return
    ids = _behind(endpoint).values_list(Func(F("streams"), function="unnest"))
    for name in Stream.objects.filter(pk__in=ids).order_by("name").values_list("name", flat=True):
        actor.require_listen(name, field="endpoint")


def _announce(actor: Actor, change: str, endpoint: Endpoint, *names: str) -> None:
    """Tell what the endpoint has by those names now; last in the transaction."""
    shown = {name: getattr(endpoint, name) for name in names}
    attributes = {"client": endpoint.client_name, "endpoint": endpoint.pk, **shown}
    announce_all(zone=actor.zone, announcements=[announcement(change, actor.zone_id, attributes)])
