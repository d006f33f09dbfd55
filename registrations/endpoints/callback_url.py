"""Validation of the text of URLs that the hub calls. Plain module.

The text is checked when a URL is stored; the address is checked by
`delivery.callbacks.guard.Guard` whenever the hub connects.
"""

import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidField
from registrations.endpoints.addresses import (
    Address,
    CallbackAddresses,
    ends_in_number,
    fixed_address,
    is_name,
    plain_address,
)
from registrations.errors import RefusedAddress

_PORTS = {"http": 80, "https": 443}
_TEXT = re.compile(r"[!-~]+")  # printable ASCII: a name in another script comes as punycode
# One reading only: what parsers disagree about, such as text after a bracket, is refused.
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]+)(?::(?P<port>[0-9]{1,5}))?")
_HOST_CHARS_MAX = 254


class _Authority(NamedTuple):
    """The host of a URL in lower case, an IPv6 address in brackets, and its port."""

    host: str
    port: int


def valid_url(url: Any, addresses: CallbackAddresses, *, field: str) -> str:
    """Return the URL if it is valid. Raises InvalidField, FieldTooLong or RefusedAddress at
    `field`.

    Every URL that a client may give and the hub will call is checked by this function when it is
    stored, for every purpose (callbacks, challenges, handshakes, tokens), and is called through
    `delivery.callbacks.client.HttpClient` only, whose guard checks every address before it
    connects. This check alone protects nothing: it cannot know where a name leads.
    """
    if not isinstance(url, str):
        raise InvalidField("A URL is a string.", field=field)
    if len(url) > limits.URL_CHARS_MAX:
        raise FieldTooLong(field=field, chars_max=limits.URL_CHARS_MAX)
    if not _TEXT.fullmatch(url):
        raise InvalidField(
            "A URL has printable ASCII characters only, without spaces.", field=field
        )
    authority = _authority(url, field)
    if "#" in url:
        raise InvalidField("A callback URL has no fragment.", field=field)
    _check_host(authority, addresses, field)
    return url


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a valid URL, also of a sink's, which may name several hosts
    with their ports.
    """
    parts = urlsplit(url)
    if "," in parts.netloc:
        return parts.scheme, parts.netloc.lower(), 0
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


def _authority(url: str, field: str) -> _Authority:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidField("This is not a URL.", field=field) from None
    if parts.scheme not in _PORTS or not url.lower().startswith(f"{parts.scheme}://"):
        raise InvalidField("A callback URL begins with http:// or https://.", field=field)
    if "@" in parts.netloc:
        raise InvalidField("A callback URL has no user name and no password.", field=field)
    if not parts.netloc:
        raise InvalidField("A callback URL names a host.", field=field)
    found = _AUTHORITY.fullmatch(parts.netloc)
    if found is None:
        raise InvalidField("This is not a URL.", field=field)
    port = int(found["port"] or _PORTS[parts.scheme])
    if not 0 < port < 1 << 16:
        raise InvalidField("The port of a callback URL is from 1 to 65535.", field=field)
    return _Authority(found["host"].lower(), port)


def _check_host(authority: _Authority, addresses: CallbackAddresses, field: str) -> None:
    host = authority.host.strip("[]")
    if "%" in host:
        raise InvalidField(
            "The host in a callback URL has no zone and is not percent-encoded.", field=field
        )
    address = plain_address(host)
    if authority.host.startswith("["):
        if address is None or ":" not in host:
            raise InvalidField("In brackets, a callback URL has an IPv6 address.", field=field)
    elif address is None:
        address = _address_of_name(host, field)
    if address is not None and not addresses.allowed(address, host, authority.port):
        raise RefusedAddress(field=field)


def _address_of_name(host: str, field: str) -> Address | None:
    """Return the address of a name that has a fixed one, else None."""
    if not is_name(host) or len(host) > _HOST_CHARS_MAX:
        raise InvalidField("A callback URL names a host.", field=field)
    if ends_in_number(host):
        raise InvalidField("Write the address as four decimal numbers.", field=field)
    return fixed_address(host)
