"""The worker task that executes replay runs: steps of all running runs in turn, for a bounded time.
SQL module.
"""

import asyncio
import threading
from typing import NamedTuple

import psycopg

from delivery.partitions.create import create_partitions
from delivery.recovery.log_pages import SQL
from delivery.recovery.steps import Stepper
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.archive.reader import archive_of
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, connect
from eventhub.postgresql.rows import fetch_all, fetch_value

throttled = ThrottledLog(get_logger(__name__))


class _Running(NamedTuple):
    """A running run. `is_due`: its rate allows a step now."""

    id: int
    is_due: bool


class ReplayExecutor:
    """The replay runs as one worker executes them. `stop` ends the task soon."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self, database_url: str, archive_url: str) -> bool:
        """Make steps for `REPLAY_UNIT_S` seconds at most; return whether runs are left that this
        process should go on with.
        """
        try:
            return asyncio.run(self._run(database_url, archive_url))
        except (DatabaseUnavailable, *CONNECTION_ERRORS) as error:
            throttled.info("replays_postponed", reason=type(error).__name__)
            return False

    async def _run(self, database_url: str, archive_url: str) -> bool:
        async with await connect(database_url, name="eventhub replay") as connection:
            if not await fetch_value(connection, SQL["lead"]):
                return False
            retained = {"retained_days": limits.REPLAY_RUNS_RETAINED_DAYS}
            await connection.execute(SQL["forget"], retained)
            stepper = Stepper(connection, archive_of(archive_url), self._clock)
            left = await self._steps(connection, stepper)
            await connection.execute(SQL["stop_leading"])
            return left and not self._stopping.is_set()

    async def _steps(self, connection: Connection, stepper: Stepper) -> bool:
        """Make steps until the time is over or no run is running; return whether one is."""
        until_s = self._clock.monotonic_s() + limits.REPLAY_UNIT_S
        paced = {"pace_s": limits.REPLAY_PACE_S_MAX}
        while self._clock.monotonic_s() < until_s and not self._stopping.is_set():
            running = await fetch_all(connection, _Running, SQL["running"], paced)
            if not running:
                return False
            due = [run.id for run in running if run.is_due]
            progress = [await self._step(connection, stepper, run) for run in due]
            if not any(progress):
                await asyncio.sleep(_pause_s(due))
        return True

    async def _step(self, connection: Connection, stepper: Stepper, run: int) -> bool:
        """Make a step of a run; False also if the partition of its deliveries was missing, as in a
        new hub, or was retired meanwhile, and if a statement took too long: the other runs go on.
        """
        try:
            return await stepper.step(run)
        except psycopg.errors.QueryCanceled:
            throttled.warning("replay_step_canceled", run=run)
            return False
        except psycopg.IntegrityError as error:
            throttled.warning("replay_step_refused", run=run, reason=str(error).splitlines()[0])
            await create_partitions(connection)
            return False


def _pause_s(due: list[int]) -> float:
    """Return the pause before the next look: short while a rate alone holds runs back."""
    return limits.REPLAY_WAIT_S if due else limits.REPLAY_WAIT_S / 10
