"""The only writer of the log: numbers drafts under the heads' locks and inserts them, in one
transaction. Sql module.

The steps are a generator that yields statements and takes rows, so that the same code runs on an
asynchronous connection (`append_batch`, the group commit) and inside a caller's own transaction
(`append_in`).
"""

from collections.abc import Generator, Iterable, Sequence
from typing import Any, LiteralString, NamedTuple

import psycopg

from eventhub import limits
from eventhub.errors import EventHubError
from eventhub.eventlog import queries
from eventhub.eventlog.numbering import (
    Appended,
    Draft,
    Head,
    Numbering,
    NumberKey,
    ProducerKey,
    Segment,
)

SQL = queries.load("append.sql")

Request = Sequence[Draft]
Outcome = list[Appended] | EventHubError
Statement = tuple[LiteralString, tuple[Any, ...]]
Rows = list[tuple[Any, ...]]


class NewRow(NamedTuple):
    """One inserted event, as the tail wants it."""

    stream_id: int
    segment: str
    sequence: int
    mask: int
    appended_at_us: int
    payload: bytes


class Decided(NamedTuple):
    """What is left to do when everything is numbered: the writes, each request's outcome, and the
    new rows.
    """

    writes: list[Statement]
    outcomes: list[Outcome]
    rows: list[NewRow]


Steps = Generator[list[Statement], list[Rows], Decided]


def append_steps(requests: Sequence[Request]) -> Steps:
    """Lock, number, open segments; then say what to write.

    A request that is refused is refused alone.
    """
    stream_ids = sorted({draft.stream_id for request in requests for draft in request})
    first = [(SQL["lock_heads"], (stream_ids,)), *_find_producers(requests)]
    results = yield first
    heads, now_us = _heads(results[0])
    numbering = Numbering(heads, *_producers(results[1:]))
    outcomes = [numbering.number(request) for request in requests]
    if numbering.opened:
        results = yield [_open_segments(numbering.opened)]
        by_uuid = {row[1]: row for row in results[0]}
        for segment in numbering.opened:
            segment.id, _, segment.group_id = by_uuid[segment.uuid]
    rows = [
        NewRow(
            row.draft.stream_id,
            row.segment.uuid,
            row.sequence,
            row.draft.mask,
            now_us,
            row.draft.payload,
        )
        for row in numbering.rows
    ]
    return Decided(_writes(numbering, now_us) if rows else [], outcomes, rows)


async def append_batch(
    connection: psycopg.AsyncConnection[Any], requests: Sequence[Request]
) -> Decided:
    """Run the steps in a transaction of their own, up to but without its last round trip:

    `commit` does that.

    The connection is in autocommit mode; on any error the caller rolls back or drops it.
    """
    steps = append_steps(requests)
    batch = [("BEGIN", ()), *next(steps)]
    skip = 1
    while True:
        results = await run_pipelined(connection, batch)
        try:
            batch, skip = steps.send(results[skip:]), 0
        except StopIteration as done:
            decided: Decided = done.value
            return decided


async def commit(connection: psycopg.AsyncConnection[Any], decided: Decided) -> None:
    """Write what was decided and commit, in one round trip.

    If the connection breaks here, nobody knows the outcome.
    """
    await run_pipelined(connection, [*decided.writes, ("COMMIT", ())])


def append_in(connection: psycopg.Connection[Any], drafts: Request) -> list[Appended]:
    """Append inside the caller's transaction, LAST in it, so that the heads are held briefly.

    Call `notify` after the commit. Raises what refuses the drafts (`unknown_stream`,
    `producer_window`).
    """
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        raise RuntimeError("append_in needs the caller's open transaction")
    steps = append_steps([drafts])
    statements = next(steps)
    while True:
        results = [_fetch(connection.execute(sql, values)) for sql, values in statements]
        try:
            statements = steps.send(results)
        except StopIteration as done:
            decided: Decided = done.value
            break
    for sql, values in decided.writes:
        connection.execute(sql, values)
    [outcome] = decided.outcomes
    if isinstance(outcome, EventHubError):
        raise outcome
    return outcome


def notify(connection: psycopg.Connection[Any], heads: dict[int, int]) -> None:
    """Tell the other processes the new heads, {stream: sequence}; a statement of its own, after the
    commit.
    """
    connection.execute(SQL["notify"], (heads_text(heads),))


def heads_text(heads: dict[int, int]) -> str:
    """The payload of a NOTIFY: `stream:head` pairs with spaces between."""
    return " ".join(f"{stream_id}:{sequence}" for stream_id, sequence in heads.items())


