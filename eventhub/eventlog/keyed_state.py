"""Reads the keyed state of a stream: the latest event of each key. SQL module.

A snapshot at n consists of all pages with `upto` = n, read one after the other without a
transaction. A key that changes meanwhile drops out; its new event comes with the tail from n.
"""

import hashlib
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.errors import LogHole, SegmentMismatch
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("eventhub/eventlog/sql/keyed_state.sql")
_UNSIGNED = (1 << 64) - 1


class KeyState(NamedTuple):
    """The latest event of a key. `digest` orders the pages: the next one is after it."""

    digest: bytes
    key: str
    stored: StoredEvent


class _KeyRow(NamedTuple):
    """A key's row with its event; no payload if that is missing."""

    digest: bytes
    key: str
    segment: str
    sequence: int
    mask: int  # signed
    appended_at_us: int
    payload: bytes | None


class _StreamPosition(NamedTuple):
    """The position of a stream, and whether a cursor belongs to it."""

    segment: str
    first: int
    last: int
    has_cursor: bool


class StatePage(NamedTuple):
    """A page request: at most `keys_max` keys after a digest, with sequences up to `upto`."""

    after: bytes
    upto: int
    keys_max: int = limits.STATE_PAGE_KEYS_MAX

    def values(self, stream_id: int) -> dict[str, Any]:
        bytes_max = limits.STATE_PAGE_BYTES_MAX
        return {**self._asdict(), "stream_id": stream_id, "bytes_max": bytes_max}


def key_digest(key: str) -> bytes:
    """Return the digest by which a key is indexed; the key itself may be too long for that."""
    return hashlib.sha256(key.encode()).digest()


async def read_state(
    connection: psycopg.AsyncConnection[Any], stream_id: int, page: StatePage
) -> list[KeyState]:
    """Read one page; empty after the last. Raises LogHole."""
    query = cursor_of(connection, _KeyRow)
    await query.execute(SQL["page"], page.values(stream_id), binary=True)
    return [_state(row) for row in await query.fetchall()]


def read_state_now(
    connection: psycopg.Connection[Any], stream_id: int, page: StatePage
) -> list[KeyState]:
    """Read one page on a synchronous connection."""
    query = cursor_of(connection, _KeyRow).execute(SQL["page"], page.values(stream_id))
    return [_state(row) for row in query.fetchall()]


def require_cursor(connection: psycopg.Connection[Any], stream_id: int, cursor: Cursor) -> None:
    """Raise SegmentMismatch if a snapshot's cursor is not of this stream or ahead of it."""
    values = {**cursor._asdict(), "stream_id": stream_id}
    found = cursor_of(connection, _StreamPosition).execute(SQL["position"], values).fetchone()
    if found is None or not found.has_cursor:
        current = found and {"segment": found.segment, "first": found.first, "last": found.last}
        raise SegmentMismatch(current=current)


def find_state_now(
    connection: psycopg.Connection[Any], stream_id: int, key: str
) -> KeyState | None:
    """Return the latest event of one key; None if the stream has none."""
    values = (stream_id, key_digest(key))
    row = cursor_of(connection, _KeyRow).execute(SQL["one"], values).fetchone()
    return None if row is None else _state(row)


def _state(row: _KeyRow) -> KeyState:
    digest, key, segment, sequence, mask, appended_at_us, payload = row
    if payload is None:
        raise LogHole("The latest event of a key is missing.", sequence=sequence, segment=segment)
    stored = StoredEvent(segment, sequence, mask & _UNSIGNED, appended_at_us, bytes(payload))
    return KeyState(bytes(digest), key, stored)
