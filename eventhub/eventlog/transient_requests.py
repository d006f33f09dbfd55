"""Requests that wait to be appended to transient streams: grouped, each group one call of the
script, all calls in one round trip. SQL module.
"""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import redis
import redis.asyncio

from eventhub.base import limits
from eventhub.base.errors import EventHubError, OutcomeUnknown
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.errors import TransientUnavailable
from eventhub.eventlog.transient_scripts import (
    APPEND,
    OTHER_HISTORY,
    NotSent,
    draft_values,
    keys,
    stored_nothing,
)


class WaitingAppend(NamedTuple):
    """The drafts of one request."""

    stream_id: int
    terms: list[Any]  # values of the script before those of drafts, after the new UUID
    drafts: Sequence[Draft]
    answer: "asyncio.Future[Any]"


def grouped(taken: Sequence[WaitingAppend]) -> list[list[WaitingAppend]]:
    """Return the requests in groups, each for one call of the script: those for one stream whose
    events have neither producers nor tokens, and so cannot be refused for one another.
    """
    groups: list[list[WaitingAppend]] = []
    last: dict[int, tuple[list[WaitingAppend], int]] = {}  # by stream: group, events
    for waiting in taken:
        group, count = last.get(waiting.stream_id, ([], 0))
        count += len(waiting.drafts)
        plain = not any(draft.producer or draft.token for draft in waiting.drafts)
        fits = group and group[0].terms == waiting.terms
        if not (plain and fits and count <= limits.TRANSIENT_SCRIPT_EVENTS_MAX):
            group, count = [], len(waiting.drafts)
            groups.append(group)
        group.append(waiting)
        if plain:
            last[waiting.stream_id] = group, count
        else:
            last.pop(waiting.stream_id, None)
    return groups


async def evaluated(
    client: "redis.asyncio.Redis", groups: Sequence[Sequence[WaitingAppend]]
) -> list[Any]:
    """Run the append script for each group; return answers, or exceptions in their positions."""
    try:
        async with asyncio.timeout(limits.TRANSIENT_TIMEOUT_S_MAX):
            connection = await _connected(client)
            try:
                await connection.send_packed_command([_command(group) for group in groups])
                return [await _answer(connection) for _ in groups]
            finally:
                await client.connection_pool.release(connection)
    except Exception as error:
        return [error] * len(groups)


async def _connected(client: "redis.asyncio.Redis") -> Any:
    """Take an open connection from the pool. Raises NotSent."""
    try:
        return await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]
    except Exception as error:
        raise NotSent from error


async def _answer(connection: Any) -> Any:
    """Return the next answer, also if it is an error."""
    try:
        return await connection.read_response()
    except redis.ResponseError as error:
        return error


def _command(group: Sequence[WaitingAppend]) -> bytes:
    """Return the call of the script for a group, as Redis reads it. The library's own packing of so
    many small values costs more than all else of a transient event.
    """
    drafts = [draft for waiting in group for draft in waiting.drafts]
    plain = not any(draft.producer or draft.token for draft in drafts)
    values: list[Any] = ["EVAL", APPEND, 4, *keys(group[0].stream_id)]
    values += [uuid.uuid4(), *group[0].terms, int(plain)]
    for draft in drafts:
        values += (draft.mask, draft.payload) if plain else draft_values(draft)
    parts = [b"*%d\r\n" % len(values)]
    for value in values:
        encoded = value if isinstance(value, bytes) else str(value).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(encoded), encoded))
    return b"".join(parts)


def answer_group(group: Sequence[WaitingAppend], found: Any) -> None:
    """Give each request its part of the script's answer: the positions of its own drafts."""
    if isinstance(found, list) and len(found) == 4 and isinstance(found[2], int):
        found[2] = range(found[2], found[3] + 1)
    if len(group) == 1 or isinstance(found, BaseException) or found == OTHER_HISTORY:
        for waiting in group:
            answer_one(waiting, found)
        return
    segment, at_us, given, *last = found
    start = 0
    for waiting in group:
        end = start + len(waiting.drafts)
        answer_one(waiting, [segment, at_us, given[start:end], *last])
        start = end


def answer_one(waiting: WaitingAppend, found: Any) -> None:
    """Give a request the script's answer, or the error that an exception means."""
    if waiting.answer.done():
        return
    if isinstance(found, EventHubError):
        waiting.answer.set_exception(found)
    elif isinstance(found, BaseException):
        unavailable = TransientUnavailable() if stored_nothing(found) else OutcomeUnknown()
        unavailable.__cause__ = found
        waiting.answer.set_exception(unavailable)
    else:
        waiting.answer.set_result(found)
