"""The only writer of the log. SQL module.

An append is one statement, the function in sql/functions/append.v1.sql: it locks the heads,
assigns sequences, detects duplicates, rolls segments and inserts. Events of one stream for which
there is nothing else to do are appended by a shorter statement (append.sql). This module builds the
arguments and reads the rows of both. `append_in` runs the function inside a caller's transaction,
the group commit (appender.py) either of them on a connection of its own.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError, ProducerWindow, UnknownStream
from eventhub.eventlog.drafts import Appended, AppendedBatch, NewRow, Outcome, Request
from eventhub.eventlog.errors import Changed
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import adapt, bytea_array, int4, int8_array, text_array
from eventhub.postgresql.prepared import Values
from eventhub.postgresql.rows import in_order, scalars

SQL = queries.load("eventhub/eventlog/sql/append.sql")
_PRODUCER_WINDOW = int4(limits.PRODUCER_WINDOW)


class AppendRow(NamedTuple):
    """A row that the function returns for a draft or a run of drafts; see the SQL file."""

    outcome: str
    draft: int
    stream: int
    segment: UUID
    first: int
    last: int
    appended_at_us: int
    watchers: list[int] | None


Rows = Sequence[tuple[Any, ...]]  # with the fields of an AppendRow


Call = Callable[[str, Values], Awaitable[Rows]]  # runs a statement of append.sql


class _Refusal(NamedTuple):
    """The reason why a draft is refused. `highest`: its producer's highest number, if relevant."""

    outcome: str
    highest: int


async def append_batch(
    connection: psycopg.AsyncConnection[Any], requests: list[Request]
) -> AppendedBatch:
    """Append several requests in one transaction, on a connection in autocommit mode."""

    async def call(statement: str, arguments: Values) -> Rows:
        cursor = connection.cursor(binary=True, row_factory=in_order(AppendRow))
        adapt(cursor)
        await cursor.execute(SQL[statement], arguments)
        return await cursor.fetchall()

    return await append_requests(call, requests)


async def append_requests(call: Call, requests: list[Request]) -> AppendedBatch:
    """Append several requests in one transaction.

    A refused request does not fail the others: the function then stores nothing and is called again
    without it.
    """
    refused: dict[int, EventHubError] = {}
    while True:
        accepted = [request for at, request in enumerate(requests) if at not in refused]
        drafts = list(chain.from_iterable(accepted))
        rows: Rows = []
        if _are_plain(drafts):
            rows = await call("append_plain", _plain_arguments(drafts))
        if drafts and not rows:
            rows = await call("append", _arguments(drafts))
        problems = _refusals(rows, requests, refused)
        if not problems:
            return _batch(requests, refused, drafts, rows)
        refused.update(problems)


async def append_whole(connection: psycopg.AsyncConnection[Any], drafts: Request) -> list[Appended]:
    """Append inside the caller's transaction, LAST in it. Raises the refusal of a draft, and
    DatabaseUnavailable until the log is proved.
    """
    query = await scalars(connection).execute(SQL["appendable"])
    require_proven(await query.fetchone())
    [outcome] = (await append_batch(connection, [drafts])).outcomes
    if isinstance(outcome, EventHubError):
        raise outcome
    return outcome


async def append_proven(
    connection: psycopg.AsyncConnection[Any], drafts: Request
) -> dict[int, int]:
    """Append as append_whole; return the last sequence of each stream, for `heads_text`."""
    heads: dict[int, int] = {}
    for one in await append_whole(connection, drafts):
        heads[one.stream_id] = max(one.sequence, heads.get(one.stream_id, 0))
    return heads


def append_in(connection: psycopg.Connection[Any], drafts: Request) -> list[Appended]:
    """Append inside the caller's transaction, LAST in it, so that the heads are held briefly.

    Call `notify` after the commit. Raises UnknownStream, ProducerWindow, Changed if a draft's key
    changed after `expected`, and DatabaseUnavailable until the log is proved in this life of the
    server.
    """
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        raise RuntimeError("append_in needs the caller's open transaction")
    require_proven(scalars(connection).execute(SQL["appendable"]).fetchone())
    for draft in drafts:
        if draft.expected is not None:
            _require_unchanged(connection, draft.stream_id, draft.key, draft.expected)
    # server-side parameters, even on a connection that binds them on the client
    cursor = psycopg.Cursor(connection, row_factory=in_order(AppendRow))
    adapt(cursor)
    rows = cursor.execute(SQL["append"], _arguments(drafts)).fetchall()
    for error in _refusals(rows, [drafts], {}).values():
        raise error
    [outcome] = _batch([drafts], {}, drafts, rows).outcomes
    return outcome if isinstance(outcome, list) else []