async def run_pipelined(
    connection: psycopg.AsyncConnection[Any],
    statements: Iterable[tuple[LiteralString, tuple[Any, ...]]],
) -> list[Rows]:
    """Send all statements at once and collect all their rows: one round trip."""
    async with connection.pipeline():
        cursors = [await connection.execute(sql, values) for sql, values in statements]
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _fetch(cursor: psycopg.Cursor[tuple[Any, ...]]) -> Rows:
    return cursor.fetchall() if cursor.description else []


def _heads(rows: Rows) -> tuple[dict[int, Head], int]:
    heads: dict[int, Head] = {}
    now_us = 0
    for (
        stream_id,
        segment_id,
        uuid,
        group_id,
        first,
        sequence,
        size,
        events_max,
        bytes_max,
        at_us,
    ) in rows:
        segment = Segment(stream_id, uuid, first)
        segment.id, segment.group_id, segment.last, segment.bytes = (
            segment_id,
            group_id,
            sequence,
            size,
        )
        heads[stream_id] = Head(segment, events_max=events_max, bytes_max=bytes_max)
        now_us = max(now_us, at_us)
    return heads, now_us


def _find_producers(requests: Sequence[Request]) -> list[Statement]:
    numbers = sorted(
        {
            (
                draft.stream_id,
                draft.producer.client_id,
                draft.producer.incarnation,
                draft.producer.number,
            )
            for request in requests
            for draft in request
            if draft.producer is not None
        }
    )
    if not numbers:
        return []
    producers = sorted({number[:3] for number in numbers})
    streams, clients, incarnations, wanted = (list(column) for column in zip(*numbers, strict=True))
    slots = [number % limits.PRODUCER_WINDOW for number in wanted]
    return [
        (SQL["find_producers"], tuple(list(column) for column in zip(*producers, strict=True))),
        (SQL["find_numbers"], (streams, clients, incarnations, slots, wanted)),
    ]


def _producers(
    results: list[Rows],
) -> tuple[dict[ProducerKey, int], dict[NumberKey, tuple[str, int]]]:
    if not results:
        return {}, {}
    highest = {(row[0], row[1], row[2]): row[3] for row in results[0]}
    known = {(row[0], row[1], row[2], row[3]): (row[4], row[5]) for row in results[1]}
    return highest, known


def _open_segments(opened: list[Segment]) -> Statement:
    return SQL["open_segments"], (
        [segment.uuid for segment in opened],
        [segment.stream_id for segment in opened],
        [segment.first for segment in opened],
    )


def _writes(numbering: Numbering, now_us: int) -> list[Statement]:
    rows = numbering.rows
    writes: list[Statement] = [
        (
            SQL["insert_events"],
            (
                now_us,
                [row.segment.id for row in rows],
                [row.sequence for row in rows],
                [signed(row.draft.mask) for row in rows],
                [row.segment.group_id for row in rows],
                [row.draft.payload for row in rows],
            ),
        ),
        _move_heads(numbering, {row.draft.stream_id for row in rows}),
    ]
    if numbering.sealed:
        sealed = numbering.sealed
        columns = ([s.id for s in sealed], [s.last for s in sealed], [s.bytes for s in sealed])
        writes.append((SQL["seal_segments"], columns))
    if numbering.fresh:
        writes += _put_producers(numbering)
    return writes


def _move_heads(numbering: Numbering, stream_ids: set[int]) -> Statement:
    segments = [numbering.heads[stream_id].segment for stream_id in sorted(stream_ids)]
    return SQL["move_heads"], (
        [s.stream_id for s in segments],
        [s.id for s in segments],
        [s.uuid for s in segments],
        [s.group_id for s in segments],
        [s.first for s in segments],
        [s.last for s in segments],
        [s.bytes for s in segments],
    )


def _put_producers(numbering: Numbering) -> list[Statement]:
    """The producers' new highest numbers, and the numbers' slots.

    Of two numbers for a slot the higher one stays.
    """
    slots: dict[tuple[int, int, int, int], tuple[int, str, int]] = {}
    for (stream_id, client_id, incarnation, number), (segment, sequence) in sorted(
        numbering.fresh.items()
    ):
        slots[stream_id, client_id, incarnation, number % limits.PRODUCER_WINDOW] = (
            number,
            segment,
            sequence,
        )
    producers = sorted({key[:3] for key in numbering.fresh})
    highest = [(*key, numbering.highest[key]) for key in producers]
    flat = [(*key, *value) for key, value in slots.items()]
    return [
        (SQL["put_producers"], tuple(list(column) for column in zip(*highest, strict=True))),
        (SQL["put_numbers"], tuple(list(column) for column in zip(*flat, strict=True))),
    ]


def signed(mask: int) -> int:
    """64 unsigned bits as PostgreSQL's bigint."""
    return mask - (1 << 64) if mask >> 63 else mask
