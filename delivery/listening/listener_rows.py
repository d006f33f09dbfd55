"""Rows of the table `listeners`: inserts new listeners, updates their progress. SQL module."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
import psycopg

from delivery.partitions.create import create_partitions
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all

SQL = queries.load("delivery/sql/listeners.sql")


class RecordedRequest(NamedTuple):
    """The events that a listener requests. Equal requests have equal digests."""

    mask: int  # 64 channel bits, unsigned
    filter: str | None  # in predicate form; None: it names registrations, or is too long
    registrations: tuple[int, ...]
    request_digest: str


class NewListener(NamedTuple):
    """A listener to be recorded: its client and stream, its transport, and where it starts."""

    zone_id: int
    client_id: int
    stream_id: int
    transport: str
    name: str
    start: str  # kind: cursor, now, oldest, boot, time, gap, state, continued
    after: Cursor
    request: RecordedRequest


class ListenerKey(NamedTuple):
    """The primary key of a row."""

    started_at: datetime
    id: int


class ListenerProgress(NamedTuple):
    """How far events were delivered to a listener, and how it ended (`end_reason` None: it is
    open).
    """

    key: ListenerKey
    cursor: Cursor
    delivered_events: int
    end_reason: str | None = None
    ended_s: float | None = None  # seconds since its end


async def insert_listeners(
    connection: Connection, node: str, listeners: Sequence[NewListener]
) -> list[ListenerKey]:
    """Insert and commit rows, and return their keys in order. Create the day's partition if it is
    missing. Raises what psycopg raises.
    """
    values = {"node": node, "listeners": _json(map(_inserted, range(len(listeners)), listeners))}
    try:
        return await fetch_all(connection, ListenerKey, SQL["insert"], values)
    except psycopg.errors.CheckViolation:  # the day has no partition
        await create_partitions(connection, wait=True)
        return await fetch_all(connection, ListenerKey, SQL["insert"], values)


async def update_listeners(connection: Connection, progress: Sequence[ListenerProgress]) -> None:
    """Write the progress of listeners. Rows whose partition was removed are skipped."""
    times = [one.key.started_at for one in progress]
    values = {
        "listeners": _json(map(_updated, progress)),
        "oldest": min(times),
        "newest": max(times),
    }
    await connection.execute(SQL["update"], values)


def _json(rows: Iterable[dict[str, Any]]) -> str:
    return orjson.dumps([*rows]).decode()


def _inserted(number: int, listener: NewListener) -> dict[str, Any]:
    fields = listener._asdict()
    request, after = fields.pop("request"), fields.pop("after")
    signed = request.mask - (1 << 64) if request.mask >> 63 else request.mask
    return {"number": number, **fields, **request._asdict(), "mask": signed, **_cursor(after)}


def _updated(one: ListenerProgress) -> dict[str, Any]:
    fields = one._asdict()
    key, cursor = fields.pop("key"), fields.pop("cursor")
    return {**key._asdict(), **fields, **_cursor(cursor)}


def _cursor(cursor: Cursor) -> dict[str, Any]:
    return {"segment": cursor.segment or None, "sequence": cursor.sequence}
