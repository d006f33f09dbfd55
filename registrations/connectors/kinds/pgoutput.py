"""The messages of PostgreSQL's output plugin `pgoutput`, version 1 of its protocol, as far as
inserts need them, and rows as JSON in the form of `to_jsonb`. Plain module.

Described at https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

import struct
from typing import Any, NamedTuple

import orjson

_BYTEA, _BOOL, _JSON, _JSONB = 17, 16, 114, 3802
_NUMBERS = frozenset((20, 21, 23, 26, 700, 701, 1700))  # integers, floats, numeric
_TIMES = frozenset((1114, 1184))
_NO_NUMBERS = frozenset(("NaN", "Infinity", "-Infinity"))


class TableColumn(NamedTuple):
    """A column; `type`: the OID of its type."""

    name: str
    type: int


class LoggedTable(NamedTuple):
    """A table, as messages about its rows name it."""

    oid: int
    schema: str
    table: str
    columns: list[TableColumn]


class Insert(NamedTuple):
    """A row that was inserted, its values in PostgreSQL's text form."""

    relation: int
    values: list[str | None]


class Commit(NamedTuple):
    """The end of a transaction; `end`: the position after it in the WAL."""

    end: int


Message = LoggedTable | Insert | Commit | None  # None: one of no interest


def read_message(data: bytes) -> Message:
    """Return a message. Raises ValueError if it is cut off."""
    try:
        match data[:1]:
            case b"R":
                return _relation(data)
            case b"I":
                return Insert(struct.unpack_from(">I", data, 1)[0], _values(data, 6))
            case b"C":
                return Commit(struct.unpack_from(">Q", data, 10)[0])
    except (struct.error, IndexError):
        raise ValueError("a message of pgoutput is cut off") from None
    return None


def document_of(columns: list[TableColumn], values: list[str | None]) -> dict[str, Any]:
    """Return a row as an object, which orjson can write."""
    pairs = zip(columns, values, strict=True)
    return {column.name: _json_value(column.type, text) for column, text in pairs}


def body_of(type: int, text: str | None) -> bytes | None:
    """Return the bytes of a column that is an event's body; None for a null."""
    if text is None:
        return None
    return bytes.fromhex(text[2:]) if type == _BYTEA else text.encode()


def media_type_of(type: int) -> str:
    """Return the media type of a column's bytes."""
    if type in (_JSON, _JSONB):
        return "application/json"
    return "application/octet-stream" if type == _BYTEA else "text/plain"


def lsn_text(position: int) -> str:
    """Return a position in the WAL as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def _json_value(type: int, text: str | None) -> Any:
    if text is None:
        return None
    if type == _BOOL:
        return text == "t"
    if type in _NUMBERS and text not in _NO_NUMBERS:
        return orjson.Fragment(text)
    if type in (_JSON, _JSONB):
        return orjson.Fragment(text)
    return text.replace(" ", "T", 1) if type in _TIMES else text


def _relation(data: bytes) -> LoggedTable:
    [oid] = struct.unpack_from(">I", data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    [count] = struct.unpack_from(">H", data, at + 1)  # after the replica identity
    at += 3
    columns = []
    for _ in range(count):
        name, at = _text(data, at + 1)  # after the flags
        [type] = struct.unpack_from(">I", data, at)
        columns.append(TableColumn(name, type))
        at += 8  # with the modifier of the type
    return LoggedTable(oid, schema or "pg_catalog", table, columns)


def _values(data: bytes, at: int) -> list[str | None]:
    [count] = struct.unpack_from(">H", data, at)
    at += 2
    values: list[str | None] = []
    for _ in range(count):
        kind = data[at : at + 1]
        at += 1
        if kind != b"t":  # null
            values.append(None)
            continue
        [size] = struct.unpack_from(">I", data, at)
        at += 4
        if len(data) < at + size:
            raise IndexError
        values.append(data[at : at + size].decode())
        at += size
    return values


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Return the text that begins at an offset, and the offset after it."""
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
