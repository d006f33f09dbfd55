"""The listeners of this process, as far as producers must know of them: on streams that may be
quenched, what nobody registered for may still be listened for. SQL module.

A listen counts from before it begins until a while after its end, so that a reader which comes back
for what it missed finds it. Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StreamInfo
from eventhub.postgresql.connections import reading
from registrations.filters.ast import Node
from registrations.filters.languages import parse
from registrations.filters.pairs import Pairs
from registrations.filters.printed import printed
from registrations.interest.stored import (
    ListenerInterest,
    delete_expired,
    read_quenched,
    write_present,
)

_PIECE = 200  # listeners that are said at once; a filter has up to 16 KiB


class ListenerInterests:
    """Which listeners are there, said to the database before they begin and again and again."""

    def __init__(self, hub_log: Log) -> None:
        self._log = hub_log
        self._present: Counter[ListenerInterest] = Counter()
        self._rests_until_s = 0.0

    @asynccontextmanager
    async def present(self, info: StreamInfo, client_id: int, filter: str) -> AsyncIterator[None]:
        """A listen is there until the block is left. Raises DatabaseUnavailable."""
        one = ListenerInterest(info.id, client_id, filter)
        self._present[one] += 1
        try:
            if info.quench:
                await self._say([one])
            yield
        finally:
            self._present[one] -= 1
            if not self._present[one]:
                del self._present[one]

    async def run(self) -> None:
        """Say so until cancelled; at once when the database is back."""
        while True:
            renewed = await self._renewed()
            pause_s = limits.LISTENER_INTEREST_RENEW_S if renewed else limits.HEAD_POLL_INTERVAL_S
            await asyncio.sleep(pause_s)

    async def _renewed(self) -> bool:
        """False if the database is away. Where nobody listeners it is hardly scope for anything."""
        streams = {one.stream_id for one in self._present}
        now_s = asyncio.get_running_loop().time()
        if not streams and now_s < self._rests_until_s:
            return True
        try:
            async with reading(self._log.pool) as connection:
                quenched = await read_quenched(connection, streams)
                await delete_expired(connection)
            self._rests_until_s = now_s + limits.LISTENER_INTEREST_S
            present = [one for one in self._present if one.stream_id in quenched]
            for at in range(0, len(present), _PIECE):
                await self._say(present[at : at + _PIECE])
        except DatabaseUnavailable:
            return False
        return True

    async def _say(self, present: list[ListenerInterest]) -> None:
        if present:
            async with reading(self._log.pool) as connection:
                await write_present(connection, present)


def interest_text(pairs: Pairs | None, tree: Node | None) -> str:
    """What a listen lets through, in predicate form; all, if that would be too long."""
    if tree is not None:
        return printed(tree)
    if pairs is None:
        return "true"
    gate = {"domain": pairs.domain, "type": pairs.type, "application": pairs.application}
    try:
        return printed(parse("pairs", {**gate, "attributes": dict(pairs.attributes)}).node)
    except EventHubError:
        return "true"
