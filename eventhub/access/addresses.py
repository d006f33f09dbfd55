"""The addresses that a key may be used from: IP addresses and networks in CIDR notation.
Plain module.

The address of a caller is the one that trusted proxies report (eventhub/base/caller.py). Where it
is unknown, as on a Unix socket, a key with such a list is refused.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any

from eventhub.base import caller, limits
from eventhub.base.errors import AddressNotAllowed, FieldTooLong, InvalidField

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Networks = tuple[Network, ...]
_FORM = "This must be an IP address, or a network such as 10.1.0.0/16 or 2001:db8::/32."


def parse_networks(items: Any, *, field: str = "allowed_addresses") -> Networks | None:
    """Parse a list of addresses and networks, each once; None stands for every address. Errors name
    the index.
    """
    if items is None:
        return None
    if not isinstance(items, list) or not items:
        message = "This must be a list of at least one address or network; null allows every one."
        raise InvalidField(message, field=field)
    if len(items) > limits.ALLOWED_ADDRESSES_PER_KEY_MAX:
        most = limits.ALLOWED_ADDRESSES_PER_KEY_MAX
        raise FieldTooLong(f"A key has at most {most} addresses; use networks.", field=field)
    found = [_parse(item, f"{field}.{index}") for index, item in enumerate(items)]
    return tuple(dict.fromkeys(found))


def _parse(item: Any, at: str) -> Network:
    if not isinstance(item, str) or len(item) > limits.ADDRESS_CHARS_MAX or "%" in item:
        raise InvalidField(_FORM, field=at)
    try:
        found = ipaddress.ip_network(item, strict=False)
    except ValueError:
        raise InvalidField(_FORM, field=at) from None
    if "/" in item and ipaddress.ip_address(item.partition("/")[0]) != found.network_address:
        message = f"The address has bits outside of its network; write {found}."
        raise InvalidField(message, field=at)
    if isinstance(found, ipaddress.IPv6Network) and found.network_address.ipv4_mapped is not None:
        raise InvalidField("Write an IPv4 address that is mapped into IPv6 as IPv4.", field=at)
    return found


def known_networks(texts: Iterable[str]) -> Networks:
    """Return the networks of a stored list, which was validated when it was written."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def texts_of(networks: Networks | None) -> list[str] | None:
    """Return the networks as they are stored and shown; an address alone has no prefix length."""
    if networks is None:
        return None
    return [str(one.network_address) if one.num_addresses == 1 else str(one) for one in networks]


def are_within(networks: Networks | None, own: Networks | None) -> bool:
    """Return True if every address of the first is one of the second; None stands for all."""
    if own is None:
        return True
    return networks is not None and all(_is_within(one, own) for one in networks)


def _is_within(network: Network, own: Sequence[Network]) -> bool:
    return any(
        one.version == network.version and network.subnet_of(one)  # type: ignore[arg-type]
        for one in own
    )


def require_allowed(networks: Networks | None) -> None:
    """Raise AddressNotAllowed unless the present request came from one of the networks. The error
    does not say from where the key may be used.
    """
    if networks is None:
        return
    text = caller.normal_address(caller.current().address)
    if not text or not any(ipaddress.ip_address(text) in one for one in networks):
        raise AddressNotAllowed
