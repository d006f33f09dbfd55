"""The interest of this process's listeners on streams that may be quenched, where it counts as the
interest of registrations does. SQL module.

A listener counts from before it starts until some time after its end, so that a reader that
reconnects finds the events that it missed. Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.event_loop import pause_together_s
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
    renew_interests,
)

_BATCH = 200  # listeners in one statement; a filter has up to 16 KiB


class ListenerInterests:
    """The interest of the process's listeners, written before they start and renewed regularly."""

    def __init__(self, hub_log: Log) -> None:
        self._log = hub_log
        self._present: Counter[ListenerInterest] = Counter()
        self._idle_until_s = 0.0

    @asynccontextmanager
    async def present(self, info: StreamInfo, client_id: int, filter: str) -> AsyncIterator[None]:
        """Record a listener until the end of the block. Raises DatabaseUnavailable."""
        one = ListenerInterest(info.id, client_id, filter)
        self._present[one] += 1
        try:
            if info.quench:
                await self._write([one])
            yield
        finally:
            self._present[one] -= 1
            if not self._present[one]:
                del self._present[one]

    async def run(self) -> None:
        """Renew the interest of all listeners until cancelled; retry soon after a failure."""
        while True:
            renewed = await self._renewed()
            pause_s = limits.LISTENER_INTEREST_RENEW_S if renewed else limits.HEAD_POLL_INTERVAL_S
            await asyncio.sleep(pause_together_s(pause_s))

    async def _renewed(self) -> bool:
        """Renew the interest once; return False if the database is unavailable. Without listeners
        there are few queries.
        """
        streams = {one.stream_id for one in self._present}
        now_s = asyncio.get_running_loop().time()
        if not streams and now_s < self._idle_until_s:
            return True
        try:
            async with reading(self._log.pool) as connection:
                quenched = await read_quenched(connection, streams)
                await delete_expired(connection)
            self._idle_until_s = now_s + limits.LISTENER_INTEREST_S
            present = [one for one in self._present if one.stream_id in quenched]
            for at in range(0, len(present), _BATCH):
                await self._write(present[at : at + _BATCH])
        except DatabaseUnavailable:
            return False
        return True

    async def _write(self, present: list[ListenerInterest]) -> None:
        if present:
            async with reading(self._log.pool) as connection:
                await renew_interests(connection, present)


def interest_text(pairs: Pairs | None, tree: Node | None) -> str:
    """Return a listener's filter in the predicate language; `true` if it would be too long."""
    if tree is not None:
        return printed(tree)
    if pairs is None:
        return "true"
    gate = {"domain": pairs.domain, "type": pairs.type, "application": pairs.application}
    try:
        return printed(parse("pairs", {**gate, "attributes": dict(pairs.attributes)}).node)
    except EventHubError:
        return "true"
