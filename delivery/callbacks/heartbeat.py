"""The heartbeat of a worker that posts callbacks. It also frees the claims of workers without a
heartbeat, repairs times that lie too far in the future after the database's clock stepped back, and
receives notifications of new deliveries on the same connection. The statements are in
delivery/sql/workers.sql. SQL module.

A claim's token starts with its worker's id. A worker frees the claims of a silent one only if its
own heartbeat was unbroken for the whole of the silence, by a clock that did not step: after an
outage of the database every worker has the time to send a heartbeat. A worker whose heartbeat is
late posts nothing either, because others may have freed its claims. A worker that was suspended and
continues finds its claims gone: results are written under the token.
"""

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import UUID, uuid4

from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.monitoring.heartbeat import Beat
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection, answered_within, wait_for_notify
from eventhub.postgresql.rows import fetch_one

log = get_logger(__name__)
SQL = queries.load("delivery/sql/workers.sql")
CHANNEL = "eventhub_deliveries"  # notifications of new deliveries
_LOW = (1 << 64) - 1
_NONE = UUID(int=0)  # no claim has it
_REPAIR_SHARE = 30  # pause at least this many times what the repair took
_STEP_S = 1.0  # drift of the database's clock between two heartbeats that is no step


class _Heartbeat(NamedTuple):
    """The answer to a heartbeat."""

    at_s: float  # by the database's clock
    silent: list[UUID]
    others: int = 0  # workers
    before: int = 0  # of these, in the order of ids


class _PageResult(NamedTuple):
    """The changed rows of a page. `after`: the key of its last row, if there may be more."""

    changed: int
    after: list[int] | None


_ENDPOINTS = ("after",)  # the parameters with the key of the last row of the page before
_LANES = ("after", "after_lane")