def require_proven(appendable: bool | None) -> None:
    """Raise DatabaseUnavailable until it is proved, in this life of the server, that the log holds
    what it acknowledged (continuity.py). `appendable`: the result of the query of that name.
    """
    if not appendable:
        raise DatabaseUnavailable(
            "The database server was restarted, and the hub has not yet checked its log. Try again"
            " in a moment. If no hub is running, check the log with `manage.py boot`."
        )


def _require_unchanged(
    connection: psycopg.Connection[Any], stream_id: int, key: str, expected: int
) -> None:
    """Raise Changed if a key's state is of a later event or has ended, or if the log has not
    reached the sequence (after a restore). Locks the head to the end of the transaction.
    """
    head = lock_head(connection, stream_id)
    current = scalars(connection).execute(SQL["state_sequence"], (stream_id, key)).fetchone() or 0
    if current > expected or expected > head or (expected and not current):
        raise Changed(current=current)


def lock_head(connection: psycopg.Connection[Any], stream_id: int) -> int:
    """Lock a stream's head to the end of the transaction, so that nothing is appended meanwhile.
    Return its last sequence.
    """
    return int(scalars(connection).execute(SQL["lock_head"], (stream_id,)).fetchone() or 0)


def notify(connection: psycopg.Connection[Any], heads: dict[int, int]) -> None:
    """Announce new heads, {stream: sequence}, to the other processes by NOTIFY: a statement of its
    own, after the commit.
    """
    connection.execute(SQL["notify"], (heads_text(heads),))


def heads_text(heads: dict[int, int]) -> str:
    """Return the payload of a NOTIFY: `stream:head` pairs separated by spaces."""
    return " ".join(f"{stream_id}:{sequence}" for stream_id, sequence in heads.items())


def _are_plain(drafts: Request) -> bool:
    """Return whether the drafts are of one stream, and the statement `append_plain` does all."""
    return bool(drafts) and all(
        draft.stream_id == drafts[0].stream_id
        and draft.producer is None
        and not draft.token
        and not draft.key
        for draft in drafts
    )


def _plain_arguments(drafts: Request) -> dict[str, Any]:
    return {
        "stream": drafts[0].stream_id,
        "count": len(drafts),
        "bytes": sum(len(draft.payload) for draft in drafts),
        "masks": int8_array([_signed(draft.mask) for draft in drafts]),
        "payloads": bytea_array([draft.payload for draft in drafts]),
    }


def _arguments(drafts: Request) -> tuple[bytes | None, ...]:
    producers = [draft.producer for draft in drafts]
    clients = incarnations = numbers = tokens = keys = tombstones = None
    if any(producers):
        clients = int8_array([producer and producer.client_id for producer in producers])
        incarnations = int8_array([producer and producer.incarnation for producer in producers])
        numbers = int8_array([producer and producer.number for producer in producers])
    if any(draft.token for draft in drafts):
        tokens = bytea_array([draft.token for draft in drafts])
    if any(draft.key for draft in drafts):
        keys = text_array([draft.key for draft in drafts])
        tombstones = int8_array([int(draft.tombstone) for draft in drafts])
    return (
        int8_array([draft.stream_id for draft in drafts]),
        int8_array([_signed(draft.mask) for draft in drafts]),
        bytea_array([draft.payload for draft in drafts]),
        clients,
        incarnations,
        numbers,
        _PRODUCER_WINDOW,
        tokens,
        keys,
        tombstones,
    )


