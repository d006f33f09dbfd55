"""Whether the hub has space for what pattern groups write. SQL module.

Emits are refused while the disk or the hub's quota is nearly full (eventlog/maintenance.py). One
event may cause thousands of outputs, which would take the space that this leaves, so groups wait.
"""

import asyncio
import math
from pathlib import Path

from psycopg_pool import AsyncConnectionPool

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.retention import disk, drop
from eventhub.eventlog.retention.cleaning import read_storage_use
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.postgresql.connections import Connection, reading
from eventhub.postgresql.rows import scalars

throttled = ThrottledLog(get_logger(__name__))


class OutputSpace:
    """The space for the groups of one forwarder. `store_dir`: a folder on the disk of the database,
    "" if it is not watched; `quota_bytes`: the hub's, unless an operator has set another one.

    Concurrency contract: one event loop.
    """

    def __init__(self, store_dir: str, quota_bytes: int | None, clock: Clock) -> None:
        self._folder = Path(store_dir) if store_dir else None
        self._quota_bytes = quota_bytes
        self._clock = clock
        self._budget = StorageBudget(0)
        self._admitted = 0  # bytes since `_budget` was measured
        self._measure_at_s = -math.inf
        self._measuring = asyncio.Lock()

    async def wait_for(self, pool: AsyncConnectionPool[Connection], size: int, group: int) -> None:
        """Wait until a group may write so many bytes. Raises what `reading` raises."""
        while size:
            async with reading(pool) as connection:
                if await self._admits(connection, size):
                    return
            throttled.warning("pattern_group_waits_for_space", group=group)
            await asyncio.sleep(limits.PATTERN_RATE_WAIT_S_MAX)

    async def _admits(self, connection: Connection, size: int) -> bool:
        """Return whether so many bytes may be written now, which count then."""
        if self._would_fill_disk(size):
            return False
        async with self._measuring:
            is_due = self._clock.monotonic_s() >= self._measure_at_s
            if is_due or self._admitted + size > self._budget.unmeasured_bytes:
                await self._measure(connection)
            if self._budget.refused:
                return False
            self._admitted += size
        return True

    def _would_fill_disk(self, size: int) -> bool:
        """Return whether emits would be refused after a write, which the WAL has too."""
        if self._folder is None:
            return False
        try:
            space = disk.measure(self._folder)
        except OSError:
            return False
        return space._replace(free=space.free - 2 * size).state == "full"

    async def _measure(self, connection: Connection) -> None:
        found = await (await scalars(connection).execute(drop.SQL["quota"])).fetchone()
        quota = found or self._quota_bytes
        used = sum(await read_storage_use(connection)) if quota else 0
        self._budget, self._admitted = StorageBudget(used, quota), 0
        self._measure_at_s = self._clock.monotonic_s() + limits.RETAIN_CHECK_INTERVAL_S
