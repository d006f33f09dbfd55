"""The secrets of endpoints, with which the hub signs callbacks: generated, parsed and encrypted.
Clients see the form of Standard Webhooks, `whsec_` and base64. The database holds the secret
encrypted under a key derived from EVENTHUB_SECRET_KEY, so a copy of the tables signs nothing. Plain
module.
"""

import base64
import binascii
import os
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PREFIX = "whsec_"
BYTES_MIN, BYTES_MAX = 24, 64  # allowed by Standard Webhooks
_BYTES = 32
_NONCE_BYTES = 12
_VERSION = b"\x01"  # of the sealed form


class Unsealable(Exception):
    """The secret was encrypted under another EVENTHUB_SECRET_KEY, or is damaged."""


def new_secret() -> bytes:
    """Return 32 random bytes."""
    return secrets.token_bytes(_BYTES)


def secret_text(secret: bytes) -> str:
    """Return a secret as clients see it: `whsec_` and base64."""
    return PREFIX + base64.b64encode(secret).decode()


def parse_secret(text: str) -> bytes:
    """Parse the text of a secret. Raises ValueError with a message for the client."""
    if not text.startswith(PREFIX):
        raise ValueError(f"A secret is {PREFIX} followed by base64.")
    try:
        secret = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"A secret is {PREFIX} followed by base64.") from None
    if not BYTES_MIN <= len(secret) <= BYTES_MAX:
        raise ValueError(f"A secret has {BYTES_MIN} to {BYTES_MAX} bytes.")
    return secret


def seal(secret_key: str, secret: bytes) -> bytes:
    """Encrypt and authenticate a secret (AES-256-GCM) under a key derived from the hub's."""
    nonce = os.urandom(_NONCE_BYTES)
    return _VERSION + nonce + _cipher(secret_key).encrypt(nonce, secret, _VERSION)


def unseal(secret_key: str, sealed: bytes) -> bytes:
    """Decrypt a secret that `seal` encrypted. Raises Unsealable."""
    version, nonce, data = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
    if version != _VERSION or len(nonce) != _NONCE_BYTES:
        raise Unsealable("not a sealed secret")
    try:
        return _cipher(secret_key).decrypt(nonce, data, _VERSION)
    except InvalidTag:
        raise Unsealable("the secret was sealed under another key") from None


def _cipher(secret_key: str) -> AESGCM:
    key = HKDF(SHA256(), 32, salt=None, info=b"eventhub endpoint secret").derive(
        secret_key.encode()
    )
    return AESGCM(key)