def _refusals(
    rows: Rows, requests: Sequence[Request], refused: dict[int, EventHubError]
) -> dict[int, EventHubError]:
    """Return the requests that the function refused, by index, each with its first error. If there
    are bad drafts, at least one request is returned.
    """
    bad = {
        draft: _Refusal(outcome, first)
        for outcome, draft, _, _, first, _, _, _ in rows
        if outcome in ("unknown_stream", "producer_window")
    }
    if not bad:
        return {}
    found: dict[int, EventHubError] = {}
    unstored: dict[tuple[int, int, int], int] = {}  # producers' highest numbers in bad requests
    start = 0
    for at, request in enumerate(requests):
        if at in refused:
            continue
        own = [(index, bad[start + index]) for index in range(len(request)) if start + index in bad]
        start += len(request)
        if own:
            error = _refusal(request, *own[0], unstored)
            if error is not None:
                found[at] = error
            _add_numbers(unstored, request)
    return found


def _refusal(
    request: Request, index: int, bad: _Refusal, unstored: dict[tuple[int, int, int], int]
) -> EventHubError | None:
    """Return the error of a bad draft. Return None if only another request, which was refused, may
    have moved the producer window: the caller then retries the draft without that request.
    """
    stream_id, producer = request[index].stream_id, request[index].producer
    if bad.outcome == "unknown_stream" or producer is None:
        return UnknownStream(index=index)
    if bad.highest <= unstored.get((stream_id, *producer[:2]), 0):
        return None
    return ProducerWindow(index=index, field="id.sequence", highest=bad.highest)


def _add_numbers(highest: dict[tuple[int, int, int], int], request: Request) -> None:
    for draft in request:
        if draft.producer is not None:
            key = (draft.stream_id, *draft.producer[:2])
            highest[key] = max(highest.get(key, 0), draft.producer.number)


def _batch(
    requests: Sequence[Request], refused: dict[int, EventHubError], drafts: Request, rows: Rows
) -> AppendedBatch:
    """Assign the runs of new sequences to the drafts, in their order."""
    appended: list[Appended | None] = [None] * len(drafts)
    repeated: list[tuple[int, int]] = []  # drafts that repeat an earlier one of the batch
    heads: dict[int, Cursor] = {}  # of streams with a duplicate
    runs: dict[int, list[tuple[str, int, int]]] = {}
    watchers: dict[int, Sequence[int]] = {}
    at_us = 0
    for outcome, index, stream_id, uuid, first, last, appended_at_us, watched_by in rows:
        if outcome == "run":
            runs.setdefault(stream_id, []).append((str(uuid), first, last))
            at_us = appended_at_us
            if watched_by:
                watchers[stream_id] = watched_by
        elif outcome == "duplicate":
            appended[index] = Appended(stream_id, str(uuid), first, True)
        elif outcome == "head":
            heads[stream_id] = Cursor(str(uuid), last)
        else:
            repeated.append((index, first))
    skip = {index for index, _ in repeated}
    fresh = {stream_id: _numbers(found) for stream_id, found in runs.items()}
    new: list[NewRow] = []
    for at, draft in enumerate(drafts):
        if appended[at] is None and at not in skip:
            segment, sequence = next(fresh[draft.stream_id])
            appended[at] = Appended(draft.stream_id, segment, sequence)
            new.append(NewRow(draft.stream_id, segment, sequence, draft.mask, at_us, draft.payload))
    for at, original in repeated:
        found = appended[original]
        appended[at] = found and found._replace(duplicate=True)
    if heads:
        appended = [one and _with_head(one, heads) for one in appended]
    return AppendedBatch(_by_request(requests, refused, appended), new, watchers)


def _with_head(appended: Appended, heads: dict[int, Cursor]) -> Appended:
    return appended._replace(head=heads[appended.stream_id]) if appended.duplicate else appended


def _numbers(runs: list[tuple[str, int, int]]) -> Iterator[tuple[str, int]]:
    return (
        (segment, sequence) for segment, first, last in runs for sequence in range(first, last + 1)
    )


def _by_request(
    requests: Sequence[Request],
    refused: dict[int, EventHubError],
    appended: list[Appended | None],
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    start = 0
    for at, request in enumerate(requests):
        if at in refused:
            outcomes.append(refused[at])
            continue
        own = appended[start : start + len(request)]
        outcomes.append([one for one in own if one is not None])
        start += len(request)
    return outcomes


def _signed(mask: int) -> int:
    """Convert 64 unsigned bits to PostgreSQL's bigint."""
    return mask - (1 << 64) if mask >> 63 else mask
