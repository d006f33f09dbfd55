"""The secrets that sign an endpoint's callbacks: one of each signature is current, and the ones
before it sign too until they expire. Django module.
"""

import functools
from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.functions import TransactionNow
from django.db.models import Q, QuerySet

from eventhub.base import limits
from eventhub.base.errors import LimitReached
from registrations.endpoints import secrets
from registrations.endpoints.secrets import Keyring
from registrations.errors import SecretInUse
from registrations.models import Endpoint, EndpointSecret

_VALID = Q(expires_at__isnull=True) | Q(expires_at__gt=TransactionNow())


@functools.cache
def keyring() -> Keyring:
    """Return the hub's secret keys."""
    return Keyring((settings.ENV.secret_key, *settings.ENV.secret_key_fallbacks))


def valid_secrets(endpoint_id: int) -> QuerySet[EndpointSecret]:
    """Return the signing secrets of an endpoint that have not expired; its credentials, of other
    kinds, are not among them.
    """
    return EndpointSecret.objects.filter(_VALID, endpoint_id=endpoint_id, kind__in=("v1", "v1a"))


def insert(endpoint: Endpoint, kind: str, secret: bytes, sealed: bytes) -> EndpointSecret:
    """Insert the current secret of a kind, of which the endpoint has none, and its encrypted form.
    The result has the text of a `v1` secret as `text`.
    """
    public = secrets.public_key_text(secret) if kind == "v1a" else None
    created: EndpointSecret = EndpointSecret.objects.create(
        endpoint=endpoint, kind=kind, sealed=sealed, public=public
    )
    created.text = secrets.secret_text(secret) if kind == "v1" else None
    return created


def insert_key_pair(endpoint: Endpoint) -> EndpointSecret:
    """Insert the first key pair of `v1a` of an endpoint."""
    secret = secrets.new_secret()
    return insert(endpoint, "v1a", secret, keyring().seal(secret))


def replace(endpoint: Endpoint, kind: str, secret: bytes | None, overlap_s: int) -> EndpointSecret:
    """Create a new current secret of an endpoint whose row is locked; the one before it is valid
    for `overlap_s` seconds more. Raises LimitReached.
    """
    _adopt(endpoint)
    own = EndpointSecret.objects.filter(endpoint=endpoint)
    own.exclude(_VALID).delete()
    if overlap_s and own.filter(kind=kind).count() >= limits.ENDPOINT_SECRETS_MAX:
        raise LimitReached(limit=limits.ENDPOINT_SECRETS_MAX)
    if overlap_s:
        end = TransactionNow() + timedelta(seconds=overlap_s)
        own.filter(kind=kind, expires_at__isnull=True).update(expires_at=end)
    else:
        own.filter(kind=kind).delete()
    secret = secret or secrets.new_secret()
    sealed = keyring().seal(secret)
    if kind == "v1":
        Endpoint.objects.filter(pk=endpoint.pk).update(secret=sealed)
    return insert(endpoint, kind, secret, sealed)


def revoke(secret: EndpointSecret) -> None:
    """Delete a previous secret. Raises SecretInUse for the current one."""
    if secret.expires_at is None:
        raise SecretInUse(field="secret")
    secret.delete()


def _adopt(endpoint: Endpoint) -> None:
    """Insert the secret of an endpoint that a process of the release before created."""
    EndpointSecret.objects.get_or_create(
        endpoint=endpoint,
        kind="v1",
        expires_at=None,
        defaults={"sealed": bytes(endpoint.secret), "created_at": endpoint.created_at},
    )
