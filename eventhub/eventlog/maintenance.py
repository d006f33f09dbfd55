"""Background maintenance of the log, in every web process: partitions ahead of need, retention, the
quota, the disk, and the cleaning of partitions. SQL module.

Five tasks: `_watch` checks the disk, `_measure` the tables, `_retain` drops segments, `_clean`
copies live segments and frees partitions, `_enforce_backlog_bounds` has other packages enforce
their bounds. One process at a time leads each of the last three: it holds an advisory lock in a
session that the server ends when it is idle for long, so a stopped process leads for seconds only.
Every process decides for itself whether to refuse emits: `refusal`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf

import psycopg

from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import pause_together_s, run_forever, wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.continuity import Continuity
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.errors import StorageFull
from eventhub.eventlog.partitions import clear_old_digests, expire_producers, prepare_partitions
from eventhub.eventlog.retention import drop
from eventhub.eventlog.retention.cleaning import (
    Fence,
    clean,
    delete_empty_partitions,
    horizon,
    read_partitions,
    read_storage_use,
)
from eventhub.eventlog.retention.disk import Disk, FullPeriod
from eventhub.eventlog.retention.drop import SQL, RetentionHooks, append_in_turn
from eventhub.eventlog.retention.quota import StorageBudget, StorageBytes, bytes_to_drop, droppable
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection
from eventhub.postgresql.leadership import leading_session, try_lead
from eventhub.postgresql.rows import scalars

log = get_logger(__name__)
throttled = ThrottledLog(log)

_REFUSED = (
    "The hub's quota is used up; nothing was stored. Older segments are being dropped, except those"
    " under a hold and those not archived yet. Try again in a moment."
)
_STUCK = (
    "The hub's quota is used up by data other than events, such as the state of keys; nothing was"
    " stored. Dropping events does not help: raise the quota, or end keys."
)
_MEASURE_IDLE_S = 60.0  # between measurements for the metrics while nothing was stored
_ROLLED_FOR_SPACE = 16  # of the largest open segments, if no sealed segment can be dropped


class Maintenance:
    """The maintenance tasks of one process. `hooks`: functions of other packages; `disk`: None if
    no disk is watched.
    """

    def __init__(
        self,
        url: str,
        hooks: RetentionHooks,
        clock: Clock,
        *,
        quota_bytes: int | None,
        disk: Disk | None,
    ) -> None:
        self.budget = StorageBudget(0)
        self._use = StorageBytes()
        self._unmeasured = 0  # bytes that this process stored since `budget` was measured
        self._measured = asyncio.Event()  # a new one for each measurement
        self._url = url
        self._hooks = hooks
        self._clock = clock
        self._quota_bytes = quota_bytes
        self._disk = disk
        self.continuity = Continuity()  # of the process's log, if it has one
        self._quota_at_s = -inf  # when the quota last caused a drop
        # from the first write that PostgreSQL refused for lack of space to the last one; None if
        # none was refused since the last announcement
        self._refused_writes: FullPeriod | None = None
        self._sweep_at_s = 0.0
        self._done_at_s: dict[str, float] = {}  # by name of what `_is_due` spaces out
        self._woken = asyncio.Event()
        self._busy_until_s = clock.monotonic_s() + limits.RETAIN_IDLE_AFTER_S

    def refusal(self) -> EventHubError | None:
        """Return the error with which emits are refused now; None: they are accepted (EMC-24)."""
        if self._disk is not None and self._disk.full:
            return StorageFull(retry_after_s=limits.STORAGE_FULL_RETRY_S)
        if self.budget.refused:
            why = _STUCK if self.budget.cannot_free_space else _REFUSED
            return StorageFull(why, retry_after_s=limits.STORAGE_FULL_RETRY_S)
        return None

    async def admit(self, drafts: list[Draft]) -> None:
        """Wait until the drafts are certainly within the quota; for `Log.admit`. Raises
        StorageFull.
        """
        size_bytes = sum(len(draft.payload) + limits.EVENT_OVERHEAD_BYTES for draft in drafts)
        while True:
            refusal = self.refusal()
            if refusal is not None:
                raise refusal
            total = self._unmeasured + size_bytes
            if not self._unmeasured or total <= self.budget.unmeasured_bytes:
                self._unmeasured = total
                return
            if not await wait_until_set(self._measured, limits.QUOTA_MEASURE_S_MAX):
                raise StorageFull(_REFUSED, retry_after_s=limits.STORAGE_FULL_RETRY_S)

    def wake(self) -> None:
        """Check often for a while, because a process stored events."""
        if self._idle():
            self._woken.set()
        self._busy_until_s = self._clock.monotonic_s() + limits.RETAIN_IDLE_AFTER_S

    def note_refused_write(self) -> None:
        """Note that PostgreSQL refused a write because its disk is full, which is not always the
        disk that this process watches (EMC-24).
        """
        now_us, before = self._clock.now_us(), self._refused_writes
        self._refused_writes = FullPeriod(before.since_us if before else now_us, now_us)
        self.wake()

    def _idle(self) -> bool:
        """Return whether nothing was stored for a while and there is enough space."""
        has_space = self.budget.check_interval_s >= limits.RETAIN_CHECK_INTERVAL_S
        return has_space and self._clock.monotonic_s() >= self._busy_until_s

    async def run(self) -> None:
        """Run the tasks until cancelled, also while the database is unreachable."""
        fence = Fence()
        async with asyncio.TaskGroup() as group:
            group.create_task(run_forever("disk", self._watch))
            group.create_task(run_forever("measure", partial(self._lead, "measure", self._measure)))
            group.create_task(run_forever("retain", partial(self._lead, "retain", self._retain)))
            group.create_task(
                run_forever("bound", partial(self._lead, "bound", self._enforce_backlog_bounds))
            )
            group.create_task(
                run_forever("clean", partial(self._lead, "clean", partial(self._clean, fence)))
            )

    async def _watch(self) -> None:
        while self._disk is not None:
            self._disk.update(self._clock.now_us())
            if self._disk.space is not None:
                metrics.DISK_FREE_BYTES.set(self._disk.space.free)
            idle = self._idle() and not self._disk.full
            pause_s = limits.DISK_IDLE_INTERVAL_S if idle else limits.DISK_CHECK_INTERVAL_S
            await asyncio.sleep(pause_together_s(pause_s))
        await asyncio.Event().wait()

    async def _lead(self, name: str, step: Callable[[Connection, bool], Awaitable[bool]]) -> None:
        """Run steps on one session until it fails. A step gets whether this process leads, and
        returns whether the next one should follow at once.
        """
        try:
            async with leading_session(self._url, f"eventhub {name}") as connection:
                await self.continuity.prove(connection)  # it appends to `system`
                leads = False
                while True:
                    if not leads and self._is_due(f"lead {name}", limits.WATCH_REST_S):
                        leads = await try_lead(connection, f"eventhub {name}")
                    if not await step(connection, leads):
                        self._woken.clear()
                        await wait_until_set(self._woken, pause_together_s(self._pause_s()))
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            if isinstance(error, psycopg.errors.DiskFull):
                self.note_refused_write()
            throttled.info("maintenance_postponed", task=name, reason=_reason(error))
            await asyncio.sleep(limits.RETAIN_FAULT_PAUSE_S)

    def _is_due(self, name: str, interval_s: float) -> bool:
        """Return whether to do now what is done at intervals: at once if space is short."""
        now_s = self._clock.monotonic_s()
        if now_s < self._done_at_s.get(name, -inf) + interval_s and not self._is_short():
            return False
        self._done_at_s[name] = now_s
        return True

    def _is_short(self) -> bool:
        space = self._disk.space if self._disk is not None else None
        return self.budget.must_free_space or bool(space and space.bytes_to_free)

    def _pause_s(self) -> float:
        if self._unmeasured > self.budget.unmeasured_bytes // 2:
            return limits.RETAIN_CHECK_INTERVAL_S_MIN
        full = self._disk is not None and self._disk.full
        pause_s = limits.RETAIN_IDLE_INTERVAL_S if self._idle() else self.budget.check_interval_s
        return min(pause_s, limits.RETAIN_BUSY_INTERVAL_S) if full else pause_s

    # --- retention ---

    async def _retain(self, connection: Connection, leads: bool) -> bool:
        await self._announce_disk_full(connection)
        if not leads:
            return False
        now_us = self._clock.now_us()
        await prepare_partitions(connection, self.budget)
        await drop.roll_due(connection, now_us, self.budget.segment_bytes)
        await drop.drop_by_policy(connection, self._hooks, now_us)
        if self.budget.must_free_space:
            await self._free_space(connection, now_us)
        if self.budget.cannot_free_space:
            await self._warn(connection, self.budget)
        if self._clock.monotonic_s() >= self._sweep_at_s:
            await expire_producers(connection)
            await clear_old_digests(connection)
            self._sweep_at_s = self._clock.monotonic_s() + limits.PRODUCER_SWEEP_INTERVAL_S
        await self._hooks.check_quotas(connection)  # last: no drop of segments waits for it
        return False

    async def _measure(self, connection: Connection, leads: bool) -> bool:
        """Measure the storage. Without a quota, and while the disk has space, only the leader
        measures, now and then, for the metrics.
        """
        before = self._unmeasured
        found = await (await scalars(connection).execute(SQL["quota"])).fetchone()
        quota = found or self._quota_bytes
        is_needed = quota or self._is_short()
        idle = self._idle()
        interval_s = _MEASURE_IDLE_S if idle else limits.MEASURE_INTERVAL_S
        if is_needed or (leads and self._is_due("measure", interval_s)):
            self._use = await read_storage_use(connection)
        used, lasting = sum(self._use), self._use.lasting
        space = self._disk.space if self._disk is not None else None
        self.budget = StorageBudget(used, quota, lasting=lasting)
        if space is not None:
            self.budget = StorageBudget(
                used, quota, space.total, space.bytes_to_free, space.free, lasting
            )
        self._unmeasured -= before
        self._measured.set()
        self._measured = asyncio.Event()
        if leads:
            metrics.STORAGE_USED_BYTES.set(used)
            metrics.STORAGE_QUOTA_BYTES.set(quota or 0)
        return False

    async def _free_space(self, connection: Connection, now_us: int) -> None:
        """Drop the oldest segments, unless the cleaning of dropped ones frees enough.

        The storage is measured again after the partitions were read: a partition dropped since the
        last measurement is in neither and must not be counted.
        """
        partitions = await read_partitions(connection)
        use = await read_storage_use(connection)
        budget = self.budget._replace(used=sum(use), lasting=use.lasting)
        needed = bytes_to_drop(partitions, (await horizon(connection)).current, budget)
        stored_bytes = droppable(partitions, budget, needed) if needed > 0 else 0
        if not stored_bytes:
            return
        drop_oldest = partial(
            drop.drop_oldest,
            connection,
            self._hooks,
            now_us,
            stored_bytes=stored_bytes,
            reason="quota" if budget.over_quota >= budget.over_disk else "disk",
        )
        if not await drop_oldest() and budget.over_quota:
            await drop.roll_for_space(connection, _ROLLED_FOR_SPACE)
            await drop_oldest()
        if budget.over_quota:
            await self._warn(connection, budget)

    async def _warn(self, connection: Connection, budget: StorageBudget) -> None:
        """Announce that the quota is reached, once until it has caused no drop for a while."""
        now_s, last_s = self._clock.monotonic_s(), self._quota_at_s
        if now_s - last_s > limits.QUOTA_EPISODE_S:
            attributes = {
                "level": "warning",
                "used_bytes": budget.used,
                "quota_bytes": budget.quota,
                "usage": self._use._asdict(),
            }
            warning = drafts_of(None, [Announcement("storage.quota_reached", attributes)])
            async with connection.transaction():
                await append_in_turn(connection, warning)
        self._quota_at_s = now_s

    async def _announce_disk_full(self, connection: Connection) -> None:
        """Announce ended periods of a full disk; of the processes that noticed one, one does so. A
        period of refused writes has ended when no write was refused for a moment and the
        announcement itself can be written.
        """
        while self._disk is not None and self._disk.full_periods:
            period = self._disk.full_periods[0]
            async with connection.transaction():
                await _announce(connection, period)
            self._disk.full_periods.remove(period)
        if self._disk is not None and self._disk.full:
            return  # the period of that disk has the refused writes in it
        refused, quiet_us = self._refused_writes, limits.DISK_QUIET_S * 1_000_000
        if refused is not None and self._clock.now_us() - refused.until_us >= quiet_us:
            async with connection.transaction():
                await _announce(connection, refused)
            if self._refused_writes is refused:
                self._refused_writes = None

    # --- cleaning ---

    async def _clean(self, fence: Fence, connection: Connection, leads: bool) -> bool:
        if not leads or not self._is_due("clean", limits.CLEAN_INTERVAL_S):
            return False
        dropped = await clean(connection, self._hooks, self.budget, fence)
        dropped = dropped or await self._hooks.shed(connection, self.budget.must_free_space)
        if dropped:
            await delete_empty_partitions(connection)
            del self._done_at_s["clean"]  # there may be more
        return dropped

    async def _enforce_backlog_bounds(self, connection: Connection, leads: bool) -> bool:
        if leads:
            await self._hooks.bound(connection, self.budget)
        return False


async def _announce(connection: Connection, period: FullPeriod) -> None:
    bounds = period._asdict()
    if not await (await scalars(connection).execute(SQL["disk_was_full"], bounds)).fetchone():
        return
    seconds = (period.until_us - period.since_us) / 1e6
    attributes = {"level": "warning", "duration_s": round(seconds, 3)}
    log.warning("disk_was_full", seconds=seconds)
    await append_in_turn(
        connection, drafts_of(None, [Announcement("storage.disk_full", attributes)])
    )


def _reason(error: BaseException) -> str:
    return getattr(error, "code", None) or type(error).__name__
