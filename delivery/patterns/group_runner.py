"""Runs one pattern group under its lease: restores it, then lets it read and consume events. SQL
module.

The tables say where to continue. After a fault, a lost connection or a change of owner the engines
are restored from them; nothing else is remembered.
"""

import asyncio

import psycopg

from delivery.forward.leases import LeaseLost
from delivery.forward.zone import ZoneView
from delivery.patterns import group_faults
from delivery.patterns.group_reader import GroupReader
from delivery.patterns.group_tables import GroupLease
from delivery.patterns.restoring import (
    CompiledVersions,
    GroupEngine,
    StateUnreadable,
    StoredGroup,
    load_group,
    restored,
)
from delivery.patterns.running_group import PatternContext, RunningGroup
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.connections import CONNECTION_ERRORS, reading

log = get_logger(__name__)
throttled = ThrottledLog(log)


class GroupRunner:
    """One leased group. `run` is its task; `stop` ends it cleanly."""

    def __init__(self, context: PatternContext, lease: GroupLease) -> None:
        self.lease = lease
        self.group: RunningGroup | None = None  # once it is restored
        self.is_stopped = False  # its state cannot be read
        self._context = context
        self._compiled = CompiledVersions()
        self._wake_up = asyncio.Event()
        self._changed = True
        self._stopping = False

    def stop(self) -> None:
        """End after the statement under way, with the checkpoint written."""
        self._stopping = True
        self._wake_up.set()

    async def run(self) -> None:
        """Run until stopped or cancelled, through outages of the database. Raises LeaseLost."""
        listeners = self._context.feed.pattern_listeners
        listeners.add(self._on_change)
        try:
            while not self._stopping:
                await self._run_once()
        finally:
            listeners.discard(self._on_change)
            self._context.memory.forget(self.lease.group_id)
            self._context.turns.forget_idle()

    def _on_change(self, group: int | None) -> None:
        if group is None or group == self.lease.group_id:
            self._changed = True
            self._wake_up.set()

    async def _run_once(self) -> None:
        try:
            self._changed = False  # the tables that are read now have all earlier changes
            since_s = self._context.clock.monotonic_s()
            async with reading(self._context.pool) as connection:
                stored = await load_group(connection, self.lease, since_s)
            if stored is None:
                raise LeaseLost
            try:
                await self._run_stored(stored)
            except StateUnreadable:
                await self._stopped(stored)
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            code = getattr(error, "code", type(error).__name__)
            throttled.warning("pattern_group_paused", group=self.lease.group_id, error=code)
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _stopped(self, stored: StoredGroup) -> None:
        """Record that the group cannot be run, and wait for a change of it."""
        self.is_stopped, self.group = True, None
        log.exception("pattern_state_unreadable", group=stored.group.id)
        async with reading(self._context.pool) as connection:
            await group_faults.record(connection, self.lease, stored.group, group_faults.UNREADABLE)
        if not self._changed:
            self._wake_up.clear()
            await wait_until_set(self._wake_up, limits.PATTERN_UNREADABLE_RETRY_S)

    async def _restored(self, stored: StoredGroup) -> tuple[StoredGroup, GroupEngine]:
        """Return what the group begins with, and its engine. Raises StateUnreadable."""
        context = self._context
        zone = ZoneView(context.zones, stored.group.zone_id)
        try:
            found = await restored(stored, zone, self._compiled, context.log, context.turns)
        except StateUnreadable:
            if not stored.is_over:
                raise
            stored = stored.without_state()
            found = await restored(stored, zone, self._compiled, context.log, context.turns)
        self.is_stopped = False
        if stored.group.is_stopped:
            async with reading(self._context.pool) as connection:
                await group_faults.record(connection, self.lease, stored.group, None)
        return stored, found

    async def _run_stored(self, stored: StoredGroup) -> None:
        context = self._context
        stored, found = await self._restored(stored)
        group = stored.group
        async with GroupReader.open(context.log, group.cursors, self._wake_up) as reader:
            running = RunningGroup(context, self.lease, stored, found, reader)
            self.group = running
            log.info("pattern_group_running", group=group.id, patterns=len(found.running))
            while not self._stopping:
                self._wake_up.clear()
                await self._step(running)
            await running.save()

    async def _step(self, running: RunningGroup) -> None:
        more = await running.read()
        changed, self._changed = self._changed, False
        if changed:
            await running.load_changes()
        if more or running.has_changes:
            more = await running.consume()
        if not more and not self._stopping:
            wait_s = await running.save_if_due()
            await wait_until_set(self._wake_up, wait_s)
