"""Writes deliveries: one statement moves the checkpoint and inserts the rows it stands for, so both
or neither are there, and only for who holds the lease. SQL module.

Connections are in autocommit mode and know the log's arrays (`writing_pool`): one round trip, and
no lock is held while this process does something else, or is stopped. Only a gap, which is rare, is
written and announced in a transaction, which the server ends if this process is stopped in it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate
from typing import Any, NamedTuple

from psycopg.types.numeric import Int8
from psycopg_pool import AsyncConnectionPool

from delivery.forward.leases import SQL, Lease, LeaseLost, Place
from delivery.forward.plan import Piece, Row, Where
from eventhub.base import limits
from eventhub.eventlog import append
from eventhub.eventlog.system import Announcement, announce_in
from eventhub.postgresql.arrays import TextArray, adapt, int8_array, text_array
from eventhub.postgresql.connections import Connection, answered_within
from eventhub.postgresql.rows import cursor_of, tuples_of


@asynccontextmanager
async def writing_pool(url: str) -> AsyncIterator[AsyncConnectionPool[Connection]]:
    """Connections for all that a forwarder writes; the database may be away at first."""
    pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
        url,
        min_size=1,
        max_size=limits.FORWARD_WRITERS_PER_PROCESS_MAX,
        kwargs={
            "autocommit": True,
            "prepare_threshold": 0,
            "application_name": "eventhub forward",
            "connect_timeout": limits.CONNECT_TIMEOUT_S,
            "options": f"-c statement_timeout={limits.STATEMENT_TIMEOUT_S_MAX}s"
            f" -c idle_in_transaction_session_timeout={limits.TRANSACTION_IDLE_S_MAX}s",
        },
        configure=_configure,
        open=False,
        timeout=limits.READ_TIMEOUT_S_MAX,
        reconnect_timeout=5,
        name="forward",
    )
    await pool.open()
    try:
        yield pool
    finally:
        await pool.close(timeout=limits.FORWARD_STOP_S_MAX)


async def _configure(connection: Connection) -> None:
    adapt(connection)


async def write(connection: Connection, lease: Lease, start: Place, piece: Piece) -> bool:
    """Move a stream from a place to that of the piece, and write the piece's deliveries.

    False if nothing was written: the lease is lost, or the stream is not at `start`. A connection
    that breaks leaves it open: ask `leases.place_of`.
    """
    values = _move(lease, start, piece.to)
    query = "move"
    if piece.fanout:
        query = "write_fanout"
        values |= await asyncio.to_thread(_fanout, piece)  # a million take a second
    elif piece.registrations > limits.REGISTRATIONS_PER_STATEMENT_MAX:
        query = "write"
        values |= await asyncio.to_thread(_rows, piece)
    elif piece.rows:
        query = "write"
        values |= _rows(piece)
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        cursor = await connection.execute(SQL[query], values)
    return cursor.rowcount > 0


def _move(lease: Lease, start: Place, to: Place) -> dict[str, Any]:
    return {
        "stream_id": Int8(lease.stream_id),
        "epoch": Int8(lease.epoch),
        "segment": to.segment,
        "sequence": Int8(to.sequence),
        "endpoint_id": Int8(to.endpoint_id),
        "from_segment": start.segment,
        "from_sequence": Int8(start.sequence),
        "from_endpoint_id": Int8(start.endpoint_id),
        "lease_s": limits.FORWARD_LEASE_S,
    }


def _rows(piece: Piece) -> dict[str, Any]:
    rows = piece.rows
    ends = list(accumulate(len(row.registrations) for row in rows))
    return {
        "groups": int8_array([row.where.partition_id for row in rows]),
        "endpoints": int8_array([row.endpoint_id for row in rows]),
        "segment_ids": int8_array([row.where.segment_id for row in rows]),
        "sequences": int8_array([row.sequence for row in rows]),
        "begins": int8_array([1, *(end + 1 for end in ends[:-1])]),
        "ends": int8_array(ends),
        "flat": int8_array([number for row in rows for number in row.registrations]),
        "shapes": _shapes(rows),
    }


def _shapes(rows: Sequence[Row]) -> TextArray:
    """The versions of each row as the text of an array, empty for none; nothing at all if no row
    has any: SQL takes what is missing at the end of arrays for null.
    """
    if not any(row.shape for row in rows):
        return text_array([])
    texts = [f"{{{','.join(map(str, row.shape or ()))}}}" for row in rows]
    return text_array([text if row.shape else "" for text, row in zip(texts, rows, strict=True)])


def _fanout(piece: Piece) -> dict[str, Any]:
    rows = piece.rows
    return {
        "partition_id": rows[0].where.partition_id,
        "segment_id": Int8(rows[0].where.segment_id),
        "endpoints": int8_array([row.endpoint_id for row in rows]),
        "ends": int8_array(list(accumulate(len(row.registrations) for row in rows))),
        "flat": int8_array([number for row in rows for number in row.registrations]),
        "shapes": _shapes(rows),
    }


class Missed(NamedTuple):
    """Events that are gone before they were matched, from `first` on. `to`: the place before the
    first that is still held.
    """

    first: int
    to: Place


class _Gap(NamedTuple):
    """What a gap meant: notices written, why the events went, and of which stream and zone."""

    notices: int
    why: str
    stream: str
    zone: str | None


async def write_gap(connection: Connection, lease: Lease, start: Place, missed: Missed) -> int:
    """Move a stream from a place to behind what it missed, and owe each endpoint that was to get
    some of it a notice; how many. Announced in `system` with them, if there are any.

    LeaseLost if nothing was written, as for `write`.
    """
    values = {**_move(lease, start, missed.to), "first": Int8(missed.first)}
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        async with connection.transaction():
            query = await cursor_of(connection, _Gap).execute(SQL["write_gap"], values)
            gap = await query.fetchone()
            if gap is None:
                raise LeaseLost
            if gap.notices:
                told = _gap_announcement(missed, gap)
                place = await announce_in(connection, zone=gap.zone, announcement=told)
        if gap.notices:
            heads = append.heads_text({place.stream_id: place.sequence})
            await connection.execute(append.SQL["notify"], (heads,))
    return gap.notices


def _gap_announcement(missed: Missed, gap: _Gap) -> Announcement:
    last = missed.to.sequence
    resume = {"segment": missed.to.segment, "sequence": last}
    what = {"first": missed.first, "last": last, "resume": resume, "why": gap.why}
    return Announcement("forward.gap", {"stream": gap.stream, **what, "endpoints": gap.notices})


async def expand(connection: Connection) -> int:
    """Write the next piece of some fan-out; returns the number of deliveries, 0 if there is none.

    Any forwarder may: who meets a fan-out in work takes another one.
    """
    values = {"chunk": limits.DELIVERIES_PER_STATEMENT_MAX}
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        cursor = await connection.execute(SQL["expand"], values)
    return cursor.rowcount


class _Segment(NamedTuple):
    """What deliveries call a segment."""

    uuid: str
    segment_id: int
    partition_id: int


async def places_of_segments(connection: Connection, uuids: list[str]) -> dict[str, Where]:
    """What deliveries call segments."""
    query = tuples_of(connection, _Segment)
    rows = await (await query.execute(SQL["segments"], (uuids,))).fetchall()
    return {uuid: Where(segment_id, partition_id) for uuid, segment_id, partition_id in rows}
