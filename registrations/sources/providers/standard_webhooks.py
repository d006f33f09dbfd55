"""Standard Webhooks (https://www.standardwebhooks.com, specification 1.0): HMAC-SHA256 (`v1`) or
Ed25519 (`v1a`) of id, time stamp and body. Plain module.
"""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from registrations.endpoints.secrets import (
    BYTES_MAX,
    BYTES_MIN,
    PREFIX,
    PUBLIC_PREFIX,
    new_secret,
    secret_text,
)
from registrations.sources.providers.provider import NoOptions, Provider, usual_map
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import (
    Unverified,
    base64_hmac,
    decode_base64,
    require_equal,
    require_recent,
    required_header,
)

_PUBLIC_KEY_BYTES = 32


def verify(request: ReceivedRequest, secret: str, options: NoOptions, now_s: int) -> None:
    """Raise Unverified unless one of the signatures is of the secret, or of its public key."""
    id = required_header(request.headers, "webhook-id")
    time_stamp = required_header(request.headers, "webhook-timestamp")
    signatures = required_header(request.headers, "webhook-signature").split()
    require_recent(time_stamp, now_s, "webhook-timestamp")
    content = f"{id}.{time_stamp}.".encode() + request.body
    if secret.startswith(PUBLIC_PREFIX):
        _require_public(secret, content, [one[4:] for one in signatures if one[:4] == "v1a,"])
        return
    given = [one[3:] for one in signatures if one.startswith("v1,")]
    require_equal(base64_hmac(_key(secret), content), *given)


def check_secret(text: str) -> None:
    """Raise ValueError unless the text is `whsec_` or `whpk_` and base64 of a key."""
    if text.startswith(PUBLIC_PREFIX):
        if len(decode_base64(text.removeprefix(PUBLIC_PREFIX))) != _PUBLIC_KEY_BYTES:
            raise ValueError(f"A public key has {_PUBLIC_KEY_BYTES} bytes.")
        return
    if not text.startswith(PREFIX):
        raise ValueError(f"A secret is {PREFIX} (or {PUBLIC_PREFIX}) followed by base64.")
    if not BYTES_MIN <= len(_key(text)) <= BYTES_MAX:
        raise ValueError(f"A secret has {BYTES_MIN} to {BYTES_MAX} bytes.")


def _key(text: str) -> bytes:
    return decode_base64(text.removeprefix(PREFIX))


def _require_public(public_key: str, content: bytes, signatures: list[str]) -> None:
    key = Ed25519PublicKey.from_public_bytes(decode_base64(public_key.removeprefix(PUBLIC_PREFIX)))
    for one in signatures:
        try:
            key.verify(decode_base64(one), content)
        except (InvalidSignature, ValueError):
            continue
        return
    raise Unverified("wrong_signature", "No signature `v1a` is of this public key and body.")


PROVIDER = Provider(
    "standard-webhooks",
    "Standard Webhooks: a secret `whsec_…`, or a public key `whpk_…`",
    verify,
    usual_map(
        domain={"value": "Webhook"},
        type={"body": "/type", "default": "received"},
        id={"header": "webhook-id"},
        time={"header": "webhook-timestamp"},
    ),
    new_secret=lambda: secret_text(new_secret()),
    check_secret=check_secret,
)
