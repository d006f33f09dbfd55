"""The saved state of an engine: partial matches, counters and reports. Plain module.

The first byte is the version of the format; the rest is MessagePack, compressed. A bound event is
saved by its position and the values that its pattern reads of it, not as a whole.
"""

import zlib
from typing import Any

from msgspec import DecodeError, Struct, msgpack

from registrations.filters.ast import Scalar
from registrations.patterns.pattern_engine import EventPosition

_VERSION = b"\x01"
_LEVEL = 1  # segments and values repeat; more costs time and saves little


class SavedEvent(Struct, array_like=True):
    """An event that elements took. `present`: which of the components that are read of it have a
    value in `values`, as bits.
    """

    position: EventPosition
    time_us: int
    number: int
    mask: int
    present: int
    values: list[Any]


class SavedPartition(Struct, array_like=True):
    """A partition. `ran`: of parts whose actions ran, the order of the event."""

    key: Scalar
    count: int
    events: list[SavedEvent]
    ran: list[tuple[int, int]]


class SavedPattern(Struct, array_like=True):
    """A pattern. `digest`: of its normal form. `dropped`: reasons, with the count in all and as
    reported last.
    """

    number: int
    digest: bytes
    ended: bool
    partitions: list[SavedPartition]
    dropped: list[tuple[str, int, int]]
    counters: dict[str, int | float]


class SavedGroup(Struct, array_like=True):
    """All patterns of an engine, and its newest event: order and time."""

    order: int
    clock_us: int
    patterns: list[SavedPattern]


_decoder = msgpack.Decoder(SavedGroup)


def encoded(group: SavedGroup) -> bytes:
    """Encode a state."""
    return _VERSION + zlib.compress(msgpack.encode(group), _LEVEL)


def decoded(state: bytes) -> SavedGroup:
    """Decode a state. Raises ValueError for an unknown format."""
    if state[:1] != _VERSION:
        raise ValueError("the state of the patterns has an unknown format")
    try:
        return _decoder.decode(zlib.decompress(state[1:]))
    except (DecodeError, zlib.error) as error:
        raise ValueError("the state of the patterns cannot be read") from error
