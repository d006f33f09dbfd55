"""The byte strings under which the match index knows what an event may have, their hash, and the
order of numbers. Plain; docs/match-index.md has the form. Plain module.

A part of a name has its length before it, so no separator can be confused with what is in a part.
Equal values have equal names: 1 and 1.0, -0.0 and 0.0; true, "1" and null are others.
"""

from math import inf, isfinite, isnan, nextafter
from struct import pack
from typing import Any

import xxhash

SEED = 42  # of XXH64; that of Spark's `xxhash64`
ALL_BITS = (1 << 64) - 1
_INTEGER_MAX = 1 << 63
_REST_MAX = (1 << 15) - 1
Number = tuple[float, int]  # the largest double that is not above it, and what it is more


def hash_of(name: bytes | memoryview) -> int:
    """XXH64 of a name, unsigned."""
    return xxhash.xxh64_intdigest(name, SEED)


def raw(text: str) -> bytes:
    """UTF-8; half characters, which JSON cannot hold, get bytes of their own too."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """The opposite of `raw`."""
    return data.decode("utf-8", "surrogatepass")


def gate_name(domain: str | None, type: str | None, application: str | None) -> bytes:
    return b"@" + _part(domain) + _part(type) + _part(application)


def value_head(path: str) -> bytes:
    """What the names of all values at a path begin with."""
    return b"=" + _part(path)


def value_tail(value: Any) -> bytes | None:
    """What stands behind; None if the value equals nothing: a NaN, an array, an object."""
    if isinstance(value, str):
        return b"s" + raw(value)
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int):
        return _integer(value)
    if not isinstance(value, float) or isnan(value):
        return None
    if isfinite(value) and value.is_integer():
        return _integer(int(value))
    return b"d" + pack(">d", value).hex().encode()


def prefix_head(path: str) -> bytes:
    return b"^" + _part(path)


def path_name(path: str) -> bytes:
    return b"/" + raw(path)


def type_name(type: str) -> bytes:
    """Of a type, or of a declared one above it."""
    return b"T" + raw(type)


def below_name(type: str) -> bytes:
    """Of what types whose names begin with `type` and a dot have in common."""
    return b"B" + raw(type)


def number_order(value: float) -> Number:
    """A pair that is in order with others as the numbers are, whatever their size. Not for NaN and
    infinities.
    """
    if isinstance(value, float):
        return value + 0.0, 0  # no -0.0
    try:
        below = float(value)
    except OverflowError:
        below = inf if value > 0 else -inf
    if below == inf or (below != -inf and int(below) > value):
        below = nextafter(below, -inf)
    if below == -inf:
        return below, 0
    return below, min(value - int(below), _REST_MAX)


def _part(text: str | None) -> bytes:
    if text is None:
        return b"*"
    data = raw(text)
    return b"%d:%b" % (len(data), data)


def _integer(value: int) -> bytes:
    if -_INTEGER_MAX <= value < _INTEGER_MAX:
        return b"i%d" % value
    return b"I" + format(value, "x").encode()
