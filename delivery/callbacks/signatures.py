"""The signatures of callbacks, as Standard Webhooks specifies: `v1` (HMAC-SHA256) and `v1a`
(Ed25519). Plain module.
"""

import base64
import hmac
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Signer(NamedTuple):
    """A key that signs callbacks, in microseconds since 1970 until `until_us` (None: no end)."""

    version: str  # v1 or v1a
    sign: Callable[[bytes], bytes]
    until_us: int | None = None


def signer(version: str, key: bytes, until_us: int | None = None) -> Signer:
    """Return a signer; `key` is the raw key: of HMAC for `v1`, 32 bytes of Ed25519 for `v1a`."""
    if version == "v1a":
        return Signer(version, Ed25519PrivateKey.from_private_bytes(key).sign, until_us)
    return Signer(version, lambda signed: hmac.digest(key, signed, "sha256"), until_us)


def sign(signers: Sequence[Signer], message: str, timestamp_s: int, body: bytes) -> str:
    """Return the header `webhook-signature`: a signature of `id.timestamp.body` by each signer that
    has not ended, in base64, separated by spaces.
    """
    signed = b"%b.%d.%b" % (message.encode(), timestamp_s, body)
    now_us = timestamp_s * 1_000_000
    return " ".join(
        f"{version},{base64.b64encode(make(signed)).decode()}"
        for version, make, until_us in signers
        if until_us is None or now_us < until_us
    )
