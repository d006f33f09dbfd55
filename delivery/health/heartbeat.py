"""Writes the heartbeats of the timetable and of periodic tasks, so that web processes see whether
they run. Workers write their own (callbacks/heartbeat.py). SQL module.

An unavailable database is no reason to stop: the next heartbeat tries again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import psycopg

from delivery.health.facts import SQL
from eventhub.base import limits
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.rows import cursor_of

throttled = ThrottledLog(get_logger(__name__))
HeartbeatPart = Literal["archiver", "indexer"]


class TimetableFacts(NamedTuple):
    """What the tasks of the timetable would find to do. `log`: a number that changes once something
    is appended.
    """

    log: int | None
    replays: bool
    expired: bool  # endpoints
    deletions: bool  # whose grace period is over


class HeartbeatWriter:
    """The heartbeats of one process. Its connection is kept open: a new one costs ten times a
    heartbeat. Any thread may use it.
    """

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._beating = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    def beat(self, part: HeartbeatPart) -> None:
        """Write the heartbeat of a task."""
        with self._attempt(part):
            self._connected().execute(SQL["heartbeat"], {"part": part})

    def timetable(self) -> TimetableFacts | None:
        """Write the heartbeat of the timetable; return what its tasks would find, None if the
        database is unavailable or does not say it in time, as while a table is locked.
        """
        retained = {"retained_days": limits.REPLAY_RUNS_RETAINED_DAYS}
        with self._attempt("beat"):
            connection = self._connected()
            try:
                cursor = cursor_of(connection, TimetableFacts)
                return cursor.execute(SQL["timetable"], retained).fetchone()
            except psycopg.errors.QueryCanceled:
                throttled.info("timetable_facts_postponed")
                connection.execute(SQL["heartbeat"], {"part": "beat"})
        return None

    @contextmanager
    def _attempt(self, part: str) -> Iterator[None]:
        """Leave the block, and the connection, at an error of psycopg."""
        with self._beating:
            try:
                yield
            except psycopg.Error as error:
                throttled.info("heartbeat_postponed", part=part, reason=type(error).__name__)
                connection, self._connection = self._connection, None
                if connection is not None:
                    connection.close()

    def _connected(self) -> psycopg.Connection[Any]:
        """Return the connection, opened if there is none."""
        if self._connection is None:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                prepare_threshold=0,
                connect_timeout=limits.CONNECT_TIMEOUT_S,
                application_name="eventhub heartbeat",
                tcp_user_timeout=limits.CONNECT_TIMEOUT_S * 1_000,
                options=f"-c statement_timeout={limits.HEALTH_CHECK_MS_MAX}",
            )
        return self._connection
