"""API keys as text: `ehk_<public id>_<secret>`. Plain module.

The public id names a key in lists, logs and events. The secret is shown once and never stored: the
database has the SHA-256 of the whole text. A key has 256 random bits, so its digest needs no salt
and no slow hash.
"""

import hashlib
import re
import secrets
from typing import NamedTuple

PUBLIC_ID_CHARS = 12
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: it is read aloud
_SECRET_BYTES = 32
_KEY = re.compile(r"ehk_[a-z0-9]{12}_[A-Za-z0-9_-]{43}")
_PUBLIC_ID = re.compile(r"[a-z0-9]{12}")


class NewKey(NamedTuple):
    """A new key. `text` is the secret: show it once, store the digest."""

    public_id: str
    text: str
    digest: bytes


def new_key() -> NewKey:
    public_id = "".join(secrets.choice(_ALPHABET) for _ in range(PUBLIC_ID_CHARS))
    text = f"ehk_{public_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return NewKey(public_id, text, digest_of(text))


def digest_of(text: str) -> bytes:
    """Return the digest that is stored and looked up in place of the key."""
    return hashlib.sha256(text.encode()).digest()


def is_key(text: str) -> bool:
    """Return True if the text has the form of a key, valid or not."""
    return _KEY.fullmatch(text) is not None


def is_public_id(text: str) -> bool:
    return _PUBLIC_ID.fullmatch(text) is not None
