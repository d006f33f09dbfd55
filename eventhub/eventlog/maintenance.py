"""Keeps the log within its room, in every web process: partitions ahead of need, retention, the
quota, the disk, and the cleaning of what was dropped. SQL module.

Five tasks: `_watch` looks at the disk, `_measure` at the tables, `_keep` decides and drops,
`_clean` copies and gives the space back, `_bound` has other rooms keep their bounds. Of all
processes one keeps, one cleans, one bounds: each holds a lock of its own session, which the server
ends when it falls silent, so a process that is stopped leads for seconds only. Every process knows
for itself when emits are to be refused: `refusal`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import LiteralString

import psycopg

from eventhub.base import limits, metrics
from eventhub.base.background import run_forever
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.waiting import set_within
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
from eventhub.eventlog.retention.disk import Disk, Episode
from eventhub.eventlog.retention.drop import SQL, RetentionHooks, append_in_turn
from eventhub.eventlog.retention.quota import StorageBudget, StorageUse, droppable, wanting
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection
from eventhub.postgresql.rows import scalars

log = get_logger(__name__)
throttled = ThrottledLog(log)

_LEAD: LiteralString = "SELECT pg_try_advisory_lock(hashtext(%s))"
_REFUSED = (
    "The hub's quota is used up; nothing was stored. Older segments leave, but for those under a"
    " hold and those that are still to be archived: try again in a moment."
)
_STUCK = (
    "The hub's quota is used up by what is no event, such as the state of keys; nothing was stored."
    " Dropping events does not help: an operator has to raise the quota, or keys have to end."
)
_ROLLED_FOR_ROOM = 16  # of the largest open segments, when nothing that is sealed is left


class Maintenance:
    """Of one process. `rooms`: what other rooms have to say; `disk`: None when nobody watches."""

    def __init__(
        self,
        url: str,
        rooms: RetentionHooks,
        clock: Clock,
        *,
        quota_bytes: int | None,
        disk: Disk | None,
    ) -> None:
        self.room = StorageBudget(0)
        self._held = StorageUse()
        self._unmeasured = 0  # bytes that this process stored since `room` was measured
        self._measured = asyncio.Event()  # a new one for each measurement
        self._url = url
        self._rooms = rooms
        self._clock = clock
        self._quota_bytes = quota_bytes
        self._disk = disk
        self.continuity = Continuity()  # of the process's log, if it has one
        self._quota_at_s = float("-inf")  # when the quota last made something go
        self._sweep_at_s = 0.0
        self._stirred = asyncio.Event()
        self._busy_until_s = clock.monotonic_s() + limits.RETAIN_IDLE_AFTER_S

    def refusal(self) -> EventHubError | None:
        """Why nothing can be stored now; None: it can (EMC-24)."""
        if self._disk is not None and self._disk.full:
            return StorageFull(retry_after_s=limits.STORAGE_FULL_RETRY_S)
        if self.room.refused:
            why = _STUCK if self.room.stuck else _REFUSED
            return StorageFull(why, retry_after_s=limits.STORAGE_FULL_RETRY_S)
        return None

    async def admit(self, drafts: list[Draft]) -> None:
        """Wait until there is certainly room for them, as far as the quota goes; for `Log.admit`.

        Raises StorageFull.
        """
        wanted = sum(len(draft.payload) + limits.EVENT_BYTES_MIN for draft in drafts)
        while True:
            refusal = self.refusal()
            if refusal is not None:
                raise refusal
            if not self._unmeasured or self._unmeasured + wanted <= self.room.unmeasured_bytes:
                self._unmeasured += wanted
                return
            if not await set_within(self._measured, limits.QUOTA_MEASURE_S_MAX):
                raise StorageFull(_REFUSED, retry_after_s=limits.STORAGE_FULL_RETRY_S)

    def stir(self) -> None:
        """Something was stored, by whatever process: look often from now on, for a while."""
        if self._idle():
            self._stirred.set()
        self._busy_until_s = self._clock.monotonic_s() + limits.RETAIN_IDLE_AFTER_S

    def _idle(self) -> bool:
        """Nothing was stored for a while, and there is room enough."""
        room_enough = self.room.look_again_s >= limits.RETAIN_CHECK_INTERVAL_S
        return room_enough and self._clock.monotonic_s() >= self._busy_until_s

    async def run(self) -> None:
        """Until cancelled, through every absence of the database."""
        fence = Fence()
        async with asyncio.TaskGroup() as group:
            group.create_task(run_forever("disk", self._watch))
            group.create_task(run_forever("measure", partial(self._lead, "measure", self._measure)))
            group.create_task(run_forever("keep", partial(self._lead, "keep", self._keep)))
            group.create_task(run_forever("bound", partial(self._lead, "bound", self._bound)))
            group.create_task(
                run_forever("clean", partial(self._lead, "clean", partial(self._clean, fence)))
            )

    async def _watch(self) -> None:
        while self._disk is not None:
            self._disk.look(self._clock.now_us())
            if self._disk.space is not None:
                metrics.DISK_FREE_BYTES.set(self._disk.space.free)
            idle = self._idle() and not self._disk.full
            pause_s = limits.DISK_IDLE_INTERVAL_S if idle else limits.DISK_CHECK_INTERVAL_S
            await asyncio.sleep(pause_s)
        await asyncio.Event().wait()

    async def _lead(self, name: str, turn: Callable[[Connection, bool], Awaitable[bool]]) -> None:
        """One turn after the other on a session; `turn` is told whether this process leads, and
        says whether it should go on at once.
        """
        try:
            async with _session(self._url, f"eventhub {name}") as connection:
                await self.continuity.prove(connection)  # it appends to `system`
                leads = False
                while True:
                    leads = leads or await _try_lock(connection, f"eventhub {name}")
                    if not await turn(connection, leads):
                        self._stirred.clear()
                        await set_within(self._stirred, self._pause_s())
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            throttled.info("keeping_postponed", task=name, reason=_reason(error))
            await asyncio.sleep(limits.RETAIN_FAULT_PAUSE_S)

    def _pause_s(self) -> float:
        if self._unmeasured > self.room.unmeasured_bytes // 2:
            return limits.RETAIN_CHECK_INTERVAL_S_MIN
        full = self._disk is not None and self._disk.full
        pause_s = limits.RETAIN_IDLE_INTERVAL_S if self._idle() else self.room.look_again_s
        return min(pause_s, limits.RETAIN_BUSY_INTERVAL_S) if full else pause_s

    # --- keeping ---

    async def _keep(self, connection: Connection, leads: bool) -> bool:
        await self._tell_of_disk(connection)
        if not leads:
            return False
        now_us = self._clock.now_us()
        await prepare_partitions(connection, self.room)
        await drop.roll_due(connection, now_us, self.room.segment_bytes)
        await drop.drop_by_policy(connection, self._rooms, now_us)
        if self.room.pressed:
            await self._make_room(connection, now_us)
        if self.room.stuck:
            await self._warn(connection, self.room)
        if self._clock.monotonic_s() >= self._sweep_at_s:
            await expire_producers(connection)
            await clear_old_digests(connection)
            self._sweep_at_s = self._clock.monotonic_s() + limits.PRODUCER_SWEEP_INTERVAL_S
        return False

    async def _measure(self, connection: Connection, leads: bool) -> bool:
        """What there is. Without a quota and a disk to watch only the metrics want to know."""
        before = self._unmeasured
        found = await (await scalars(connection).execute(SQL["quota"])).fetchone()
        quota = found or self._quota_bytes
        wanted = leads or quota or self._disk is not None
        self._held = await read_storage_use(connection) if wanted else StorageUse()
        used, lasting = sum(self._held), self._held.lasting
        space = self._disk.space if self._disk is not None else None
        self.room = StorageBudget(used, quota, lasting=lasting)
        if space is not None:
            self.room = StorageBudget(used, quota, space.total, space.short, space.free, lasting)
        self._unmeasured -= before
        self._measured.set()
        self._measured = asyncio.Event()
        if leads:
            metrics.STORAGE_USED_BYTES.set(used)
            metrics.STORAGE_QUOTA_BYTES.set(quota or 0)
        return False

    async def _make_room(self, connection: Connection, now_us: int) -> None:
        """Drop the oldest segments, as far as what is dropped already and not cleaned yet is not
        enough.

        Measured here, after the groups were read: a partition that has gone since the last
        measuring is in neither, and must not be counted as held.
        """
        groups = await read_partitions(connection)
        held = await read_storage_use(connection)
        room = self.room._replace(used=sum(held), lasting=held.lasting)
        wanted = wanting(groups, (await horizon(connection)).current, room)
        stored_bytes = droppable(groups, room, wanted) if wanted > 0 else 0
        if not stored_bytes:
            return
        make_room = partial(
            drop.drop_oldest,
            connection,
            self._rooms,
            now_us,
            stored_bytes=stored_bytes,
            why="quota" if room.over_quota >= room.over_disk else "disk",
        )
        trimmed = await make_room()
        if not trimmed and room.over_quota:
            await drop.roll_for_room(connection, _ROLLED_FOR_ROOM)
            trimmed = await make_room()
        if room.over_quota:
            await self._warn(connection, room)

    async def _warn(self, connection: Connection, room: StorageBudget) -> None:
        """Once until the quota has made nothing go for a while."""
        now_s, last_s = self._clock.monotonic_s(), self._quota_at_s
        if now_s - last_s > limits.QUOTA_EPISODE_S:
            attributes = {
                "level": "warning",
                "used_bytes": room.used,
                "quota_bytes": room.quota,
                "held": self._held._asdict(),
            }
            warning = drafts_of(None, [Announcement("storage.quota_reached", attributes)])
            async with connection.transaction():
                await append_in_turn(connection, warning)
        self._quota_at_s = now_s

    async def _tell_of_disk(self, connection: Connection) -> None:
        """Announce the times without space that are over; of all who saw one, one announces it."""
        while self._disk is not None and self._disk.episodes:
            episode = self._disk.episodes[0]
            async with connection.transaction():
                await _announce(connection, episode)
            self._disk.episodes.remove(episode)

    # --- cleaning ---

    async def _clean(self, fence: Fence, connection: Connection, leads: bool) -> bool:
        if not leads:
            return False
        went = await clean(connection, self._rooms, self.room, fence)
        went = went or await self._rooms.shed(connection, self.room.pressed)
        if went:
            await delete_empty_partitions(connection)
        return went

    async def _bound(self, connection: Connection, leads: bool) -> bool:
        if leads:
            await self._rooms.bound(connection, self.room)
        return False


async def _announce(connection: Connection, episode: Episode) -> None:
    bounds = episode._asdict()
    if not await (await scalars(connection).execute(SQL["disk_was_full"], bounds)).fetchone():
        return
    seconds = (episode.until_us - episode.since_us) / 1e6
    attributes = {"level": "warning", "duration_s": round(seconds, 3)}
    log.warning("disk_was_full", seconds=seconds)
    await append_in_turn(
        connection, drafts_of(None, [Announcement("storage.disk_full", attributes)])
    )


async def _try_lock(connection: Connection, name: str) -> bool:
    return bool(await (await scalars(connection).execute(_LEAD, (name,))).fetchone())


@asynccontextmanager
async def _session(url: str, name: str) -> AsyncIterator[Connection]:
    """A connection of its own whose server ends it when it falls silent."""
    settings = {
        "statement_timeout": f"{int(limits.DETACH_TIMEOUT_S_MAX)}s",
        "lock_timeout": f"{limits.CLEAN_LOCK_TIMEOUT_MS}ms",
        "idle_in_transaction_session_timeout": f"{limits.TRANSACTION_IDLE_S_MAX}s",
        "idle_session_timeout": f"{limits.RETAIN_SESSION_IDLE_S_MAX}s",
    }
    async with await psycopg.AsyncConnection.connect(
        url,
        autocommit=True,
        prepare_threshold=0,
        application_name=name,
        connect_timeout=limits.CONNECT_TIMEOUT_S,
        options=" ".join(f"-c {key}={value}" for key, value in settings.items()),
    ) as connection:
        yield connection


def _reason(error: BaseException) -> str:
    return getattr(error, "code", None) or type(error).__name__