class WorkerHeartbeat:
    """The heartbeat of one dispatcher. `wake` is called when the worker is alive (again) and when
    there may be new deliveries; `has_claims` says whether the worker holds claims, `is_idle`
    whether no delivery was pending for a while; `beat_member` sends the process's own heartbeat.
    """

    def __init__(
        self,
        clock: Clock,
        wake: Callable[[], None],
        has_claims: Callable[[], bool],
        is_idle: Callable[[], bool],
        beat_member: Beat,
    ) -> None:
        self._clock = clock
        self._wake = wake
        self._has_claims = has_claims
        self._is_idle = is_idle
        self._beat_member = beat_member
        self._notified_s = -math.inf  # the last notification
        self._id = UUID(int=uuid4().int & ~_LOW)
        self._numbers = itertools.count(1)
        self._unconfirmed: UUID | None = None
        self._alive_until_s = -math.inf
        self._unbroken_since_s = math.inf  # start of the unbroken heartbeat
        self._beat_s = -math.inf  # the last heartbeat, on this process's clock ...
        self._beat_at_s = 0.0  # ... and on the database's
        self._repair_at_s = -math.inf
        self._place, self._workers = 0, 1  # of this worker among all
        self._relief: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        """Whether no other worker can consider this one dead."""
        return self._clock.monotonic_s() < self._alive_until_s

    def token(self) -> str:
        """Return the token of a new claim, which is unconfirmed until `confirm_claim`."""
        self._unconfirmed = UUID(int=self._id.int | next(self._numbers))
        return str(self._unconfirmed)

    def confirm_claim(self) -> None:
        """Record that the claim's answer arrived: this worker will finish or release it."""
        self._unconfirmed = None

    async def free_unconfirmed(self, connection: Connection) -> None:
        """Free a claim whose answer never arrived or whose events could not be read. Nobody else
        frees it before it expires, because its worker is alive.
        """
        if self._unconfirmed is not None:
            await self._free_claims(connection, self._unconfirmed, self._unconfirmed)
            self._unconfirmed = None

    async def run(self, connection: Connection) -> None:
        """Send heartbeats until cancelled, and listen for notifications of new deliveries in
        between. Raise what psycopg raises when the database is unavailable.
        """
        await connection.execute(SQL["asynchronous_commit"])
        connection.add_notify_handler(lambda notice: self._on_notified(notice.payload))
        await connection.execute(f"LISTEN {CHANNEL}")
        self._wake()  # earlier notifications are lost
        while True:
            with answered_within(connection, limits.CALLBACK_SILENT_S):
                silent = await self._beat(connection)
            unbroken_s = self._clock.monotonic_s() - self._unbroken_since_s
            if silent and unbroken_s > limits.CALLBACK_SILENT_S:
                await self._free(connection, silent)
            if self._clock.monotonic_s() >= self._repair_at_s:
                await self._repair_times(connection)
            rests = not silent and not self._has_claims() and self._rests()
            await self._listen(connection, rests)

    def _rests(self) -> bool:
        """Return whether no worker can hold a claim: nothing is pending, and nothing was
        announced for a while. A dead one is noticed at the pace of others from then on.
        """
        quiet_s = self._clock.monotonic_s() - self._notified_s
        return quiet_s > limits.CALLBACK_REST_AFTER_S and self._is_idle()

    async def _listen(self, connection: Connection, rests: bool) -> None:
        """Wait until the next heartbeat is due: one that rests sends it when it is notified."""
        pause_s = limits.CALLBACK_IDLE_HEARTBEAT_S
        if rests:
            pause_s = limits.CALLBACK_REST_HEARTBEAT_S
        elif self._has_claims():
            pause_s = limits.CALLBACK_HEARTBEAT_S
        until_s = self._clock.monotonic_s() + pause_s
        while (left_s := until_s - self._clock.monotonic_s()) > 0:
            for payload in await wait_for_notify(connection, left_s):
                self._on_notified(payload)
                if rests:
                    return

    def _on_notified(self, payload: str) -> None:
        """Look for new deliveries at once if the number of the notification chooses this worker,
        and otherwise a little later, in case the chosen one is busy or gone: two that look
        together are in each other's way.
        """
        self._notified_s = self._clock.monotonic_s()
        number = int(payload) if payload.isascii() and payload.isdigit() else self._place
        if number % self._workers == self._place:
            self._wake()
        elif self._relief is None:
            loop = asyncio.get_running_loop()
            self._relief = loop.call_later(limits.CALLBACK_RELIEF_S, self._relieve)

    def _relieve(self) -> None:
        self._relief = None
        self._wake()

    async def leave(self, connection: Connection) -> None:
        """Unregister the worker, which holds nothing any more."""
        await connection.execute(SQL["leave"], {"ids": [self._id]})

    async def _beat(self, connection: Connection) -> Sequence[UUID]:
        """Send a heartbeat; return the workers whose heartbeat is overdue."""
        sent_s = self._clock.monotonic_s()
        values = {"id": self._id, "silent_s": limits.CALLBACK_SILENT_S}
        found = await fetch_one(connection, _Heartbeat, SQL["heartbeat"], values)
        at_s, silent, others, self._place = found or _Heartbeat(0.0, [])
        self._workers = others + 1
        was_alive, passed_s = self.is_alive, sent_s - self._beat_s
        stepped = abs(at_s - self._beat_at_s - passed_s) > _STEP_S
        if not was_alive or stepped or passed_s > limits.CALLBACK_SILENT_S / 2:
            self._unbroken_since_s = sent_s
        if stepped:
            self._repair_at_s = sent_s
        self._beat_s, self._beat_at_s = sent_s, at_s
        self._alive_until_s = sent_s + limits.CALLBACK_SILENT_S
        if not was_alive:
            self._wake()
        await self._beat_member(connection)
        return silent

    async def _free(self, connection: Connection, silent: Sequence[UUID]) -> None:
        for each in silent:
            last = UUID(int=each.int | _LOW)
            freed, lanes = await self._free_claims(connection, each, last)
            log.warning("callback_worker_silent", worker=str(each), freed=freed, lanes=lanes)
        await connection.execute(SQL["leave"], {"ids": list(silent)})
        self._wake()

    async def _free_claims(
        self, connection: Connection, first: UUID, last: UUID
    ) -> tuple[int, int]:
        """Free the claims with tokens in a range; return the number of deliveries and of lanes."""
        values: dict[str, Any] = {
            "first": first,
            "last": last,
            "deliveries_max": 2 * limits.BATCH_EVENTS_MAX,
            "claim_s": limits.CALLBACK_CLAIM_S,
        }
        freed = await self._for_all(connection, SQL["free_parallel"], _ENDPOINTS, values)
        lanes = await _free_lanes(connection, values)
        metrics.CALLBACK_FREED.inc(freed + lanes)
        return freed, lanes

    async def _for_all(
        self,
        connection: Connection,
        statement: LiteralString,
        key: Sequence[str],
        values: dict[str, Any],
    ) -> int:
        """Run a statement page by page, with heartbeats in between; return the rows changed."""
        changed = 0
        after: Sequence[int] | None = [0] * len(key)
        while after is not None:
            own = dict(zip(key, after, strict=True))
            bounds = {**values, **own, "rows_max": limits.CALLBACK_SCAN_ENDPOINTS_MAX}
            with answered_within(connection, limits.CALLBACK_SILENT_S):
                found = await fetch_one(connection, _PageResult, statement, bounds)
                page = found or _PageResult(0, None)
                if self._clock.monotonic_s() - self._beat_s > limits.CALLBACK_HEARTBEAT_S:
                    await self._beat(connection)
            after = page.after
            changed += page.changed
        return changed

    async def _repair_times(self, connection: Connection) -> None:
        """Free deliveries and lanes whose times lie further ahead than they can have been set."""
        started_s, due_s = self._clock.monotonic_s(), self._repair_at_s
        values = {
            "claim_s": limits.CALLBACK_CLAIM_S,
            "deliveries_max": limits.CALLBACK_REPAIR_DELIVERIES_MAX,
        }
        repaired = await self._for_all(connection, SQL["repair_parallel"], _ENDPOINTS, values)
        repaired += await _free_lanes(connection, {**values, "first": _NONE, "last": _NONE})
        repaired += await self._for_all(connection, SQL["repair_lanes"], _LANES, {})
        now_s = self._clock.monotonic_s()
        pause_s = max(limits.CALLBACK_REPAIR_INTERVAL_S, _REPAIR_SHARE * (now_s - started_s))
        if repaired:
            log.warning("callback_times_repaired", repaired=repaired)
            pause_s = 0.0  # there may be more
            self._wake()
        if self._repair_at_s == due_s:  # no clock step was detected meanwhile
            self._repair_at_s = now_s + pause_s


async def _free_lanes(connection: Connection, values: dict[str, Any]) -> int:
    with answered_within(connection, limits.CALLBACK_SILENT_S):
        return (await connection.execute(SQL["free_lanes"], values)).rowcount
