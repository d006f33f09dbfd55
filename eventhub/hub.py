"""What one web process runs beside its requests, opened and closed together: the log, the gate and
the feed of registrations. Composition root.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from eventhub.access.gate import Gate
from eventhub.clock import SystemClock
from eventhub.env import Env
from eventhub.eventlog.endless import endless
from eventhub.eventlog.log import Log
from eventhub.eventlog.maintain import maintain
from registrations.feed import Feed


class Hub(NamedTuple):
    """The parts that doors and sessions share in one process."""

    log: Log
    gate: Gate
    feed: Feed
    env: Env


@asynccontextmanager
async def open_hub(env: Env) -> AsyncIterator[Hub]:
    """Open the parts and keep them going until the block is left; the database may be away
    meanwhile.
    """
    async with Log.open(database_url=env.database_url, direct_url=env.database_direct_url) as log:
        gate = Gate(log, secret=env.secret_key, clock=SystemClock())
        feed = Feed(log)
        tasks = [
            asyncio.create_task(endless("gate", gate.run)),
            asyncio.create_task(endless("feed", feed.run)),
            asyncio.create_task(endless("maintain", partial(maintain, log.pool))),
        ]
        try:
            yield Hub(log, gate, feed, env)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
