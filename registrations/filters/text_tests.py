"""Tests of a single text. Plain module.

"Ignoring case" compares the lower-case forms of both texts (`str.lower`): `É` equals `é`, and `ß`
does not equal `SS`.
"""

from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from registrations.filters.ast import Text
from registrations.filters.letter_case import in_one_case
from registrations.filters.wildcard import fits

_ADDRESS_CHARS_MAX = 64  # longer texts are no address


class Address(NamedTuple):
    """An IP address as a number, within its version."""

    version: int
    number: int


@lru_cache(maxsize=4_096)
def range_of(block: str) -> tuple[Address, Address]:
    """Return the first and the last address of a CIDR block, `10.0.0.0/8` or `2001:db8::/32`.
    Raises ValueError.
    """
    if "/" not in block:
        raise ValueError("A CIDR block is an address, `/` and the bits of its prefix: 10.0.0.0/8.")
    try:
        found = ip_network(block, strict=False)
    except ValueError:
        raise ValueError(f"{block[:100]} is no CIDR block, such as 10.0.0.0/8.") from None
    version = found.version
    first, last = int(found.network_address), int(found.broadcast_address)
    return Address(version, first), Address(version, last)


def address_of(text: str) -> Address | None:
    """Return the address that a text is; None if it is none."""
    if len(text) > _ADDRESS_CHARS_MAX:
        return None
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return Address(found.version, int(found))


def bits_of(address: Address) -> bytes:
    """Return the version of an address and its bits, as digits: `4` and 32, or `6` and 128."""
    size = 32 if address.version == 4 else 128
    return f"{address.version}{address.number:0{size}b}".encode()


def bits_of_block(block: str) -> bytes:
    """Return the beginning that the bits of all addresses in a CIDR block have, and no others'.
    Raises ValueError.
    """
    first, last = range_of(block)
    bits = bits_of(first)
    return bits[: len(bits) - (first.number ^ last.number).bit_length()]


def passes(test: Text, text: str) -> bool:
    """Return whether a text passes a test."""
    match test.op:
        case "prefix":
            return text.startswith(test.text)
        case "suffix":
            return text.endswith(test.text)
        case "substring":
            return test.text in text
        case "wildcard":
            return fits(test.parts, text)
        case "equals-ignore-case":
            return in_one_case(text) == test.parts[0]
        case "prefix-ignore-case":
            return in_one_case(text).startswith(test.parts[0])
        case "suffix-ignore-case":
            return in_one_case(text).endswith(test.parts[0])
        case "cidr":
            first, last = range_of(test.text)
            address = address_of(text)
            return address is not None and first <= address <= last
