"""Requests that wait to be appended to transient streams: grouped, each group one call of the
script, all calls in one round trip. SQL module.
"""

import asyncio
import uuid
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

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
            await _connected(client)
            async with client.pipeline(transaction=False) as pipe:
                for group in groups:
                    pipe.eval(APPEND, 4, *keys(group[0].stream_id), *_values(group))
                return await pipe.execute(raise_on_error=False)
    except Exception as error:
        return [error] * len(groups)


async def _connected(client: "redis.asyncio.Redis") -> None:
    """Ensure that the pool has an open connection for the next command. Raises NotSent."""
    pool = client.connection_pool
    try:
        connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        await pool.release(connection)
    except Exception as error:
        raise NotSent from error


def _values(group: Sequence[WaitingAppend]) -> list[Any]:
    """Return the values of the script for a group."""
    values = [str(uuid.uuid4()), *group[0].terms]
    for draft in chain.from_iterable(waiting.drafts for waiting in group):
        values += draft_values(draft)
    return values


def answer_group(group: Sequence[WaitingAppend], found: Any) -> None:
    """Give each request its part of the script's answer: the positions of its own drafts."""
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
