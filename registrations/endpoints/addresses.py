"""The address guard of callbacks (SSRF protection). Plain module.

Refused are all addresses in IANA's special-purpose registries, including those listed as globally
reachable (anycast services, AS112: no host of a client answers there), multicast, IPv6 outside of
global unicast, ISATAP, and platform services of cloud providers at public addresses, unless
EVENTHUB_CALLBACK_ALLOW names them: `[ZONE=]host-or-CIDR[:port]`, separated by commas, with an IPv6
address in brackets if a port follows. An entry without a zone is for all zones.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from eventhub.access.names import NAME

# returns the addresses of a host as getaddrinfo does; raises OSError
Resolve = Callable[[str], Awaitable[Iterable[tuple[Any, ...]]]]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_BRACKETS = re.compile(r"\[(?P<host>[^\]]*)\](?:/(?P<bits>[0-9]+))?(?::(?P<port>[0-9]+))?")
_PORT = re.compile(r"(?P<host>[^:]*):(?P<port>[0-9]+)")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_NO_ENTRY = (
    "not [ZONE=]host-or-CIDR[:port], such as 10.1.0.0/16, hooks.internal:8443 or [::1]:9000; a port"
    " is from 1 to 65535"
)
_NO_ADDRESS = "not an address; write four numbers from 0 to 255, such as 10.1.0.0/16 or 10.0.0.1"
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IANA allocates from (RFC 4291)
_ISATAP = 0x00005EFE  # of an interface identifier, but for bit 0x02000000 (RFC 5214)
# The registries' blocks, without those inside another; IPv6 within global unicast only.
# https://www.iana.org/assignments/iana-ipv4-special-registry (and iana-ipv6-special-registry)
_SPECIAL_IPV4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # "this network", RFC 791
        "10.0.0.0/8",  # private use, RFC 1918
        "100.64.0.0/10",  # shared address space, RFC 6598
        "127.0.0.0/8",  # loopback, RFC 1122
        "168.63.129.16/32",  # not IANA's: Azure's platform services, reached from every machine
        "169.254.0.0/16",  # link-local, RFC 3927
        "172.16.0.0/12",  # private use, RFC 1918
        "192.0.0.0/24",  # IETF protocol assignments, RFC 6890
        "192.0.2.0/24",  # documentation (TEST-NET-1), RFC 5737
        "192.31.196.0/24",  # AS112-v4, RFC 7535
        "192.52.193.0/24",  # AMT, RFC 7450
        "192.88.99.0/24",  # deprecated 6to4 relay anycast, RFC 7526
        "192.168.0.0/16",  # private use, RFC 1918
        "192.175.48.0/24",  # direct delegation AS112 service, RFC 7534
        "198.18.0.0/15",  # benchmarking, RFC 2544
        "198.51.100.0/24",  # documentation (TEST-NET-2), RFC 5737
        "203.0.113.0/24",  # documentation (TEST-NET-3), RFC 5737
        "224.0.0.0/4",  # multicast, RFC 5771
        "240.0.0.0/4",  # reserved, RFC 1112, and the limited broadcast, RFC 8190
    )
)
_SPECIAL_IPV6 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # IETF protocol assignments, RFC 2928: Teredo, benchmarking, AMT, ORCHID, ...
        "2001:db8::/32",  # documentation, RFC 3849
        "2002::/16",  # 6to4, RFC 3056
        "2620:4f:8000::/48",  # direct delegation AS112 service, RFC 7534
        "3fff::/20",  # documentation, RFC 9637
    )
)


class AllowedAddress(NamedTuple):
    """An entry of the setting: a network or a host name, on one port or on all (None)."""

    zone: str  # empty: for callbacks of every zone
    network: Network | None
    host: str  # empty if there is a network
    port: int | None


class AllowedAddresses:
    """The setting: the private addresses that each zone may call."""

    def __init__(self, entries: Iterable[AllowedAddress] = ()) -> None:
        self._entries = tuple(entries)

    def of_zone(self, zone: str) -> "CallbackAddresses":
        """Return the rules for callbacks of a zone."""
        return CallbackAddresses(entry for entry in self._entries if entry.zone in ("", zone))


class CallbackAddresses:
    """The rules for the callbacks of one zone: public addresses, and exceptions."""

    def __init__(self, exceptions: Iterable[AllowedAddress] = ()) -> None:
        self._exceptions = tuple(exceptions)

    def allowed(self, address: str | Address, host: str, port: int) -> bool:
        """Return whether a callback to `host` may connect to this address and port.

        A host name in the exceptions allows every address that it resolves to.
        """
        found = plain_address(address)
        if found is None:
            return False
        return is_public(found) or any(
            _names(exception, found, host, port) for exception in self._exceptions
        )


def parse_allowed(entries: Iterable[str]) -> AllowedAddresses:
    """Parse the setting. Raises ValueError that names a bad entry."""
    return AllowedAddresses(map(_entry, entries))


def plain_address(address: str | Address) -> Address | None:
    """Return the address that a connection reaches: for an IPv4 address that is mapped or
    translated (NAT64) into IPv6, the IPv4 address; None if the text is not an address.
    """
    try:
        found = ipaddress.ip_address(str(address).partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv4Address):
        return found
    if found in _NAT64:
        return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found.ipv4_mapped or found


def fixed_address(host: str) -> Address | None:
    """Return the address that a host has without being resolved; None for other names."""
    last = host.lower().removesuffix(".").rpartition(".")[2]
    return plain_address("127.0.0.1" if last == "localhost" else host)


async def resolved(host: str) -> Iterable[tuple[Any, ...]]:
    """Return the addresses of a host by the machine's own resolver (a `Resolve`)."""
    return await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)


