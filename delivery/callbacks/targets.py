"""How to call an endpoint, from its settings and its decrypted secrets. SQL module."""

import base64
from collections.abc import Iterable, Mapping
from ssl import SSLContext
from typing import Any

from delivery.callbacks.claims import CallbackEndpoint
from delivery.callbacks.oauth2 import token_request
from delivery.callbacks.post import CallbackTarget, target_of
from delivery.callbacks.signatures import Signer, signer
from delivery.callbacks.sink_store import SinkTarget
from eventhub.base import limits
from registrations.endpoints.certificates import tls_context
from registrations.endpoints.credentials import SECRET_FIELDS, unpacked
from registrations.endpoints.sealed import SealedSecret
from registrations.endpoints.secrets import Keyring, Unsealable
from registrations.sinks.registry import HTTPS, SINKS, stored_settings


def target_of_endpoint(
    keyring: Keyring, endpoint: CallbackEndpoint, sealed: Iterable[SealedSecret]
) -> CallbackTarget:
    """Return how to call an endpoint. One that cannot be called must not block the others: its
    target has a `fault`.
    """
    by_kind: dict[str, list[SealedSecret]] = {}
    for each in sealed:
        by_kind.setdefault(each.kind, []).append(each)
    try:
        if endpoint.kind != HTTPS:
            return _sink(keyring, endpoint, by_kind)
        target = target_of(endpoint.url, _signers(keyring, endpoint, by_kind), endpoint.zone)
        return _with_credentials(target, keyring, by_kind)
    except (Unsealable, ValueError) as error:
        return CallbackTarget(endpoint.url, None, "", "", (), str(error))


def _sink(
    keyring: Keyring, endpoint: CallbackEndpoint, sealed: Mapping[str, list[SealedSecret]]
) -> CallbackTarget:
    """Return how to store the events of an endpoint. Raises Unsealable, ValueError."""
    kind = SINKS.get(endpoint.kind)
    if kind is None:
        raise ValueError(f"this release knows no endpoints of the kind {endpoint.kind}")
    given = [unpacked(keyring.unseal(each.sealed)) for each in sealed.get("authentication", ())]
    if not given and kind.needs_authentication:
        raise ValueError("the endpoint has no authentication; give it one")
    credentials = given[0] if given else {}
    sink = SinkTarget(
        endpoint.id,
        endpoint.changed_at_us,
        kind,
        endpoint.url,
        stored_settings(kind, endpoint.settings or "{}"),
        credentials,
        endpoint.zone,
        endpoint.timeout_s or limits.CALLBACK_TIMEOUT_S_MAX,
        _context(keyring, sealed),
    )
    secrets = tuple(credentials[SECRET_FIELDS[one["type"]]] for one in given)
    return CallbackTarget(endpoint.url, None, "", "", (), secrets=secrets, sink=sink)


def _context(keyring: Keyring, sealed: Mapping[str, list[SealedSecret]]) -> SSLContext | None:
    """Return the certificates of an endpoint, if it has its own. Raises Unsealable, ValueError."""
    for row in sealed.get("tls", ()):
        value = unpacked(keyring.unseal(row.sealed))
        return tls_context(value["certificate"], value["private_key"], value["ca"])
    return None


def _signers(
    keyring: Keyring, endpoint: CallbackEndpoint, sealed: Mapping[str, list[SealedSecret]]
) -> list[Signer]:
    """Return the signers, the current ones first. A previous secret that cannot be decrypted is
    left out: giving the endpoint a new secret is the remedy for a lost key. Raises Unsealable.
    """
    versions = ("v1", "v1a") if endpoint.signature == "both" else (endpoint.signature,)
    found = []
    for each in (one for version in versions for one in sealed.get(version, ())):
        try:
            found.append(signer(each.kind, keyring.unseal(each.sealed), each.expires_at_us))
        except Unsealable:
            if each.expires_at_us is None:
                raise
    if not found:
        raise Unsealable("the endpoint has no secret; give it one")
    return found


def _with_credentials(
    target: CallbackTarget, keyring: Keyring, sealed: Mapping[str, list[SealedSecret]]
) -> CallbackTarget:
    """Add headers, authentication and certificates to a target. Raises Unsealable, ValueError."""
    for [row] in (sealed[kind] for kind in ("headers", "authentication", "tls") if kind in sealed):
        value = unpacked(keyring.unseal(row.sealed))
        if row.kind == "headers":
            target = _with_headers(target, value)
        elif row.kind == "authentication":
            target = _with_authentication(target, row, value)
        elif target.origin is not None and target.origin.tls:
            context = tls_context(value["certificate"], value["private_key"], value["ca"])
            target = target._replace(origin=target.origin._replace(context=context))
    return target


def _with_headers(target: CallbackTarget, headers: Mapping[str, str]) -> CallbackTarget:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    secrets = (*target.secrets, *headers.values())
    return target._replace(headers=target.headers + lines, secrets=secrets)


def _with_authentication(
    target: CallbackTarget, row: SealedSecret, value: Mapping[str, Any]
) -> CallbackTarget:
    secret = value[SECRET_FIELDS[value["type"]]]
    if value["type"] == "oauth2_client_credentials":
        zone = target.origin.zone if target.origin else ""
        oauth2 = token_request(row.endpoint_id, row.id, zone, value)
        return target._replace(oauth2=oauth2, secrets=(*target.secrets, *oauth2.secrets))
    text = f"Bearer {secret}"
    if value["type"] == "basic":
        pair = f"{value['username']}:{secret}".encode()
        text = f"Basic {base64.b64encode(pair).decode()}"
    found = _with_headers(target, {"authorization": text})
    return found._replace(secrets=(*found.secrets, secret, text.partition(" ")[2]))
