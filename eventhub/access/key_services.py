"""Makes, changes and revokes API keys.

Nobody gives more than they have.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import models, transaction
from django.utils import timezone

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.grants import Grant
from eventhub.access.keys import NewKey, new_key
from eventhub.access.models import ApiKey, Client
from eventhub.access.system import announce
from eventhub.access.token_services import require_covered
from eventhub.errors import InvalidField, LimitReached, NotFound, WiderGrant
from eventhub.eventlog.changes import Resource
from eventhub.eventlog.system import Announcement

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KeyTerms(NamedTuple):
    """What a new key may do, what it is called, and when it ends (None: never)."""

    grants: tuple[Grant, ...]
    label: str = ""
    expires_at: datetime | None = None


class IssuedKey(NamedTuple):
    """A stored key with its text, which nothing can show again."""

    row: ApiKey
    text: str


def issue_key(
    *, actor: Actor, client: Client, terms: KeyTerms, made: NewKey | None = None
) -> IssuedKey:
    """A new key of the client.

    A key's own end is the end of the keys it makes, unless they end before.
    """
    if terms.expires_at is not None and terms.expires_at <= timezone.now():
        raise InvalidField("The end must lie in the future.", field="expires_at")
    terms = _within(actor, terms)
    made = made or new_key()
    with transaction.atomic():
        live = Client.objects.filter(pk=client.pk, deleted_at__isnull=True)
        if live.select_for_update(no_key=True).first() is None:
            raise NotFound("This zone has no such client.", field="client")
        if live_keys(client_id=client.pk).count() >= limits.KEYS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.KEYS_PER_CLIENT_MAX)
        row = ApiKey.objects.create(
            client=client,
            public_id=made.public_id,
            digest=made.digest,
            label=terms.label,
            grants=[grant.json() for grant in terms.grants],
            expires_at=terms.expires_at,
        )
        _announce(actor, "key.created", row)
    return IssuedKey(row, made.text)


def live_keys(*, client_id: int) -> "models.QuerySet[ApiKey]":
    """The client's keys that are neither revoked nor expired."""
    ends = models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=timezone.now())
    return ApiKey.objects.filter(ends, client_id=client_id, revoked_at__isnull=True)


class KeyChange(NamedTuple):
    """Another label or other grants; None leaves them."""

    grants: tuple[Grant, ...] | None = None
    label: str | None = None


def key_resource(row: ApiKey) -> Resource:
    return Resource("key", row.client.zone_id, row.public_id)


def change_key(
    *, actor: Actor, public_id: str, change: KeyChange, if_match: int | None = None
) -> ApiKey:
    """NotFound for a revoked key: it stays as it ended."""
    grants, label = change
    if grants is not None:
        _require_covered(actor, grants)
    with transaction.atomic():
        row = _lock_key(actor, public_id)
        if row.revoked_at is not None:
            raise NotFound("The key is revoked.", field="public_id")
        require_unchanged(key_resource(row), if_match)
        before = (row.grants, row.label)
        row.grants = row.grants if grants is None else [grant.json() for grant in grants]
        row.label = row.label if label is None else label
        if (row.grants, row.label) != before:
            row.save(update_fields=["grants", "label"])
            _announce(actor, "key.changed", row)
    return row


def revoke_key(*, actor: Actor, public_id: str, if_match: int | None = None) -> ApiKey:
    """End the key and its connection tokens, everywhere within a second. Again: nothing changes."""
    with transaction.atomic():
        row = _lock_key(actor, public_id)
        require_unchanged(key_resource(row), if_match)
        if row.revoked_at is None:
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])
            _announce(actor, "key.revoked", row)
    return row


def revoke_keys_of(*, client: Client) -> list[Announcement]:
    """End all keys of a client whose row is locked; the caller announces it."""
    keys = list(
        ApiKey.objects.select_for_update(no_key=True)
        .filter(client=client, revoked_at__isnull=True)
        .order_by("pk")
    )
    ApiKey.objects.filter(pk__in=[key.pk for key in keys]).update(revoked_at=timezone.now())
    return [
        Announcement(
            "key.revoked",
            {"client": client.name, "key": key.public_id, "grants": key.grants},
            Resource("key", client.zone_id, key.public_id),
        )
        for key in keys
    ]


def _lock_key(actor: Actor, public_id: str) -> ApiKey:
    keys = ApiKey.objects.select_related("client").select_for_update(of=("self",), no_key=True)
    row = keys.filter(client__zone_id=actor.zone_id, public_id=public_id).first()
    if row is None:
        raise NotFound("This zone has no such key.", field="public_id")
    return row


def _within(actor: Actor, terms: KeyTerms) -> KeyTerms:
    _require_covered(actor, terms.grants)
    own = actor.principal.expires_at_us if actor.principal else None
    if own is None:
        return terms
    end = _EPOCH + timedelta(microseconds=own)
    if terms.expires_at is not None and terms.expires_at > end:
        raise WiderGrant(field="expires_at")
    return terms._replace(expires_at=terms.expires_at or end)


def _require_covered(actor: Actor, grants: tuple[Grant, ...]) -> None:
    """An operator may give everything."""
    if actor.principal is not None:
        require_covered(actor.principal.grants, grants)


def _announce(actor: Actor, type: str, row: ApiKey) -> None:
    attributes: dict[str, Any] = {
        "client": row.client.name,
        "key": row.public_id,
        "grants": row.grants,
    }
    announce(zone=actor.zone, type=type, attributes=attributes, resource=key_resource(row))
