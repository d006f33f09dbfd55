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


def store(endpoint: Endpoint, given: Mapping[str, Any], *, other_origin: bool = False) -> None:
    """Store the given kinds of credentials of an endpoint whose row is locked; None or an empty
    value removes one. Headers are merged into the stored ones; others are replaced.

    `other_origin`: the URL gets another scheme, host or port, for which the stored ones are not
    meant. Raises CredentialsBound, CredentialsUnreadable, InvalidField.
    """
    rows = {
        row.kind: row for row in EndpointSecret.objects.filter(endpoint=endpoint, kind__in=KINDS)
    }
    if other_origin and (bound := sorted(rows.keys() - given.keys())):
        raise CredentialsBound(field=bound[0])
    values = dict(given)
    if values.get("headers"):
        before = {} if other_origin else _stored(rows.get("headers"))
        values["headers"] = _merged(before, values["headers"])
    _check_authorization(rows, values)
    if "authentication" in values:
        EndpointToken.objects.filter(endpoint=endpoint).delete()
    for kind, value in values.items():
        EndpointSecret.objects.filter(endpoint=endpoint, kind=kind).delete()
        if value:
            EndpointSecret.objects.create(
                endpoint=endpoint,
                kind=kind,
                sealed=keyring().seal(packed(value)),
                public=json.dumps(shown(kind, value, keyring())),
            )


def _merged(before: Mapping[str, str], given: Mapping[str, str | None]) -> dict[str, str]:
    try:
        return merged_headers(before, given)
    except InvalidHeader as error:
        raise InvalidField(str(error), field="headers") from None


def _stored(row: EndpointSecret | None) -> dict[str, str]:
    if row is None:
        return {}
    try:
        return unpacked(keyring().unseal(bytes(row.sealed)))
    except Unsealable:
        raise CredentialsUnreadable(field="headers") from None


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
