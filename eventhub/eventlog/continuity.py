"""Proof that the database still holds the events that it acknowledged. It is given once for each
life of the database server, before anything is appended or a ring is filled. SQL module.

A crash recovery may lose acknowledged events of async streams; a restore may lose those of all
streams. Their sequences would be assigned again, so the streams get new segments, from which every
reader learns of the loss (EMC-15, EMC-16). A restore is detected by the server's identity and
timeline, else by the high-water mark (high_water_mark.py), which is written after commits, at most
once in `MARK_INTERVAL_S`. Events acknowledged in the last moment before a restore are missed only
by the cursors of readers: see `doubt`.

Concurrency contract: one event loop; `run` is one task, and any task may call the rest.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import get_logger
from eventhub.eventlog.append import SQL
from eventhub.eventlog.drafts import NewRow
from eventhub.eventlog.high_water_mark import HighWaterMark, open_mark_store
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID, Announcement, announce_in
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, connect
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)

ROLLED_ALL = frozenset({"restored", "unproven"})


class ContinuityProof(NamedTuple):
    """The life of the database, a new one after every start, crash recovery and restore, and the
    result of its proof. No reason: nothing is missing, or the proof was given before.
    """

    life: str
    reason: str = ""
    streams: int = 0  # that got new segments


class _ProofRow(NamedTuple):
    """The row of `prove_continuity`: the reason why streams were rolled, if they were, and both
    lives.
    """

    reason: str | None
    streams: int | None
    before: str | None
    life: str


class _Life(NamedTuple):
    """The life for which the log was proved, None if it was not, and the key of its mark."""

    life: str | None
    key: str


class Continuity:
    """The proof and the mark in one process. `marks_url`: as for `open_mark_store`."""

    def __init__(self, marks_url: str = "") -> None:
        self._marks = open_mark_store(marks_url)
        self._key = ""
        self._life = ""
        self._known: HighWaterMark | None = None  # of this life, in case the store has lost it
        self._newest: NewRow | StoredEvent | None = None
        self._replaces = False  # this process proved the life: any stored mark is older
        self.on_new_life: Callable[[], None] = _note_nothing
        self._dirty = asyncio.Event()

    async def prove(self, connection: Connection) -> ContinuityProof:
        """Ensure that the log may be appended to in this life of the server. If no process has
        proved it yet, check that acknowledged events are there; streams that may have lost some get
        new segments, announced as `log.recovered`.

        The connection is in autocommit mode. Costs one query when the log is proved.
        """
        life, self._key = await _proven(connection)
        if life and life == self._life:
            return ContinuityProof(life)
        if not life:
            async with connection.transaction():
                await connection.execute(SQL["lock_head"], (SYSTEM_STREAM_ID,))
                life, _ = await _proven(connection)  # another process may have been quicker
                found = None if life else await self._prove_now(connection)
            if found is not None:
                proof, mark = found
                self._enter(proof.life, mark, replaces=True)
                await self._write()
                return proof
        self._enter(life, await self._marks.read(self._key))
        return ContinuityProof(life)

    async def _prove_now(self, connection: Connection) -> tuple[ContinuityProof, HighWaterMark]:
        """Return the proof and the mark with which the new life begins. The transaction holds the
        head of `system`. If nothing is missing, the mark names the new life before the commit, so
        that a crash between the two is not taken for a restore.
        """
        mark = self._latest(await self._marks.read(self._key))
        values = (mark.life or None, mark.before, mark.segment, mark.sequence)
        query = await cursor_of(connection, _ProofRow).execute(SQL["prove_continuity"], values)
        reason, streams, before, life = await query.fetchone() or _ProofRow(None, 0, None, "")
        count = streams or 0
        if reason is not None:
            log.warning("log_recovered", reason=reason, streams=count)
        if reason is not None and count:
            await _announce(connection, reason, count)
        if reason in ROLLED_ALL:
            return ContinuityProof(life, reason, count), HighWaterMark(life)
        await self._marks.write(self._key, mark._replace(life=life, before=before))
        return ContinuityProof(life, reason or "", count), mark._replace(life=life, before=None)

    def _enter(self, life: str, mark: HighWaterMark | None, *, replaces: bool = False) -> None:
        self._life, self._known, self._newest = life, mark, None
        self._replaces = replaces
        self.on_new_life()

    async def doubt(self, connection: Connection, stream_id: int, cursor: Cursor) -> bool:
        """Return whether a refused cursor of a reader proves that the stream has lost events. If
        so, the stream gets a new segment, announced as `log.recovered`.
        """
        values = (stream_id, cursor.segment, cursor.sequence)
        if not await _true(connection, "shows_loss", values):
            return False
        async with connection.transaction():
            await connection.execute(SQL["lock_head"], (SYSTEM_STREAM_ID,))
            if not await _true(connection, "shows_loss", values):
                return False  # another reader was quicker
            await connection.execute(SQL["roll_one"], (stream_id,))
            await _announce(connection, "reader_ahead", 1)
        log.warning("log_recovered", reason="reader_ahead", stream=stream_id)
        return True

    # --- the mark ---

    def committed(self, row: NewRow | StoredEvent) -> None:
        """Have the mark name this durable event of a sync stream, or a later one."""
        self._newest = row
        self._dirty.set()

    async def run(self) -> None:
        """Write the mark after commits until cancelled, and a last time then."""
        try:
            while True:
                await self._dirty.wait()
                await asyncio.sleep(limits.MARK_INTERVAL_S)
                self._dirty.clear()
                await self._write()
        finally:
            if self._dirty.is_set():
                await self._write()
            await self.close()

    async def close(self) -> None:
        await self._marks.close()

    async def _write(self) -> None:
        """Write the newest event that any process knows to be durable in this life. The mark of a
        life that another process has proved is not changed.
        """
        found = None if self._replaces else await self._marks.read(self._key)
        mark = self._latest(found)
        if mark.life != self._life:
            return
        if await self._marks.write(self._key, mark):
            self._known, self._replaces = mark, False
        else:
            self._dirty.set()

    def _latest(self, found: HighWaterMark | None) -> HighWaterMark:
        """Return the mark that was found, or a later one that this process knows in that life."""
        own, row = self._known or HighWaterMark(self._life), self._newest
        if row is not None:
            own = HighWaterMark(self._life, None, row.segment, row.sequence, row.appended_at_us)
        if found is None or (found.life == own.life and found.appended_at_us < own.appended_at_us):
            return own
        return found


def _note_nothing() -> None:
    """Do nothing."""


async def _proven(connection: Connection) -> tuple[str, str]:
    """Return the life for which the log was proved, "" if it was not, and the key of its mark."""
    found = await (await cursor_of(connection, _Life).execute(SQL["proven"])).fetchone()
    return (found.life or "", found.key) if found else ("", "")


async def _true(connection: Connection, name: str, values: tuple[Any, ...]) -> bool:
    return bool(await (await scalars(connection).execute(SQL[name], values)).fetchone())


async def _announce(connection: Connection, reason: str, count: int) -> None:
    attributes = {"reason": reason, "streams": count}
    recovered = Announcement("log.recovered", attributes)
    await announce_in(connection, zone=None, announcement=recovered)


async def prove_continuity(url: str, marks_url: str) -> ContinuityProof:
    """Prove the log's continuity for a command, before it changes anything. Raises
    DatabaseUnavailable.
    """
    continuity = Continuity(marks_url)
    connection = await connect(url, name="eventhub continuity")
    try:
        return await continuity.prove(connection)
    except CONNECTION_ERRORS as error:
        raise DatabaseUnavailable() from error
    finally:
        await connection.close()
        await continuity.close()


def roll_all(connection: psycopg.Connection[Any]) -> int:
    """Roll all streams to new segments inside the caller's transaction, after a restore that cannot
    be detected. Return how many there are.
    """
    connection.execute(SQL["new_history"])
    return int(scalars(connection).execute(SQL["roll_all"]).fetchone() or 0)
