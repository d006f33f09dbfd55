"""Verification of callbacks for receivers, and signing for tests of a receiver: Standard Webhooks
v1. Plain module.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping

TOLERANCE_S = 300  # how far the sender's clock may be from ours
_PREFIX = "whsec_"


class UnverifiedCallback(Exception):
    """The request carries no valid signature of this secret; answer 401 and drop it."""


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, *, now_s: float | None = None
) -> str:
    """Return the id of the delivery (`webhook-id`), which is the same for every attempt: keep it to
    recognise repeats.

    `secret` is the endpoint's `whsec_…`; header names are case-insensitive; `body` is the raw body.
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
    expected = hmac.digest(_key(secret), signed, hashlib.sha256)
    for signature in found.get("webhook-signature", "").split():
        version, _, text = signature.partition(",")
        if version == "v1" and hmac.compare_digest(_decoded(text), expected):
            return message_id
    raise UnverifiedCallback("None of the request's signatures was made with this secret.")


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_PREFIX))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
