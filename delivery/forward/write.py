"""Writes deliveries: one statement moves the checkpoint and inserts the rows that it covers, so
that both or neither exist, and only under the lease. SQL module.

Connections are in autocommit mode and know the log's arrays (`writing_pool`): one round trip, and
no lock is held while this process does something else or is suspended. Only a gap, which is rare,
is written and announced in a transaction, which the server ends if this process is suspended in it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate
from typing import Any, NamedTuple

from psycopg.types.numeric import Int8
from psycopg_pool import AsyncConnectionPool

from delivery.forward.leases import SQL, Lease, LeaseLost, StreamPosition
from delivery.forward.plan import DeliveryBatch, DeliveryRow, SegmentRef
from eventhub.base import limits
from eventhub.eventlog.system import Announcement, announce_in, notify_of
from eventhub.postgresql.arrays import Int8Array, TextArray, adapt, int8_array, text_array
from eventhub.postgresql.connections import Connection, answered_within
from eventhub.postgresql.prepared import fetch_prepared
from eventhub.postgresql.rows import fetch_one, fetch_value, tuples_of


@asynccontextmanager
async def writing_pool(url: str) -> AsyncIterator[AsyncConnectionPool[Connection]]:
    """Yield a forwarder's connections for writing; the database may be unavailable at first."""
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
            f" -c idle_in_transaction_session_timeout={limits.TRANSACTION_IDLE_S_MAX}s"
            # planning takes twice as long as writing, and no plan depends on the values
            " -c plan_cache_mode=force_generic_plan",
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


class _Written(NamedTuple):
    """The empty result of a write that moved the checkpoint."""

    notified: None


async def write(
    connection: Connection,
    lease: Lease,
    start: StreamPosition,
    batch: DeliveryBatch,
    *,
    notify: bool = False,
) -> bool:
    """Move a stream from one position to that of the batch, and write the batch's deliveries.
    `notify`: notify the workers of them with the same statement, unless it is a fan-out.

    Return False if nothing was written: the lease is lost, or the stream is not at `start`. After a
    broken connection the outcome is unknown: read `leases.position_of`.
    """
    values = _move(lease, start, batch.position)
    query = "move"
    if batch.fanout:
        query = "write_fanout"
        values |= await asyncio.to_thread(_fanout, batch)  # a million rows take a second
    elif batch.rows:
        many = batch.registrations > limits.REGISTRATIONS_PER_STATEMENT_MAX
        values |= await asyncio.to_thread(_rows, batch) if many else _rows(batch)
        values["notify"] = notify
        with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
            return bool(await fetch_prepared(connection, _Written, SQL["write"], values))
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        cursor = await connection.execute(SQL[query], values)
    return cursor.rowcount > 0


def _move(lease: Lease, start: StreamPosition, position: StreamPosition) -> dict[str, Any]:
    return {
        "stream_id": Int8(lease.stream_id),
        "epoch": Int8(lease.epoch),
        "segment": position.segment,
        "sequence": Int8(position.sequence),
        "endpoint_id": Int8(position.endpoint_id),
        "from_segment": start.segment,
        "from_sequence": Int8(start.sequence),
        "from_endpoint_id": Int8(start.endpoint_id),
        "lease_s": limits.FORWARD_LEASE_S,
    }


def _rows(batch: DeliveryBatch) -> dict[str, Any]:
    rows = batch.rows
    ends = list(accumulate(len(row.registrations) for row in rows))
    return {
        "partitions": int8_array([row.segment.partition_id for row in rows]),
        "endpoints": int8_array([row.endpoint_id for row in rows]),
        "segment_ids": int8_array([row.segment.segment_id for row in rows]),
        "sequences": int8_array([row.sequence for row in rows]),
        "begins": int8_array([1, *(end + 1 for end in ends[:-1])]),
        "ends": int8_array(ends),
        "flat": int8_array([number for row in rows for number in row.registrations]),
        "version_ids": _version_ids_of(rows),
        "lanes": _lanes_of(rows),
    }


