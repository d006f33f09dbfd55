"""Changes of API keys: issue, change, revoke; and connection tokens of keys and operators' logins.
Django module.

A key grants no more than it has itself.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from eventhub.access.addresses import Networks, are_within, texts_of
from eventhub.access.grants import Grant, covers
from eventhub.access.keys import new_key
from eventhub.access.models import ApiKey, Client
from eventhub.access.principal import Actor, Principal
from eventhub.access.selectors import lock_client
from eventhub.access.tokens import Claims, mint_token
from eventhub.api.announcements import announce_all, change_of
from eventhub.api.if_match import require_unchanged
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.errors import InvalidField, LimitReached, NotFound, WiderGrant
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KeyTerms(NamedTuple):
    """The terms of a new key. `expires_at` None: as the key that issues it, or never;
    `allowed_addresses` None: those of that key, or every one.
    """

    label: str = ""
    expires_at: datetime | None = None
    allowed_addresses: Networks | None = None


NO_TERMS = KeyTerms()


def issue_key(
    *, actor: Actor, client: Client, grants: tuple[Grant, ...], terms: KeyTerms = NO_TERMS
) -> ApiKey:
    """Issue a key of the client. Its `text` is returned here only. It expires no later than the key
    that issues it, and may be used from no other addresses. Raises InvalidField, WiderGrant,
    LimitReached.
    """
    label, expires_at, allowed_addresses = terms
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidField("The expiry must be in the future.", field="expires_at")
    if actor.principal is not None:
        _require_covered(actor.principal.grants, grants)
        if (own := actor.principal.expires_at_us) is not None:
            latest = _EPOCH + timedelta(microseconds=own)
            if expires_at is not None and expires_at > latest:
                raise WiderGrant(field="expires_at")
            expires_at = expires_at or latest
        allowed_addresses = allowed_addresses or actor.principal.networks
        _require_within(actor.principal, allowed_addresses)
    public_id, text, digest = new_key()
    with transaction.atomic():
        client = lock_client(zone_id=client.zone_id, name=client.name)
        if live_keys(client_id=client.pk).count() >= limits.KEYS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.KEYS_PER_CLIENT_MAX)
        row = ApiKey.objects.create(
            client=client,
            public_id=public_id,
            digest=digest,
            label=label,
            grants=[grant.json() for grant in grants],
            expires_at=expires_at,
            allowed_addresses=texts_of(allowed_addresses),
        )
        announce_all(zone=actor.zone, announcements=[_change("key.created", row)])
    row.text = text
    return row


def live_keys(*, client_id: int) -> "models.QuerySet[ApiKey]":
    """Select the client's keys that are neither revoked nor expired."""
    ends = models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=timezone.now())
    return ApiKey.objects.filter(ends, client_id=client_id, revoked_at__isnull=True)


def change_key(
    *,
    actor: Actor,
    public_id: str,
    grants: tuple[Grant, ...] | None = None,
    if_match: int | None = None,
    **changes: Any,
) -> ApiKey:
    """Change the grants, or of `changes` the `label` and the `allowed_addresses`, where None stands
    for every address. What is not given stays. Raises NotFound for a revoked key, which stays as it
    was, and WiderGrant.
    """
    if "allowed_addresses" in changes:
        if actor.principal is not None:
            _require_within(actor.principal, changes["allowed_addresses"])
        changes["allowed_addresses"] = texts_of(changes["allowed_addresses"])
    if grants is not None:
        if actor.principal is not None:
            _require_covered(actor.principal.grants, grants)
        changes["grants"] = [grant.json() for grant in grants]
    with transaction.atomic():
        row = _lock_key(actor, public_id)
        if row.revoked_at is not None:
            raise NotFound("The key is revoked.", field="public_id")
        require_unchanged(Resource("key", actor.zone_id, public_id), if_match)
        changed = {name: new for name, new in changes.items() if getattr(row, name) != new}
        if changed:
            for name, new in changed.items():
                setattr(row, name, new)
            row.save(update_fields=[*changed])
            announce_all(zone=actor.zone, announcements=[_change("key.changed", row)])
    return row


def revoke_key(*, actor: Actor, public_id: str, if_match: int | None = None) -> ApiKey:
    """Revoke the key and its connection tokens, everywhere within a second. Idempotent."""
    with transaction.atomic():
        row = _lock_key(actor, public_id)
        require_unchanged(Resource("key", actor.zone_id, public_id), if_match)
        if row.revoked_at is None:
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])
            announce_all(zone=actor.zone, announcements=[_change("key.revoked", row)])
    return row


def revoke_keys_of(*, client: Client) -> list[Announcement]:
    """Revoke all keys of a client whose row is locked; return the announcements to append."""
    keys = ApiKey.objects.filter(client=client, revoked_at__isnull=True).order_by("pk")
    ended = [*keys.select_related("client").select_for_update(of=("self",), no_key=True)]
    ApiKey.objects.filter(pk__in=[key.pk for key in ended]).update(revoked_at=timezone.now())
    return [_change("key.revoked", key) for key in ended]


def mint(*, own: tuple[Grant, ...], claims: Claims, lifetime_s: int) -> dict[str, Any]:
    """Mint a connection token of a key, or of an operator's login in one zone, with its grants or
    narrower ones. Raises InvalidField, WiderGrant.
    """
    if claims.grants is not None:
        if len(claims.grants) > limits.CONNECTION_TOKEN_GRANTS_MAX:
            message = f"A token has at most {limits.CONNECTION_TOKEN_GRANTS_MAX} grants of its own."
            raise InvalidField(message, field="grants")
        _require_covered(own, claims.grants)
    clock = SystemClock()
    token = mint_token(settings.ENV.secret_key, claims, lifetime_s, clock)
    end_s = clock.now_us() // 1_000_000 + lifetime_s
    return {"token": token, "expires_at": end_s * 1_000_000}


def _lock_key(actor: Actor, public_id: str) -> ApiKey:
    keys = ApiKey.objects.select_related("client").select_for_update(of=("self",), no_key=True)
    row = keys.filter(client__zone_id=actor.zone_id, public_id=public_id).first()
    if row is None:
        raise NotFound("This zone has no such key.", field="public_id")
    return row


def _require_covered(own: tuple[Grant, ...], requested: tuple[Grant, ...]) -> None:
    """Raise WiderGrant, with the index, unless an own grant covers each requested one."""
    for index, grant in enumerate(requested):
        if not covers(own, grant):
            raise WiderGrant(field=f"grants.{index}", grant=grant.json())


def _require_within(principal: Principal, networks: Networks | None) -> None:
    """Raise WiderGrant if a key for the networks could be used from where the own one may not."""
    if not are_within(networks, principal.networks):
        raise WiderGrant(field="allowed_addresses")


def _change(type: str, row: ApiKey) -> Announcement:
    client = row.client
    more = {"client": client.name, "grants": row.grants}
    if row.allowed_addresses is not None:
        more["allowed_addresses"] = row.allowed_addresses
    return change_of(type, client.zone_id, row.public_id, **more)
