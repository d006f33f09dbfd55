"""Which addresses the hub may call back. Plain.

Private, loopback, link-local, multicast and reserved addresses are refused, unless
EVENTHUB_CALLBACK_ALLOW names them: `host-or-CIDR[:port]`, comma-separated; an IPv6 address with a
port stands in brackets.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_BRACKETS = re.compile(r"\[(?P<host>[^\]]*)\](?:/(?P<bits>[0-9]+))?(?::(?P<port>[0-9]+))?")
_PORT = re.compile(r"(?P<host>[^:]*):(?P<port>[0-9]+)")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# IANA's special purposes that Python 3.11 takes for public
_SPECIAL: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "3fff::/20", "5f00::/16")
)
_COMPATIBLE = ipaddress.IPv6Network("::/96")  # an IPv4 address in the old form


class Allowed(NamedTuple):
    """One entry of the list: a network or a host's name, on one port or on all (None)."""

    network: Network | None
    host: str  # empty if there is a network
    port: int | None


class CallbackAddresses:
    """The rules with their exceptions."""

    def __init__(self, exceptions: Iterable[Allowed] = ()) -> None:
        self._exceptions = tuple(exceptions)

    def allowed(self, address: str | Address, host: str, port: int) -> bool:
        """True if a callback to `host` that leads to this address and port may be sent.

        A name in the exceptions stands for whatever address it leads to.
        """
        found = plain_address(address)
        if found is None:
            return False
        return is_public(found) or any(
            _names(exception, found, host, port) for exception in self._exceptions
        )


def parse_allowed(entries: Iterable[str]) -> CallbackAddresses:
    """The rules with the exceptions of the setting. Raises ValueError that names a bad entry."""
    return CallbackAddresses([_entry(text) for text in entries])


def plain_address(address: str | Address) -> Address | None:
    """The address that is really called: an IPv4 address inside an IPv6 one is that. None if the
    text is no address.
    """
    try:
        found = ipaddress.ip_address(str(address).partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv4Address):
        return found
    inside = found.ipv4_mapped or found.sixtofour
    if found in _NAT64 or (found in _COMPATIBLE and int(found) > 0xFFFF):
        inside = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return inside or found


def is_public(address: Address) -> bool:
    """True for what the whole Internet can reach, and one host answers."""
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and not (isinstance(address, ipaddress.IPv6Address) and address.is_site_local)
        and not any(address in network for network in _SPECIAL)
    )


def _entry(text: str) -> Allowed:
    host, port = text.strip(), None
    found = _BRACKETS.fullmatch(host) or _PORT.fullmatch(host)
    if found is not None:
        parts = found.groupdict()
        host = parts["host"] + (f"/{parts['bits']}" if parts.get("bits") else "")
        port = None if parts["port"] is None else int(parts["port"])
    if not host or (port is not None and not 0 < port < 1 << 16):
        raise ValueError(f"EVENTHUB_CALLBACK_ALLOW: not host-or-CIDR[:port]: {text!r}")
    try:
        return Allowed(ipaddress.ip_network(host, strict=False), "", port)
    except ValueError:
        if not re.fullmatch(r"[A-Za-z0-9._-]+", host):
            message = f"EVENTHUB_CALLBACK_ALLOW: not host-or-CIDR[:port]: {text!r}"
            raise ValueError(message) from None
        return Allowed(None, host.lower().rstrip("."), port)


def _names(exception: Allowed, address: Address, host: str, port: int) -> bool:
    if exception.port not in (None, port):
        return False
    if exception.network is not None:
        return address in exception.network
    return exception.host == host.lower().rstrip(".")
