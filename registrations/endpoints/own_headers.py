"""Headers that a client adds to the callbacks of an endpoint. Plain module."""

import re
from collections.abc import Mapping

from eventhub.base import limits

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token, RFC 9110
_VALUE = re.compile(r"[!-~]([\t -~]*[!-~])?")
_RESERVED = frozenset(
    {
        *("host", "user-agent", "accept", "accept-encoding", "connection", "keep-alive", "te"),
        *("trailer", "transfer-encoding", "upgrade", "expect", "date", "http2-settings"),
    }
)
_RESERVED_PREFIXES = ("content-", "webhook-", "ce-", "eventhub-", "proxy-")


class InvalidHeader(ValueError):
    """A header that callbacks cannot have: its name and a message for the client."""

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        super().__init__(message)


def check_header(name: str, value: str) -> None:
    """Check one header. Raises InvalidHeader."""
    if len(name) > limits.ENDPOINT_HEADER_NAME_CHARS_MAX or not _NAME.fullmatch(name):
        raise InvalidHeader(name, "This is not the name of a header.")
    lower = name.lower()
    if lower in _RESERVED or lower.startswith(_RESERVED_PREFIXES):
        raise InvalidHeader(name, "The hub sets this header itself.")
    if len(value) > limits.ENDPOINT_HEADER_VALUE_CHARS_MAX or not _VALUE.fullmatch(value):
        raise InvalidHeader(
            name,
            f"A header's value has 1 to {limits.ENDPOINT_HEADER_VALUE_CHARS_MAX:,} printable ASCII"
            " characters, without spaces at its ends.",
        )


def merged_headers(before: Mapping[str, str], given: Mapping[str, str | None]) -> dict[str, str]:
    """Return the headers after a change, by lower-case name; None removes one. Raises InvalidHeader
    if they are too many or too large together.
    """
    found = dict(before)
    for name, value in given.items():
        if value is None:
            found.pop(name.lower(), None)
        else:
            found[name.lower()] = value
    size = sum(len(name) + len(value) for name, value in found.items())
    if len(found) > limits.ENDPOINT_HEADERS_MAX or size > limits.ENDPOINT_HEADERS_CHARS_MAX:
        raise InvalidHeader(
            "",
            f"An endpoint has at most {limits.ENDPOINT_HEADERS_MAX} headers of its own, with"
            f" {limits.ENDPOINT_HEADERS_CHARS_MAX:,} characters in all.",
        )
    return found
