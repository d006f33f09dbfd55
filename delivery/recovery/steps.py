"""The steps of replay runs: each is one transaction, which locks the run, writes deliveries and
moves the run's position, so that a killed process leaves nothing half-done. SQL module.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
import psycopg

from delivery.callbacks.heartbeat import SQL as WORKERS_SQL
from delivery.recovery.log_pages import (
    SQL,
    LogPages,
    PlannedPage,
    ReplayTarget,
    log_position,
)
from delivery.recovery.runs import FailedParams, FailedPosition, failed_params, log_params
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.logs import get_logger
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.errors import ArchiveUnavailable, StreamDeleted
from eventhub.eventlog.stored import ReadsArchive
from eventhub.eventlog.system import Announcement, announce_in, notify_of
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection
from eventhub.postgresql.rows import fetch_all, fetch_one, fetch_value
from registrations.endpoints.order_key import lane_number, order_path

log = get_logger(__name__)


class SteppedRun(NamedTuple):
    """A run as its steps need it."""

    id: int
    target: ReplayTarget
    endpoint_enabled: bool
    endpoint_deleted: bool
    source: str
    params_json: str
    version_id: int | None
    position_json: str
    steps: int
    rate: int
    deliveries_max: int | None
    force: bool
    new_id: bool
    written: int
    state: str
    waits_for: str


class FailedDelivery(NamedTuple):
    """A delivery that ended without success. `is_missing`: its event is no longer stored."""

    partition_id: int
    segment_id: int
    sequence: int
    segment: str
    stream: str
    is_missing: bool


class _Step(NamedTuple):
    """What one step has to write and record."""

    position: dict[str, Any]
    examined: int
    matched: int
    skipped: int
    missing: int
    ended: bool


class _Order(NamedTuple):
    """The stream of some events, and the key by which the endpoint is ordered."""

    stream_id: int
    order_by: str


class _Counts(NamedTuple):
    """The totals of a run after a step."""

    examined: int
    matched: int
    written: int
    skipped: int
    missing: int


class Stepper:
    """Makes steps of runs on one connection in autocommit mode, one at a time."""

    def __init__(self, connection: Connection, archive: ReadsArchive | None, clock: Clock) -> None:
        self._connection = connection
        self._archive = archive
        self._clock = clock
        self._pages: dict[int, LogPages] = {}  # by run: filters are compiled once

    async def step(self, run_id: int) -> bool:
        """Make a step of a running run; return whether it made progress. A run that cannot go on
        fails, also because of an error of the hub, so that it does not delay the others. Raise
        DatabaseUnavailable, IntegrityError, and what psycopg raises if the database is unavailable
        or cancels a statement.
        """
        run = await fetch_one(self._connection, SteppedRun, SQL["run"], {"id": run_id})
        if run is None or run.state != "running":
            return False
        try:
            return await self._step(run)
        except ArchiveUnavailable:
            return await self._wait(run, "archive")
        except (DatabaseUnavailable, psycopg.IntegrityError, *CONNECTION_ERRORS):
            raise
        except EventHubError as error:
            await self._fail(run, error.code, error.message)
        except Exception as error:
            log.exception("replay_step_failed", run=run.id)
            await self._fail(run, EventHubError.code, f"{type(error).__name__}; see the hub's log.")
        return True

    async def _step(self, run: SteppedRun) -> bool:
        if run.endpoint_deleted:
            await self._fail(run, "unknown_endpoint", "The endpoint was deleted.")
            return True
        if not run.endpoint_enabled:
            return await self._wait(run, "endpoint")
        room = await self._room(run)
        if room <= 0:
            return await self._wait(run, "backlog")
        if run.source == "log":
            return await self._step_of_log(run, room)
        return await self._step_of_failed(run, room)

    async def _room(self, run: SteppedRun) -> int:
        """Return how many deliveries the next step may write."""
        pending_max = max(limits.REPLAY_PENDING_MAX, run.rate)
        values = {"endpoint_id": run.target.endpoint_id, "rows_max": pending_max}
        pending: int = await fetch_value(self._connection, SQL["pending"], values)
        by_rate = max(1, int(run.rate * limits.REPLAY_STEP_S))
        left = by_rate if run.deliveries_max is None else run.deliveries_max - run.written
        return min(by_rate, limits.REPLAY_STEP_ROWS_MAX, pending_max - pending, left)

    # --- events of the log ---

    async def _step_of_log(self, run: SteppedRun, room: int) -> bool:
        pages = self._pages.get(run.id)
        if pages is None:
            params = log_params(run.params_json)
            pages = LogPages(self._connection, self._archive, self._clock, run.target, params)
            self._pages[run.id] = pages
        position = log_position(run.position_json)
        through = await self._forwarded(run, position.range)
        page = await pages.next(
            position,
            room=room,
            force=run.force,
            events_max=limits.REPLAY_STEP_EVENTS_MAX,
            through=through,
        )
        if page.plan.blocked and page.plan.last is None:
            return await self._wait(run, "backlog")
        if page.position == position and not page.at_end:
            return await self._wait(run, "forwarder")
        plan = page.plan
        step = _Step(
            page.position._asdict(),
            plan.examined,
            plan.matched,
            plan.skipped,
            page.missing,
            page.at_end,
        )
        return await self._write(run, step, page=page)

    async def _forwarded(self, run: SteppedRun, number: int) -> int:
        """Return the last event of a stream that forwarders no longer write deliveries of. Raises
        StreamDeleted.
        """
        of_stream = log_params(run.params_json).ranges[number]
        values = {"stream_id": of_stream.stream_id}
        through: int | None = await fetch_value(self._connection, SQL["forwarded"], values)
        if through is None:
            raise StreamDeleted(stream=of_stream.stream)
        return through

    async def _write_page(self, run: SteppedRun, page: PlannedPage) -> int:
        """Write the deliveries of a page; return how many. Raises StreamDeleted."""
        if not page.plan.events:
            return 0
        segment = page.plan.events[0].segment
        values: dict[str, Any] = {
            "id": run.id,
            "endpoint_id": run.target.endpoint_id,
            "segment": segment,
            "force": run.force,
            "new_id": run.new_id,
        }
        written = 0
        if page.plan.new:
            params = log_params(run.params_json)
            new = {
                "registrations": [] if params.registration is None else [params.registration],
                "version_ids": None if run.version_id is None else [run.version_id],
                "sequences": [one.sequence for one in page.plan.new],
                "payloads": [one.payload for one in page.plan.new],
                "appended_at_us": [one.appended_at_us for one in page.plan.new],
            }
            new["lanes"] = await self._lanes(values, [one.payload for one in page.plan.new])
            written += await fetch_value(self._connection, SQL["insert"], {**values, **new})
        if page.plan.again:
            id = await fetch_value(self._connection, SQL["segment_id"], {"segment": segment})
            if id is None:
                raise StreamDeleted
            again = [(one.partition_id, id, one.sequence) for one in page.plan.again]
            written += await self._resend(values, again)
        return written

    async def _lanes(self, values: dict[str, Any], payloads: Sequence[bytes]) -> list[int]:
        """Return the lanes of events, if the endpoint is ordered by key; otherwise none."""
        order = await fetch_one(self._connection, _Order, SQL["order"], values)
        if order is None:
            return []
        path = order_path(order.order_by)
        return [lane_number(order.stream_id, decode(payload), path) for payload in payloads]

    # --- deliveries that have failed ---

    async def _step_of_failed(self, run: SteppedRun, room: int) -> bool:
        position = FailedPosition(**orjson.loads(run.position_json))
        params = failed_params(run.params_json)
        rows = await read_failed(self._connection, run.target, params, position, room)
        if not rows:
            step = _Step(position._asdict(), 0, 0, 0, 0, ended=True)
            return await self._write(run, step)
        reached = FailedPosition(rows[-1].segment_id, rows[-1].sequence)
        missing = sum(row.is_missing for row in rows)
        step = _Step(reached._asdict(), len(rows), len(rows), 0, missing, ended=len(rows) < room)
        return await self._write(run, step, rows=rows)

    async def _resend(self, values: dict[str, Any], keys: Sequence[tuple[int, int, int]]) -> int:
        """Make deliveries pending again, by partition, segment and sequence."""
        own = {
            "partitions": [key[0] for key in keys],
            "segments": [key[1] for key in keys],
            "sequences": [key[2] for key in keys],
        }
        count: int = await fetch_value(self._connection, SQL["resend"], {**values, **own})
        return count

    # --- the run ---

    async def _write(
        self,
        run: SteppedRun,
        step: _Step,
        *,
        page: PlannedPage | None = None,
        rows: Sequence[FailedDelivery] = (),
    ) -> bool:
        """Write the deliveries of a step and record it, in one transaction. Return False if the run
        was changed since it was read.
        """
        connection, appended = self._connection, None
        async with connection.transaction():
            own = {"id": run.id, "steps": run.steps}
            if await fetch_value(connection, SQL["lock_run"], own) is None:
                return False
            if page is not None:
                written = await self._write_page(run, page)
            else:
                values = {
                    "endpoint_id": run.target.endpoint_id,
                    "force": run.force,
                    "new_id": run.new_id,
                }
                keys = [row[:3] for row in rows if not row.is_missing]
                written = await self._resend(values, keys) if keys else 0
            counts, ended = await self._advance(run, step, written)
            if ended:
                self._pages.pop(run.id, None)
                attributes = {**_about(run), **counts._asdict()}
                announcement = Announcement("replay.completed", attributes)
                appended = await announce_in(
                    connection, zone=run.target.zone, announcement=announcement
                )
        if written:
            metrics.REPLAY_DELIVERIES.labels(source=run.source).inc(written)
            await connection.execute(WORKERS_SQL["notify"])
        if appended is not None:
            metrics.REPLAY_RUNS.labels(outcome="completed").inc()
            await notify_of(connection, appended)
        return True

    async def _advance(self, run: SteppedRun, step: _Step, written: int) -> tuple[_Counts, bool]:
        """Record a step; return the run's totals, and whether it has ended."""
        most = run.deliveries_max
        ended = step.ended or (most is not None and run.written + written >= most)
        values = {
            **step._asdict(),
            "id": run.id,
            "position": orjson.dumps(step.position).decode(),
            "written": written,
            "ended": ended,
            "pace_s": written / run.rate,
            "pace_s_max": limits.REPLAY_PACE_S_MAX,
        }
        counts = await fetch_one(self._connection, _Counts, SQL["advance"], values)
        if counts is None:
            raise RuntimeError("the run is locked, so that nothing else changes it")
        return counts, ended

    async def _wait(self, run: SteppedRun, waits_for: str) -> bool:
        if run.waits_for != waits_for:
            values = {"id": run.id, "waits_for": waits_for}
            await self._connection.execute(SQL["wait"], values)
        return False

    async def _fail(self, run: SteppedRun, reason: str, detail: str) -> None:
        log.warning("replay_failed", run=run.id, reason=reason)
        self._pages.pop(run.id, None)
        connection = self._connection
        async with connection.transaction():
            values = {"id": run.id, "reason": reason, "detail": detail}
            failed = (await connection.execute(SQL["fail"], values)).rowcount
            if not failed:
                return
            announcement = Announcement("replay.failed", {**_about(run), "reason": reason})
            appended = await announce_in(
                connection, zone=run.target.zone, announcement=announcement
            )
        metrics.REPLAY_RUNS.labels(outcome="failed").inc()
        await notify_of(connection, appended)


def _about(run: SteppedRun) -> dict[str, Any]:
    return {"replay": run.id, "client": run.target.client, "endpoint": run.target.endpoint_id}


async def read_failed(
    connection: Connection,
    target: ReplayTarget,
    params: FailedParams,
    position: FailedPosition,
    rows_max: int,
) -> list[FailedDelivery]:
    """Return the next deliveries of a run over failed ones, in the order of events."""
    values = {
        **params._asdict(),
        **position._asdict(),
        "states": list(params.states),
        "stream_ids": None if params.stream_ids is None else list(params.stream_ids),
        "zone_id": target.zone_id,
        "endpoint_id": target.endpoint_id,
        "rows_max": rows_max,
    }
    return await fetch_all(connection, FailedDelivery, SQL["failed"], values)