def is_public(address: Address) -> bool:
    """Return whether the whole Internet can reach the address, and one host answers there."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    return (
        address in _GLOBAL_UNICAST
        and not any(address in network for network in _SPECIAL_IPV6)
        and int(address) >> 32 & 0xFDFFFFFF != _ISATAP  # a tunnel to an IPv4 address of any kind
    )


def is_name(host: str) -> bool:
    """Return whether the text has the form of a host name."""
    return all(map(_LABEL.fullmatch, host.removesuffix(".").split(".")))


def ends_in_number(host: str) -> bool:
    """Return whether the last part is a number: an address in another notation, not a name."""
    return bool(_NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]))


def _entry(text: str) -> AllowedAddress:
    zone, host, port = *_zone_and_host(text), None
    found = _BRACKETS.fullmatch(host) or _PORT.fullmatch(host)
    if found is not None:
        parts = found.groupdict()
        host = parts["host"] + (f"/{parts['bits']}" if parts.get("bits") else "")
        port = None if parts["port"] is None else int(parts["port"])
    elif plain_address(host) and _seems_to_have_port(host):
        before = text.strip().removesuffix(host)
        address, port_text = host.rsplit(":", 1)
        write = f"{before}[{address}]:{port_text} for a port, or {before}[{host}] for an address"
        raise _bad_entry(text, f"ambiguous; write {write}")
    if not host or (port is not None and not 0 < port < 1 << 16):
        raise _bad_entry(text)
    try:
        return AllowedAddress(zone, ipaddress.ip_network(host, strict=False), "", port)
    except ValueError:
        if ends_in_number(host):
            raise _bad_entry(text, _NO_ADDRESS) from None
        if not is_name(host):
            raise _bad_entry(text) from None
        return AllowedAddress(zone, None, host.lower().rstrip("."), port)


def _seems_to_have_port(host: str) -> bool:
    address, _, port = host.rpartition(":")
    return plain_address(address) is not None and port.isdecimal()


def _zone_and_host(text: str) -> tuple[str, str]:
    """Return the zone of an entry, empty for all zones, and the rest."""
    zone, equals, host = text.strip().rpartition("=")
    if equals and not NAME.fullmatch(zone):
        raise _bad_entry(text)
    return zone, host


def _bad_entry(text: str, mistake: str = _NO_ENTRY) -> ValueError:
    return ValueError(f"EVENTHUB_CALLBACK_ALLOW: {text!r} is {mistake}")


def _names(exception: AllowedAddress, address: Address, host: str, port: int) -> bool:
    if exception.port not in (None, port):
        return False
    if exception.network is not None:
        return address in exception.network
    return exception.host == host.lower().rstrip(".")
