"""The names of keys in the match index (byte strings), their hash, and the order of numbers;
docs/match-index.md has their form. Plain module.

The parts of a name have length prefixes, so no separator can be confused with their content. Equal
values have equal names: 1 and 1.0, -0.0 and 0.0; true, "1" and null have others.
"""

from math import inf, isfinite, isnan, nextafter
from struct import pack
from typing import Any

import xxhash

SEED = 42  # of XXH64, as of Spark's `xxhash64`
ALL_BITS = (1 << 64) - 1
GRAM = b"*"  # the first byte of the name of a gram
_INTEGER_MAX = 1 << 63
_REST_MAX = (1 << 15) - 1
Number = tuple[float, int]  # the largest double that is not greater, and the difference


def hash_of(name: bytes | memoryview) -> int:
    """Hash a name with XXH64, unsigned."""
    return xxhash.xxh64_intdigest(name, SEED)


def raw(text: str) -> bytes:
    """Encode as UTF-8, also unpaired surrogates, which JSON cannot represent."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """Decode the bytes of `raw`."""
    return data.decode("utf-8", "surrogatepass")


def gate_name(domain: str | None, type: str | None, application: str | None) -> bytes:
    return b"@" + _part(domain) + _part(type) + _part(application)


def value_head(path: str) -> bytes:
    """Return the common beginning of the names of all values at a path."""
    return prefixed(b"=", path)


def value_tail(value: Any) -> bytes | None:
    """Return the rest of a value's name; None if it equals nothing: a NaN, an array, an object."""
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


def prefixed(kind: bytes, path: str) -> bytes:
    """Return the common beginning of the names of one kind at a path."""
    return kind + _part(path)


def path_name(path: str) -> bytes:
    return b"/" + raw(path)


def type_name(type: str) -> bytes:
    """Return the name of a type or supertype."""
    return b"T" + raw(type)


def below_name(type: str) -> bytes:
    """Return the common name of the types whose names begin with `type` and a dot."""
    return b"B" + raw(type)


def number_order(value: float) -> Number:
    """Return a pair that orders as the number does, at any size. Not for NaN and infinities."""
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