def _version_ids_of(rows: Sequence[DeliveryRow]) -> TextArray:
    """Return the version ids of each row as the text of an array, empty for none, or no texts at
    all if no row has any: SQL reads missing elements at the end of arrays as null.
    """
    if not any(row.version_ids for row in rows):
        return text_array([])
    texts = [f"{{{','.join(map(str, row.version_ids or ()))}}}" for row in rows]
    return text_array(
        [text if row.version_ids else "" for text, row in zip(texts, rows, strict=True)]
    )


def _lanes_of(rows: Sequence[DeliveryRow]) -> Int8Array:
    """Return the lane of each row, or nothing if no row has one, as in `_version_ids_of`."""
    return int8_array([row.lane for row in rows] if any(row.lane for row in rows) else [])


def _fanout(batch: DeliveryBatch) -> dict[str, Any]:
    rows = batch.rows
    return {
        "partition_id": rows[0].segment.partition_id,
        "segment_id": Int8(rows[0].segment.segment_id),
        "endpoints": int8_array([row.endpoint_id for row in rows]),
        "ends": int8_array(list(accumulate(len(row.registrations) for row in rows))),
        "flat": int8_array([number for row in rows for number in row.registrations]),
        "version_ids": _version_ids_of(rows),
        "lanes": _lanes_of(rows),
    }


class MissedEvents(NamedTuple):
    """Events that were removed before they were matched, from `first` on. `position`: the position
    before the first event that is still available.
    """

    first: int
    position: StreamPosition


class _WrittenGap(NamedTuple):
    """A written gap: the notices, the reason of the removal, and the stream with its zone."""

    notices: int
    why: str
    stream: str
    zone: str | None


async def write_gap(
    connection: Connection, lease: Lease, start: StreamPosition, missed: MissedEvents
) -> int:
    """Move a stream past the events that it missed, and write a gap notice for each endpoint that
    may have been due to receive some of them; return how many. If there are any, announce them in
    `system` in the same transaction.

    Raise LeaseLost if nothing was written, as for `write`.
    """
    values = {**_move(lease, start, missed.position), "first": Int8(missed.first)}
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        async with connection.transaction():
            gap = await fetch_one(connection, _WrittenGap, SQL["write_gap"], values)
            if gap is None:
                raise LeaseLost
            if gap.notices:
                announcement = _gap_announcement(missed, gap)
                announced = await announce_in(connection, zone=gap.zone, announcement=announcement)
        if gap.notices:
            await notify_of(connection, announced)
    return gap.notices


def _gap_announcement(missed: MissedEvents, gap: _WrittenGap) -> Announcement:
    last = missed.position.sequence
    resume = {"segment": missed.position.segment, "sequence": last}
    details = {"first": missed.first, "last": last, "resume": resume, "why": gap.why}
    return Announcement("forward.gap", {"stream": gap.stream, **details, "endpoints": gap.notices})


async def expand(connection: Connection) -> int:
    """Write the next batch of a fan-out; return the number of deliveries, 0 if there is none.

    Any forwarder may do so: fan-outs that others are writing are skipped.
    """
    values = {"chunk": limits.DELIVERIES_PER_STATEMENT_MAX}
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        written: int | None = await fetch_value(connection, SQL["expand"], values)
    return written or 0


class _SegmentRefRow(NamedTuple):
    """The keys of a segment."""

    uuid: str
    segment_id: int
    partition_id: int


async def segment_refs(connection: Connection, uuids: list[str]) -> dict[str, SegmentRef]:
    """Return the keys by which deliveries refer to segments."""
    query = tuples_of(connection, _SegmentRefRow)
    rows = await (await query.execute(SQL["segments"], (uuids,))).fetchall()
    return {uuid: SegmentRef(segment_id, partition_id) for uuid, segment_id, partition_id in rows}
