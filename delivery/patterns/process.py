"""The pattern groups of one forwarder: leases, a runner for each, and their lag. SQL module."""

import asyncio
from functools import partial

from delivery.forward.lease_holder import LeaseHolder
from delivery.patterns.group_runner import GroupRunner
from delivery.patterns.group_tables import GroupLease
from delivery.patterns.running_group import PatternContext, RunningGroup
from eventhub.base import limits, metrics
from eventhub.base.event_loop import pause_together_s


class LeasedGroups:
    """The groups that this process runs. `url`: the database, for renewals."""

    def __init__(self, context: PatternContext, url: str) -> None:
        self._context = context
        self._holder: LeaseHolder[GroupLease, GroupRunner] = LeaseHolder(
            context.leases,
            url,
            context.clock,
            partial(GroupRunner, context),
            metrics.PATTERN_GROUPS,
        )

    async def run(self) -> None:
        """Take leases and run their groups until cancelled."""
        listeners = self._context.feed.pattern_listeners
        listeners.add(self._on_change)
        try:
            await self._holder.run()
        finally:
            listeners.discard(self._on_change)

    async def stop(self) -> None:
        """Finish the statements under way and release all groups."""
        await self._holder.stop()

    async def report(self) -> None:
        """Report the sizes and the lag of the groups until cancelled."""
        while True:
            running = [one.group for one in self._holder.works.values() if one.group is not None]
            self._report(running)
            idle = not self._context.leases.share.total
            pause_s = limits.FORWARD_IDLE_INTERVAL_S if idle else limits.PATTERN_LAG_INTERVAL_S
            await asyncio.sleep(pause_together_s(pause_s))

    def _report(self, running: list[RunningGroup]) -> None:
        now_us = self._context.clock.now_us()
        oldest = [one.oldest_us for one in running]
        ages_us = [max(now_us - at_us, 0) for at_us in oldest if at_us]
        metrics.PATTERN_FILTERS.set(sum(one.filters for one in running))
        stopped = sum(one.is_stopped for one in self._holder.works.values())
        metrics.PATTERN_GROUPS_STOPPED.set(stopped)
        metrics.PATTERN_MEMORY_BYTES.set(self._context.memory.bytes)
        metrics.PATTERN_LAG_EVENTS.set(max((one.reader.lag_events for one in running), default=0))
        metrics.PATTERN_LAG_S.set(max(ages_us, default=0) / 1_000_000)

    def _on_change(self, group: int | None) -> None:
        if group not in {lease.group_id for lease in self._holder.works}:
            self._holder.wake()
