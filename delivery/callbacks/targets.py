"""How to call an endpoint, from its settings and its decrypted secrets. SQL module."""

from collections.abc import Iterable

from delivery.callbacks.claims import CallbackEndpoint
from delivery.callbacks.post import CallbackTarget, target_of
from delivery.callbacks.signatures import Signer, signer
from registrations.endpoints.sealed import SealedSecret
from registrations.endpoints.secrets import Keyring, Unsealable


def target_of_endpoint(
    keyring: Keyring, endpoint: CallbackEndpoint, sealed: Iterable[SealedSecret]
) -> CallbackTarget:
    """Return how to call an endpoint. One that cannot be called must not block the others: its
    target has a `fault`.
    """
    try:
        return target_of(endpoint.url, _signers(keyring, endpoint, sealed), endpoint.zone)
    except (Unsealable, ValueError) as error:
        return CallbackTarget(endpoint.url, None, "", "", (), str(error))


def _signers(
    keyring: Keyring, endpoint: CallbackEndpoint, sealed: Iterable[SealedSecret]
) -> list[Signer]:
    """Return the signers, the current ones first. A previous secret that cannot be decrypted is
    left out: giving the endpoint a new secret is the remedy for a lost key. Raises Unsealable.
    """
    versions = ("v1", "v1a") if endpoint.signature == "both" else (endpoint.signature,)
    found = []
    for each in sealed:
        if each.kind not in versions:
            continue
        try:
            found.append(signer(each.kind, keyring.unseal(each.sealed), each.expires_at_us))
        except Unsealable:
            if each.expires_at_us is None:
                raise
    if not found:
        raise Unsealable("the endpoint has no secret; give it one")
    return found
