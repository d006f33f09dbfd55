"""Verification of callbacks for receivers, and signing for tests of a receiver: Standard Webhooks
v1 and v1a. Plain module.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TOLERANCE_S = 300  # how far the sender's clock may be from ours
_PREFIX, _PUBLIC_PREFIX = "whsec_", "whpk_"


class UnverifiedCallback(Exception):
    """The request carries no valid signature of this secret; answer 401 and drop it."""


def verify(
    secret: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now_s: float | None = None,
) -> str:
    """Return the id of the delivery (`webhook-id`), which is the same for every attempt: keep it to
    recognise repeats.

    `secret` is the endpoint's `whsec_…`, or its public key `whpk_…` if it signs with `v1a`, or
    several of them: one signature by one of them is enough. Header names are case-insensitive;
    `body` is the raw body.
    Raises UnverifiedCallback for a wrong or missing signature, or a timestamp more than five
    minutes off.
    """
    found = {name.lower(): value for name, value in headers.items()}
    message_id = found.get("webhook-id", "")
    timestamp = found.get("webhook-timestamp", "")
    if not message_id or not timestamp.isascii() or not timestamp.isdigit():
        raise UnverifiedCallback("The webhook-id or webhook-timestamp header is missing.")
    if abs((time.time() if now_s is None else now_s) - int(timestamp)) > TOLERANCE_S:
        raise UnverifiedCallback("The timestamp is too far from now: a replay, or a wrong clock.")
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = [each.partition(",") for each in found.get("webhook-signature", "").split()]
    for key in [secret] if isinstance(secret, str) else secret:
        for version, _, text in signatures:
            if _is_signed(key, version, _decoded(text), signed):
                return message_id
    raise UnverifiedCallback("None of the request's signatures was made with this secret.")


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()


def _is_signed(key: str, version: str, signature: bytes, signed: bytes) -> bool:
    if not key.startswith(_PUBLIC_PREFIX):
        expected = hmac.digest(_key(key), signed, hashlib.sha256)
        return version == "v1" and hmac.compare_digest(signature, expected)
    if version != "v1a":
        return False
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key.removeprefix(_PUBLIC_PREFIX)))
    try:
        public.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_PREFIX))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
