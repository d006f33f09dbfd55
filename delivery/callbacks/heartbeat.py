"""Shows that this worker lives, frees what workers held that do not, and what lies further ahead
than it can after the database's clock stepped back; hears of new deliveries on the same
connection. Sql module; delivery/sql/drains.sql. SQL module.

A claim's token begins with its worker's id. Nobody frees anything unless it was seen itself for the
whole time in which the other fell silent, by a clock that did not step: after an absence of the
database all have the time to show themselves. Who was not seen for as long posts nothing either,
because others may. One that was stopped and goes on finds its claims gone: results are written
under the token.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import UUID, uuid4

from delivery.callbacks.claims import retry_pauses
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection, answered_within, wait_for_notify
from eventhub.postgresql.rows import cursor_of

log = get_logger(__name__)
SQL = queries.load("delivery/sql/drains.sql")
CHANNEL = "eventhub_deliveries"  # of notices that there are new deliveries
_LOW = (1 << 64) - 1
_NONE = UUID(int=0)  # no claim has it
_MEND_SHARE = 30  # what many endpoints take is a small part of the time
_STEP_S = 1.0  # what the database's clock may differ between two beats from our own


class _Beat(NamedTuple):
    at_s: float  # by the database's clock
    silent: list[UUID]


class _Piece(NamedTuple):
    """What was done for some endpoints. `after`: the last of them, if there may be more."""

    changed: int
    after: int | None


class Alive:
    """The life of one drain. `seen` is called when it lives (again) and when there may be new
    deliveries; `holds` says whether it has claims in hand.
    """

    def __init__(self, clock: Clock, seen: Callable[[], None], holds: Callable[[], bool]) -> None:
        self._clock = clock
        self._seen = seen
        self._holds = holds
        self._id = UUID(int=uuid4().int & ~_LOW)
        self._numbers = itertools.count(1)
        self._claiming: UUID | None = None
        self._until_s = -math.inf
        self._steady_s = math.inf  # since when it has been seen without a break
        self._beat_s = -math.inf  # the last beat, on our clock ...
        self._beat_at_s = 0.0  # ... and on the database's
        self._mend_at_s = -math.inf

    @property
    def now(self) -> bool:
        """True while nobody takes it for dead."""
        return self._clock.monotonic_s() < self._until_s

    def token(self) -> str:
        """A new one for a claim, which is `lost` until it is in this worker's hands."""
        self._claiming = UUID(int=self._id.int | next(self._numbers))
        return str(self._claiming)

    def took(self) -> None:
        """What was claimed is in this worker's hands: it ends it by itself."""
        self._claiming = None

    async def free_lost(self, connection: Connection) -> None:
        """A claim of which no answer came, or whose events could not be read, is nobody's: free it,
        as its worker lives and holds it for long.
        """
        if self._claiming is not None:
            await self._free_claims(connection, self._claiming, self._claiming)
            self._claiming = None

    async def run(self, connection: Connection) -> None:
        """Until cancelled; raises what psycopg raises when the database is away. Between two beats
        it listens for notices of new deliveries.
        """
        await connection.execute(SQL["hasty"])
        connection.add_notify_handler(lambda _: self._seen())
        await connection.execute(f"LISTEN {CHANNEL}")
        self._seen()  # notices before it are lost
        while True:
            with answered_within(connection, limits.CALLBACK_SILENT_S):
                silent = await self._beat(connection)
            if silent and self._is_steady():
                await self._free(connection, silent)
            if self._clock.monotonic_s() >= self._mend_at_s:
                await self._mend(connection)
            holds = self._holds()
            pause_s = limits.CALLBACK_HEARTBEAT_S if holds else limits.CALLBACK_IDLE_HEARTBEAT_S
            await self._listen(connection, pause_s)

    async def _listen(self, connection: Connection, seconds: float) -> None:
        until_s = self._clock.monotonic_s() + seconds
        while (left_s := until_s - self._clock.monotonic_s()) > 0:
            if await wait_for_notify(connection, left_s):
                self._seen()

    async def leave(self, connection: Connection) -> None:
        """It holds nothing any more."""
        await connection.execute(SQL["leave"], {"ids": [self._id]})

    async def _beat(self, connection: Connection) -> Sequence[UUID]:
        """Returns the workers that have been silent for too long."""
        asked_s = self._clock.monotonic_s()
        values = {"id": self._id, "silent_s": limits.CALLBACK_SILENT_S}
        query = cursor_of(connection, _Beat)
        at_s, silent = await (await query.execute(SQL["beat"], values)).fetchone() or _Beat(0.0, [])
        lived, passed_s = self.now, asked_s - self._beat_s
        stepped = abs(at_s - self._beat_at_s - passed_s) > _STEP_S
        if not lived or stepped or passed_s > limits.CALLBACK_SILENT_S / 2:
            self._steady_s = asked_s
        if stepped:
            self._mend_at_s = asked_s
        self._beat_s, self._beat_at_s = asked_s, at_s
        self._until_s = asked_s + limits.CALLBACK_SILENT_S
        if not lived:
            self._seen()
        return silent

    def _is_steady(self) -> bool:
        return self._clock.monotonic_s() - self._steady_s > limits.CALLBACK_SILENT_S

    async def _free(self, connection: Connection, silent: Sequence[UUID]) -> None:
        for each in silent:
            last = UUID(int=each.int | _LOW)
            freed, lanes = await self._free_claims(connection, each, last)
            log.warning("callback_worker_silent", worker=str(each), freed=freed, lanes=lanes)
        await connection.execute(SQL["leave"], {"ids": list(silent)})
        self._seen()

    async def _free_claims(
        self, connection: Connection, first: UUID, last: UUID
    ) -> tuple[int, int]:
        """Of tokens between these: so many deliveries, and so many lanes."""
        values: dict[str, Any] = {
            "first": first,
            "last": last,
            "deliveries_max": 2 * limits.CALLBACK_LANE_DELIVERIES_MAX,
            "claim_s": limits.CALLBACK_CLAIM_S,
        }
        freed = await self._in_pieces(connection, SQL["free_parallel"], values)
        lanes = await _free_lanes(connection, values)
        metrics.CALLBACK_FREED.inc(freed + lanes)
        return freed, lanes

    async def _in_pieces(
        self, connection: Connection, statement: LiteralString, values: dict[str, Any]
    ) -> int:
        """Go through the endpoints, some in a statement, and show between two of them that this
        worker lives; the number of deliveries that were changed.
        """
        endpoints_max = limits.CALLBACK_SCAN_ENDPOINTS_MAX
        changed = 0
        after: int | None = 0
        while after is not None:
            piece = {**values, "after": after, "endpoints_max": endpoints_max}
            with answered_within(connection, limits.CALLBACK_SILENT_S):
                query = await cursor_of(connection, _Piece).execute(statement, piece)
                found = await query.fetchone() or _Piece(0, None)
                if self._clock.monotonic_s() - self._beat_s > limits.CALLBACK_HEARTBEAT_S:
                    await self._beat(connection)
            after = found.after
            changed += found.changed
        return changed

    async def _mend(self, connection: Connection) -> None:
        began_s, due_s = self._clock.monotonic_s(), self._mend_at_s
        values = {
            "claim_s": limits.CALLBACK_CLAIM_S,
            "deliveries_max": limits.CALLBACK_REPAIR_DELIVERIES_MAX,
            **retry_pauses(),
        }
        mended = await self._in_pieces(connection, SQL["mend_parallel"], values)
        mended += await _free_lanes(connection, {**values, "first": _NONE, "last": _NONE})
        now_s = self._clock.monotonic_s()
        pause_s = max(limits.CALLBACK_REPAIR_INTERVAL_S, _MEND_SHARE * (now_s - began_s))
        if mended:
            log.warning("callbacks_from_the_future", mended=mended)
            pause_s = 0.0  # there may be more
            self._seen()
        if self._mend_at_s == due_s:  # no step was seen meanwhile
            self._mend_at_s = now_s + pause_s


async def _free_lanes(connection: Connection, values: dict[str, Any]) -> int:
    with answered_within(connection, limits.CALLBACK_SILENT_S):
        return (await connection.execute(SQL["free_lanes"], values)).rowcount
