"""The secrets of endpoints: generated, parsed and encrypted. Clients see signing keys in the forms
of Standard Webhooks, `whsec_`, `whsk_` or `whpk_` and base64. The database holds every secret
encrypted under a key derived from EVENTHUB_SECRET_KEY, so a copy of the tables signs nothing. Plain
module.
"""

import base64
import binascii
import hmac
import os
import secrets
from collections.abc import Sequence
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PREFIX, PUBLIC_PREFIX = "whsec_", "whpk_"
BYTES_MIN, BYTES_MAX = 24, 64  # allowed by Standard Webhooks
_BYTES = 32
_NONCE_BYTES = 12
_VERSION = b"\x01"  # of the sealed form
_KEY_LOST = (
    "a secret of the endpoint cannot be decrypted: it was encrypted under another"
    " EVENTHUB_SECRET_KEY. Add the former key to EVENTHUB_SECRET_KEY_FALLBACKS of every worker, or"
    " set the secret again"
)


class Unsealable(Exception):
    """The secret was encrypted under another EVENTHUB_SECRET_KEY, or is damaged."""


class Keyring:
    """The hub's secret keys: EVENTHUB_SECRET_KEY, which encrypts, and the former ones, which
    decrypt too.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)

    def seal(self, secret: bytes) -> bytes:
        """Encrypt and authenticate a secret (AES-256-GCM) under a key derived from the first."""
        nonce = os.urandom(_NONCE_BYTES)
        return _VERSION + nonce + _cipher(self._keys[0]).encrypt(nonce, secret, _VERSION)

    def unseal(self, sealed: bytes) -> bytes:
        """Decrypt a secret that `seal` encrypted under one of the keys. Raises Unsealable."""
        return self._unseal(sealed)[0]

    def is_current(self, sealed: bytes) -> bool:
        """Return whether the secret is encrypted under the first key. Raises Unsealable if it is
        under none of the keys.
        """
        return self._unseal(sealed)[1] == self._keys[0]

    def digest(self, text: str) -> str:
        """Return the last four characters of a keyed digest: they compare two secrets, and do not
        help to guess one.
        """
        key = _derived(self._keys[0], b"eventhub endpoint digest")
        return hmac.digest(key, text.encode(), "sha256").hex()[-4:]

    def _unseal(self, sealed: bytes) -> tuple[bytes, str]:
        """Return the secret and the key. Keys are tried: GCM authenticates, so only one fits."""
        version, nonce, data = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        if version != _VERSION or len(nonce) != _NONCE_BYTES:
            raise Unsealable("a secret of the endpoint is damaged; set it again")
        for key in self._keys:
            try:
                return _cipher(key).decrypt(nonce, data, _VERSION), key
            except InvalidTag:
                continue
        raise Unsealable(_KEY_LOST)


@cache
def _derived(secret_key: str, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=purpose).derive(secret_key.encode())


@cache
def _cipher(secret_key: str) -> AESGCM:
    return AESGCM(_derived(secret_key, b"eventhub endpoint secret"))


def new_secret() -> bytes:
    """Return 32 random bytes: a key of HMAC-SHA256, or of Ed25519."""
    return secrets.token_bytes(_BYTES)


def secret_text(secret: bytes) -> str:
    """Return a secret as clients see it: `whsec_` and base64."""
    return PREFIX + base64.b64encode(secret).decode()


def public_key_text(secret: bytes) -> str:
    """Return the public key of an Ed25519 key of 32 bytes: `whpk_` and base64."""
    public = Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    return PUBLIC_PREFIX + base64.b64encode(public).decode()


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
