"""What all verifiers share: constant-time comparison, the tolerance of time stamps, and the reasons
of a refusal. Plain module.
"""

import base64
import binascii
import hmac
from typing import Literal, get_args

from eventhub.base import limits

Reason = Literal[
    "missing_signature",
    "malformed_signature",
    "wrong_signature",
    "outside_tolerance",
    "wrong_credentials",
    "wrong_secret_form",
]
REASONS = get_args(Reason)


class Unverified(Exception):
    """A request that the provider's secret does not prove; `detail` says what to check."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason: Reason = reason
        self.detail = detail
        super().__init__(detail)


def required_header(headers: dict[str, str], name: str) -> str:
    """Return a header that a signature needs. Raises Unverified."""
    found = headers.get(name.lower(), "")
    if not found:
        raise Unverified("missing_signature", f"The request has no header {name}.")
    return found


def require_recent(text: str, now_s: int, header: str) -> None:
    """Raise Unverified unless a time stamp in seconds is within the tolerance of the clock."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise Unverified("malformed_signature", f"{header} has no time stamp in seconds.")
    difference_s = now_s - int(text)
    if abs(difference_s) > limits.SOURCE_TOLERANCE_S:
        side = "before" if difference_s > 0 else "after"
        raise Unverified(
            "outside_tolerance",
            f"The time stamp is {abs(difference_s):,} s {side} the hub's clock;"
            f" {limits.SOURCE_TOLERANCE_S} s are tolerated.",
        )


def require_equal(expected: str, *given: str) -> None:
    """Raise Unverified unless one of the given signatures is the expected one; each is compared in
    constant time.
    """
    right = expected.encode()
    matches = [hmac.compare_digest(right, one.encode("utf-8", "replace")) for one in given]
    if not any(matches):
        raise Unverified(
            "wrong_signature",
            "The signature does not match: the secret is another one, or the body was changed.",
        )


def require_same_secret(expected: str, given: str) -> None:
    """Raise Unverified unless the request has the secret itself."""
    if not hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
        raise Unverified("wrong_credentials", "The credential is not the secret of the source.")


def hex_hmac(secret: bytes, content: bytes, algorithm: str = "sha256") -> str:
    """Return the HMAC in hexadecimal digits."""
    return hmac.digest(secret, content, algorithm).hex()


def base64_hmac(secret: bytes, content: bytes, algorithm: str = "sha256") -> str:
    """Return the HMAC in base64."""
    return base64.b64encode(hmac.digest(secret, content, algorithm)).decode()


def decode_base64(text: str) -> bytes:
    """Decode base64. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("This is not base64.") from None
