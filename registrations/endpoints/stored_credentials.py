"""Stores the credentials of endpoints, encrypted. Django module."""

import json
from collections.abc import Mapping
from typing import Any

from eventhub.base.errors import InvalidField
from registrations.endpoints.credentials import KINDS, packed, shown, unpacked
from registrations.endpoints.own_headers import InvalidHeader, merged_headers
from registrations.endpoints.secrets import Unsealable
from registrations.endpoints.signing_secrets import keyring
from registrations.errors import CredentialsBound, CredentialsUnreadable
from registrations.models import Endpoint, EndpointSecret, EndpointToken


def store(endpoint: Endpoint, given: Mapping[str, Any], *, other_origin: bool = False) -> bool:
    """Store the given kinds of credentials of an endpoint whose row is locked; None removes one.
    Headers are merged into the stored ones; others are replaced. Return whether any differs from
    what is stored.

    `other_origin`: the URL gets another scheme, host or port, for which the stored ones are not
    meant. Raises CredentialsBound, CredentialsUnreadable, InvalidField.
    """
    rows = {
        row.kind: row for row in EndpointSecret.objects.filter(endpoint=endpoint, kind__in=KINDS)
    }
    values = {kind: value for kind, value in given.items() if value != {}}  # no header is given
    if other_origin and (bound := sorted(rows.keys() - values.keys())):
        raise CredentialsBound(field=bound[0])
    if values.get("headers"):
        before = {} if other_origin else _stored_headers(rows.get("headers"))
        values["headers"] = _merged(before, values["headers"])
    _check_authorization(rows, values)
    changed = {kind: value for kind, value in values.items() if _differs(rows.get(kind), value)}
    if "authentication" in changed:
        EndpointToken.objects.filter(endpoint=endpoint).delete()
    for kind, value in changed.items():
        EndpointSecret.objects.filter(endpoint=endpoint, kind=kind).delete()
        if value:
            EndpointSecret.objects.create(
                endpoint=endpoint,
                kind=kind,
                sealed=keyring().seal(packed(value)),
                public=json.dumps(shown(kind, value, keyring())),
            )
    return bool(changed)


def _merged(before: Mapping[str, str], given: Mapping[str, str | None]) -> dict[str, str]:
    try:
        return merged_headers(before, given)
    except InvalidHeader as error:
        raise InvalidField(str(error), field="headers") from None


def _stored_headers(row: EndpointSecret | None) -> dict[str, str]:
    if row is None:
        return {}
    try:
        return unpacked(keyring().unseal(bytes(row.sealed)))
    except Unsealable:
        raise CredentialsUnreadable(field="headers") from None


def _differs(row: EndpointSecret | None, value: dict[str, Any] | None) -> bool:
    """Return whether a credential differs from the stored one, or that cannot be decrypted."""
    if row is None:
        return bool(value)
    try:
        return unpacked(keyring().unseal(bytes(row.sealed))) != value
    except Unsealable:
        return True


def _check_authorization(rows: Mapping[str, EndpointSecret], values: Mapping[str, Any]) -> None:
    """Raise InvalidField for a header `authorization` beside an authentication."""
    if "headers" in values:
        names = set(values["headers"] or ())
    else:
        row = rows.get("headers")
        names = {one["name"] for one in json.loads(row.public or "[]")} if row else set()
    authentication = (
        values["authentication"] if "authentication" in values else rows.get("authentication")
    )
    if authentication and "authorization" in names:
        raise InvalidField(
            "The endpoint has an `authentication` and a header `authorization`; remove one.",
            field="headers",
        )
