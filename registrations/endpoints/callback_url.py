"""Validation of the text of callback URLs; each callback checks the address. Plain module."""

import re
from typing import Any
from urllib.parse import SplitResult, urlsplit

from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidField
from registrations.endpoints.addresses import (
    CallbackAddresses,
    ends_in_number,
    is_name,
    plain_address,
)
from registrations.errors import RefusedAddress

_PORTS = {"http": 80, "https": 443}
_TEXT = re.compile(r"[!-~]+")  # printable ASCII: a name in another script comes as punycode
_HOST_CHARS_MAX = 254


def valid_url(url: Any, addresses: CallbackAddresses, *, field: str) -> str:
    """Return the URL if it is valid. Raises InvalidField, FieldTooLong or RefusedAddress at
    `field`.
    """
    if not isinstance(url, str):
        raise InvalidField("A URL is a string.", field=field)
    if len(url) > limits.URL_CHARS_MAX:
        raise FieldTooLong(field=field, chars_max=limits.URL_CHARS_MAX)
    if not _TEXT.fullmatch(url):
        raise InvalidField(
            "A URL has printable ASCII characters only, without spaces.", field=field
        )
    parts, port = _split(url, field)
    if "@" in parts.netloc:
        raise InvalidField("A callback URL has no user name and no password.", field=field)
    if "#" in url:
        raise InvalidField("A callback URL has no fragment.", field=field)
    _check_host(parts, port, addresses, field)
    return url


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a valid URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme]


def _split(url: str, field: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidField("This is not a URL.", field=field) from None
    if parts.scheme not in _PORTS or not url.lower().startswith(f"{parts.scheme}://"):
        raise InvalidField("A callback URL begins with http:// or https://.", field=field)
    if not parts.hostname or port == 0:
        raise InvalidField("A callback URL names a host.", field=field)
    return parts, port or _PORTS[parts.scheme]


def _check_host(parts: SplitResult, port: int, addresses: CallbackAddresses, field: str) -> None:
    host = parts.hostname or ""
    if "%" in host:
        raise InvalidField("The address in a callback URL has no zone.", field=field)
    address = plain_address(host)
    if address is None:
        if "[" in parts.netloc or not is_name(host) or len(host) > _HOST_CHARS_MAX:
            raise InvalidField("A callback URL names a host.", field=field)
        if ends_in_number(host):
            raise InvalidField("Write the address as four decimal numbers.", field=field)
        if host.removesuffix(".").rpartition(".")[2] == "localhost":
            address = plain_address("127.0.0.1")
    if address is not None and not addresses.allowed(address, host, port):
        raise RefusedAddress(field=field)
