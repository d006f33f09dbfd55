"""Makes, changes and deletes endpoints; each change is announced in its own transaction."""

import functools
from typing import NamedTuple

from django.conf import settings
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
from registrations.endpoints.rows import Endpoint, Format, Whose
from registrations.errors import EndpointInUse
from registrations.owners import Owner, require_some_listen


class EndpointTerms(NamedTuple):
    """What a new endpoint is; without a secret the hub makes one."""

    url: str
    description: str = ""
    ordered: bool = False
    format: Format = "native"
    secret: bytes | None = None


class EndpointChange(NamedTuple):
    """What a change replaces; None leaves it."""

    url: str | None = None
    description: str | None = None
    ordered: bool | None = None
    format: Format | None = None
    enabled: bool | None = None


class MadeEndpoint(NamedTuple):
    """A new endpoint with the text of its secret, which nothing can show again."""

    id: int
    secret: str


@functools.cache
def callback_addresses() -> CallbackAddresses:
    """The rules of EVENTHUB_CALLBACK_ALLOW. Raises ValueError that names a bad entry."""
    return parse_allowed(settings.ENV.callback_allow)


def create_endpoint(
    *, actor: Actor, owner: Owner, terms: EndpointTerms
) -> tuple[Endpoint, MadeEndpoint]:
    """A new endpoint of the client."""
    require_some_listen(actor=actor)
    connection = raw_connection()
    with transaction.atomic():
        if registration_rows.lock_session(connection, owner.id) is None:
            raise NotFound("This zone has no such client.", field="client")
        made = add_endpoint(actor=actor, owner=owner, terms=terms)
        found = rows.get(connection, Whose(actor.zone_id, owner.id), made.id)
        told = [created(actor.zone_id, owner.name, made.id, ordered=terms.ordered)]
        announce_all(zone=actor.zone, announcements=told)
    return found, made


def add_endpoint(*, actor: Actor, owner: Owner, terms: EndpointTerms) -> MadeEndpoint:
    """The endpoint's row, for a caller that has locked the client's session and announces it."""
    connection = raw_connection()
    if rows.count(connection, owner.id) >= limits.ENDPOINTS_PER_CLIENT_MAX:
        raise LimitReached(limit=limits.ENDPOINTS_PER_CLIENT_MAX)
    secret = terms.secret or secrets.new_secret()
    sealed = secrets.seal(settings.ENV.secret_key, secret)
    asked = terms._asdict() | {"secret": sealed}
    row = rows.NewEndpoint(actor.zone_id, owner.id, **asked)
    return MadeEndpoint(rows.insert(connection, row), secrets.secret_text(secret))


def created(zone_id: int, client: str, endpoint_id: int, *, ordered: bool = False) -> Announcement:
    attributes = {"client": client, "endpoint": endpoint_id, "ordered": ordered}
    return Announcement("endpoint.created", attributes, rows.resource_of(zone_id, endpoint_id))


def change_endpoint(
    *,
    actor: Actor,
    whose: Whose,
    endpoint_id: int,
    change: EndpointChange,
    if_match: int | None = None,
) -> Endpoint:
    """Change what is given. The same again changes nothing; enabling forgets the reason. Where
    events go, and when, is for who may listen to all that the endpoint is sent.
    """
    require_some_listen(actor=actor)
    connection = raw_connection()
    with transaction.atomic():
        found = rows.lock(connection, whose, endpoint_id)
        require_unchanged(rows.resource_of(actor.zone_id, endpoint_id), if_match)
        given = {name: value for name, value in change._asdict().items() if value is not None}
        if given.get("enabled", found.settings.enabled) != found.settings.enabled:
            given["reason"] = None if given["enabled"] else "request"
        wanted = found.settings._replace(**given)
        if wanted == found.settings:
            return found
        if wanted._replace(description="") != found.settings._replace(description=""):
            _require_all_behind(actor, endpoint_id)
        rows.change(connection, endpoint_id, wanted)
        changed = rows.get(connection, whose, endpoint_id)
        told = [rows.changed(actor.zone_id, found.client, endpoint_id, wanted)]
        announce_all(zone=actor.zone, announcements=told)
    return changed


def delete_endpoint(
    *, actor: Actor, whose: Whose, endpoint_id: int, if_match: int | None = None
) -> None:
    """End an endpoint that no registration names; else EndpointInUse."""
    require_some_listen(actor=actor)
    connection = raw_connection()
    with transaction.atomic():
        found = rows.lock(connection, whose, endpoint_id)
        resource = rows.resource_of(actor.zone_id, endpoint_id)
        require_unchanged(resource, if_match)
        _require_all_behind(actor, endpoint_id)
        if rows.is_named(connection, endpoint_id):
            raise EndpointInUse(field="endpoint")
        rows.delete(connection, endpoint_id)
        attributes = {"client": found.client, "endpoint": endpoint_id}
        told = [Announcement("endpoint.deleted", attributes, resource)]
        announce_all(zone=actor.zone, announcements=told)


def _require_all_behind(actor: Actor, endpoint_id: int) -> None:
    """Forbidden unless the actor may listen to every stream of the registrations that name the
    endpoint, whose row is locked.
    """
    if actor.principal is None:
        return
    for stream in rows.streams_behind(raw_connection(), endpoint_id):
        actor.require_listen(stream, field="endpoint")
