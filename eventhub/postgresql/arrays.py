"""Fast encoding of PostgreSQL's binary parameters, arrays above all: psycopg's own list dumper
costs 0.7 µs per element, which is a third of a batch's time. SQL module.
"""

import struct
from collections.abc import Sequence

from psycopg.abc import AdaptContext
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

_INT4 = 23
_INT8, _INT8_ARRAY = 20, 1016
_BYTEA, _BYTEA_ARRAY = 17, 1001
_TEXT, _TEXT_ARRAY = 25, 1009
_HEAD = struct.Struct(">iiIii")  # dimensions, has nulls, element type, length, lower bound
_SIZE = struct.Struct(">i")
_NULL = _SIZE.pack(-1)
_NUMBER = struct.Struct(">iq")


class Int4(bytes):
    """An integer as PostgreSQL receives it."""


class Int8Array(bytes):
    """A bigint[] as PostgreSQL receives it."""


class ByteaArray(bytes):
    """A bytea[] as PostgreSQL receives it."""


class TextArray(bytes):
    """A text[] as PostgreSQL receives it."""


def int4(number: int) -> Int4:
    """Encode a number of 32 bits."""
    return Int4(_SIZE.pack(number))


def int8_array(numbers: Sequence[int | None]) -> Int8Array:
    """Encode numbers of 64 bits, or None for null."""
    count = len(numbers)
    if not count:
        return Int8Array(_SIZE.pack(0) * 2 + struct.pack(">I", _INT8))
    first = numbers[0]
    head = _HEAD.pack(1, 1, _INT8, count, 1)
    if first is not None and numbers.count(first) == count:
        return Int8Array(head + _NUMBER.pack(8, first) * count)
    return Int8Array(
        head
        + b"".join([_NULL if number is None else _NUMBER.pack(8, number) for number in numbers])
    )


def bytea_array(items: Sequence[bytes]) -> ByteaArray:
    """Encode bytes, without nulls."""
    return ByteaArray(_packed(_BYTEA, items))


def text_array(items: Sequence[str | None]) -> TextArray:
    """Encode texts, or None for null. Raises UnicodeEncodeError for a lone surrogate."""
    return TextArray(_packed(_TEXT, [None if item is None else item.encode() for item in items]))


def _packed(kind: int, items: Sequence[bytes | None]) -> bytes:
    if not items:
        return _SIZE.pack(0) * 2 + struct.pack(">I", kind)
    pack = _SIZE.pack
    parts = [_HEAD.pack(1, 1, kind, len(items), 1)]
    for item in items:
        if item is None:
            parts.append(_NULL)
        else:
            parts.append(pack(len(item)))
            parts.append(item)
    return b"".join(parts)


class _EncodedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> Buffer:
        return obj


class _Int4Dumper(_EncodedDumper):
    oid = _INT4


class _Int8ArrayDumper(_EncodedDumper):
    oid = _INT8_ARRAY


class _ByteaArrayDumper(_EncodedDumper):
    oid = _BYTEA_ARRAY


class _TextArrayDumper(_EncodedDumper):
    oid = _TEXT_ARRAY


def adapt(connection: AdaptContext) -> None:
    """Register the dumpers with a cursor. Not globally: a connection copies the global
    dumpers when it is created, which may be before this module is imported.
    """
    connection.adapters.register_dumper(Int4, _Int4Dumper)
    connection.adapters.register_dumper(Int8Array, _Int8ArrayDumper)
    connection.adapters.register_dumper(ByteaArray, _ByteaArrayDumper)
    connection.adapters.register_dumper(TextArray, _TextArrayDumper)
