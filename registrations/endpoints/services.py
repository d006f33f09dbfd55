"""Creates, changes and deletes endpoints. Each change is announced in its own transaction. Django
module.
"""

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import (
    Case,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.utils import timezone

from eventhub.access.principal import Actor
from eventhub.api.announcements import announce_all, raw_connection
from eventhub.base import limits
from eventhub.base.errors import NotFound, TooManyRequests
from eventhub.eventlog.models import Stream
from eventhub.eventlog.system import Announcement
from registrations.endpoints import signing_secrets, stored_credentials
from registrations.endpoints.addresses import AllowedAddresses, CallbackAddresses, parse_allowed
from registrations.endpoints.callback_url import origin
from registrations.endpoints.credentials import KINDS
from registrations.endpoints.secrets import new_secret
from registrations.endpoints.statements import (
    Format,
    Handshake,
    Signature,
    announcement,
    request_verification,
)
from registrations.errors import EndpointInUse, EndpointUnverified, NoHandshake
from registrations.models import (
    CURRENT,
    Endpoint,
    EndpointHealth,
    EndpointSecret,
    EndpointToken,
    EndpointVerification,
    RegistrationVersion,
)
from registrations.quotas import require_room
from registrations.scope import Owner
from registrations.sinks.fields import checked_fields
from registrations.sinks.registry import HTTPS
from registrations.statements import lock_owner

# The fields of an endpoint's health; all null before the first attempt.
HEALTH = ("attempted_at", "outcome", "status", "delivered_at", "failing_since")
# The settings of its retries and their limits; null: the default.
RETRIES = ("retry_schedule", "rate_limit", "concurrency", "timeout_s", "disable_after_s")
# Its circuit; an endpoint without a row is closed.
CIRCUIT = {
    "circuit_state": Coalesce("circuit__state", Value("closed"), output_field=TextField()),
    "circuit_failures": Coalesce("circuit__failures", Value(0)),
    "circuit_since": Case(When(~Q(circuit__state="closed"), then=F("circuit__opened_at"))),
    "circuit_next_probe_at": Case(When(circuit__state="open", then=F("circuit__retry_at"))),
}
# The fields of its last verification; all null if none was requested.
VERIFICATION = ("requested_at", "ended_at", "outcome", "status", "detail")


def _public(kind: str) -> Subquery:
    """Return what may be shown of an endpoint's current secret of a kind."""
    current = EndpointSecret.objects.filter(
        endpoint=OuterRef("pk"), kind=kind, expires_at__isnull=True
    )
    return Subquery(current.values("public"))


# With the fields of the API.
ENDPOINTS = Endpoint.objects.annotate(
    client_name=F("client__name"),
    public_key=_public("v1a"),
    **{f"{kind}_shown": _public(kind) for kind in KINDS},
    **{name: F(f"health__{name}") for name in HEALTH},
    **CIRCUIT,
    **{f"verification_{name}": F(f"verification__{name}") for name in VERIFICATION},
)


SHOWN = tuple(f"{kind}_shown" for kind in KINDS)
ANNOUNCED = ("ordered", "order_by", "format", "enabled", "reason")  # of a changed endpoint


class NewEndpoint(NamedTuple):
    """The fields of an endpoint to be created; without a secret the hub generates one."""

    url: str
    kind: str = HTTPS
    settings: Mapping[str, Any] = {}
    description: str = ""
    ordered: bool = False
    order_by: str = ""
    format: Format = "native"
    batch_events_max: int | None = None
    batch_bytes_max: int = limits.BATCH_BYTES_DEFAULT
    batch_linger_ms: int = 0
    signature: Signature = "v1"
    handshake: Handshake = "none"
    retry_schedule: list[int] | None = None
    rate_limit: float | None = None
    concurrency: int | None = None
    timeout_s: int | None = None
    disable_after_s: int | None = None
    expires_at: datetime | None = None
    secret: bytes | None = None
    credentials: Mapping[str, Any] = {}


def callback_addresses(zone: str) -> CallbackAddresses:
    """Return the addresses that callbacks of a zone may call."""
    return _allowed_addresses().of_zone(zone)


@functools.cache
def _allowed_addresses() -> AllowedAddresses:
    return parse_allowed(settings.ENV.callback_allow)


def create_endpoint(*, actor: Actor, owner: Owner, fields: NewEndpoint) -> Endpoint:
    """Create an endpoint of the client; the result has its secret as `secret_text`, None if it is
    a sink, to which nothing is signed.
    """
    with transaction.atomic():
        lock_client(owner)
        endpoint = add_endpoint(actor=actor, owner=owner, fields=fields)
        found = ENDPOINTS.get(pk=endpoint.pk)
        found.secret_text = endpoint.secret_text if found.kind == HTTPS else None
        _announce(actor, "created", found, "kind", "ordered", "order_by")
    return found


def lock_client(owner: Owner) -> None:
    """Lock the client, so that it cannot end and nothing else is added to it. Raises NotFound if it
    has ended.
    """
    if lock_owner(raw_connection(), owner.id) is None:
        raise NotFound("This zone has no such client.", field="client")


def add_endpoint(*, actor: Actor, owner: Owner, fields: NewEndpoint) -> Endpoint:
    """Insert an endpoint, for a caller that has locked the client and announces it. The result has
    the secret as `secret_text`.
    """
    existing = Endpoint.objects.live().filter(client_id=owner.id)
    require_room("endpoints", actor.zone_id, owner.id, used=existing.count())
    secret = fields.secret or new_secret()
    sealed = signing_secrets.keyring().seal(secret)
    values = fields._asdict() | {"secret": sealed}
    credentials = values.pop("credentials")
    verified_at = _agreed_at(owner, fields)
    if verified_at is not None:
        values["verified_at"] = verified_at
    elif fields.handshake != "none":
        values |= {"enabled": False, "reason": "unverified"}
    endpoint = Endpoint.objects.create(zone_id=actor.zone_id, client_id=owner.id, **values)
    endpoint.secret_text = signing_secrets.insert(endpoint, "v1", secret, sealed).text
    if fields.signature != "v1":
        signing_secrets.insert_key_pair(endpoint)
    stored_credentials.store(endpoint, credentials)
    if fields.handshake != "none" and verified_at is None:
        request_verification(raw_connection(), endpoint.pk)
    return endpoint


def _agreed_at(owner: Owner, fields: NewEndpoint) -> datetime | None:
    """Return when the receiver at the URL of a new endpoint agreed to another one of the client, if
    that is enough: to subscriptions of MCP it agrees once.
    """
    if fields.handshake != "mcp":
        return None
    same = Endpoint.objects.live().filter(client_id=owner.id, url=fields.url, handshake="mcp")
    agreed = same.filter(verified_at__isnull=False).order_by("-verified_at")
    found: datetime | None = agreed.values_list("verified_at", flat=True).first()
    return found


def created_announcement(zone_id: int, client: str, endpoint_id: int) -> Announcement:
    """Return the announcement of an endpoint that `add_endpoint` created from a URL alone."""
    attributes = {"client": client, "endpoint": endpoint_id, "kind": HTTPS, "ordered": False}
    return announcement("created", zone_id, attributes)


def change_endpoint(*, actor: Actor, endpoint: Endpoint, given: Mapping[str, Any]) -> Endpoint:
    """Change the given fields and credentials of an endpoint whose row is locked. Equal values
    change nothing; enabling clears the reason. Except for the description, the actor must be
    allowed to listen to every stream whose events are sent to the endpoint; else Forbidden. The
    receiver at another URL, or of another handshake, must agree first, and a sink is checked again
    after a change. Raises EndpointUnverified, and what `checked_fields` raises.
    """
    given = checked_fields(endpoint.kind, given, callback_addresses(actor.zone))
    credentials = {name: given[name] for name in KINDS if name in given}
    changes = _changes(endpoint, given)
    if not changes and not credentials:
        return endpoint
    if credentials or changes.keys() != {"description"}:
        _require_listen_to_all(actor, endpoint)
    moved = origin(changes["url"]) != origin(endpoint.url) if "url" in changes else False
    is_stored = False
    if credentials or moved:
        is_stored = stored_credentials.store(endpoint, credentials, other_origin=moved)
        if not changes and not is_stored:
            return endpoint
    if changes.get("signature", "v1") != "v1" and endpoint.public_key is None:
        signing_secrets.insert_key_pair(endpoint)
    if "url" in changes:  # the health of another URL is unknown
        EndpointHealth.objects.filter(endpoint=endpoint).delete()
    is_other_receiver = not changes.keys().isdisjoint({"url", "handshake", "settings"})
    is_other_receiver |= is_stored and endpoint.kind != HTTPS
    handshake = changes.get("handshake", endpoint.handshake)
    if is_other_receiver:
        changes |= _unverified(endpoint, handshake, changes)
    elif changes.get("enabled") and handshake != "none" and endpoint.verified_at is None:
        raise EndpointUnverified(field="enabled")
    Endpoint.objects.filter(pk=endpoint.pk).update(**changes, changed_at=TransactionNow())
    if is_other_receiver:
        _verify_again(endpoint, handshake)
    changed = ENDPOINTS.get(pk=endpoint.pk)
    _announce(actor, "changed", changed, *ANNOUNCED)
    return changed


def _changes(endpoint: Endpoint, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields that differ from the endpoint's, with the reason of `enabled`. The
    request to disable an endpoint that waits for its receiver is a change too: of the reason.
    """
    changes = {
        name: value
        for name, value in given.items()
        if name not in KINDS and getattr(endpoint, name) != value
    }
    if given.get("enabled") is False and endpoint.reason == "unverified":
        changes["enabled"] = False
    if "enabled" in changes:
        changes["reason"] = None if changes["enabled"] else "request"
    return changes


def _unverified(endpoint: Endpoint, handshake: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else changes with the URL or the handshake of an endpoint: if it were enabled, it
    waits until its receiver agrees.
    """
    enabled = changes.get("enabled", endpoint.enabled or endpoint.reason == "unverified")
    forgotten = {"verified_at": None, "allowed_rate": None}
    if not enabled:
        return forgotten
    if handshake == "none":
        return {**forgotten, "enabled": True, "reason": None}
    return {**forgotten, "enabled": False, "reason": "unverified"}


def _verify_again(endpoint: Endpoint, handshake: str) -> None:
    """Forget the verification of the URL or handshake before, and request another one if needed."""
    if handshake == "none":
        EndpointVerification.objects.filter(endpoint=endpoint).delete()
    else:
        request_verification(raw_connection(), endpoint.pk)


def verify_endpoint(*, actor: Actor, endpoint: Endpoint) -> Endpoint:
    """Request another verification of an endpoint whose row is locked; a pending one stays as it
    is. Raises NoHandshake, Forbidden, and TooManyRequests right after another one.
    """
    if endpoint.handshake == "none":
        raise NoHandshake
    _require_listen_to_all(actor, endpoint)
    if endpoint.verification_requested_at is not None:
        if endpoint.verification_ended_at is None:
            return endpoint
        age = timezone.now() - endpoint.verification_requested_at
        if age.total_seconds() < limits.VERIFICATION_INTERVAL_S:
            raise TooManyRequests(
                "The endpoint was verified just now.", retry_after_s=limits.VERIFICATION_INTERVAL_S
            )
    request_verification(raw_connection(), endpoint.pk)
    return ENDPOINTS.get(pk=endpoint.pk)


def rotate_secret(
    *,
    actor: Actor,
    endpoint: Endpoint,
    signature: str,
    overlap_s: int,
    secret: bytes | None = None,
) -> EndpointSecret:
    """Give an endpoint whose row is locked a new secret of a signature; `secret`: the client's own.
    The one before it signs too for `overlap_s` seconds. Raises LimitReached, Forbidden.
    """
    _require_listen_to_all(actor, endpoint)
    created = signing_secrets.replace(endpoint, signature, secret, overlap_s)
    _touch(actor, endpoint)
    return created


def revoke_secret(*, actor: Actor, endpoint: Endpoint, secret: EndpointSecret) -> None:
    """Revoke a previous secret of an endpoint whose row is locked. Raises SecretInUse,
    Forbidden.
    """
    _require_listen_to_all(actor, endpoint)
    signing_secrets.revoke(secret)
    _touch(actor, endpoint)


def delete_endpoint(*, actor: Actor, endpoint: Endpoint) -> None:
    """Delete an endpoint, whose row is locked. Raises EndpointInUse if a registration names it,
    Forbidden.
    """
    _require_listen_to_all(actor, endpoint)
    if _current_versions(endpoint).exists():
        raise EndpointInUse(field="endpoint")
    ended = {"deleted_at": TransactionNow(), "changed_at": TransactionNow()}
    Endpoint.objects.filter(pk=endpoint.pk).update(**ended, enabled=False, secret=b"")
    for kind in (EndpointSecret, EndpointToken, EndpointVerification):
        kind.objects.filter(endpoint=endpoint).delete()
    _announce(actor, "deleted", endpoint)


def _touch(actor: Actor, endpoint: Endpoint) -> None:
    """Announce a change of what belongs to an endpoint; workers read it again."""
    Endpoint.objects.filter(pk=endpoint.pk).update(changed_at=TransactionNow())
    _announce(actor, "changed", endpoint, *ANNOUNCED)


def _current_versions(endpoint: Endpoint) -> QuerySet[RegistrationVersion]:
    """Return the current versions of registrations that name the endpoint."""
    return RegistrationVersion.objects.filter(CURRENT, endpoint=endpoint)


def _require_listen_to_all(actor: Actor, endpoint: Endpoint) -> None:
    """Raise Forbidden unless the actor may listen to every stream of the endpoint."""
    if actor.principal is None:
        return
    ids = _current_versions(endpoint).values_list(Func(F("streams"), function="unnest"))
    for name in Stream.objects.filter(pk__in=ids).order_by("name").values_list("name", flat=True):
        actor.require_listen(name, field="endpoint")


def _announce(actor: Actor, change: str, endpoint: Endpoint, *names: str) -> None:
    """Announce the named fields of the endpoint; last in the transaction."""
    fields = {name: getattr(endpoint, name) for name in names}
    attributes = {"client": endpoint.client_name, "endpoint": endpoint.pk, **fields}
    announce_all(zone=actor.zone, announcements=[announcement(change, actor.zone_id, attributes)])
