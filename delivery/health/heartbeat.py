"""Writes the heartbeats of the timetable and of periodic tasks, so that web processes see whether
they run. Workers write their own (callbacks/heartbeat.py). SQL module.

An unavailable database is no reason to stop: the next heartbeat tries again.
"""

import threading
from typing import Any, Literal

import psycopg

from delivery.health.facts import SQL
from eventhub.base import limits
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.rows import scalars

throttled = ThrottledLog(get_logger(__name__))
HeartbeatPart = Literal["beat", "archiver", "indexer"]


class HeartbeatWriter:
    """The heartbeats of one process. Its connection is kept open: a new one costs ten times a
    heartbeat. Any thread may use it.
    """

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._beating = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    def beat(self, part: HeartbeatPart) -> int | None:
        """Write one heartbeat; return a number that changes once something is appended to the log,
        None if the database is unavailable.
        """
        with self._beating:
            try:
                if self._connection is None:
                    self._connection = psycopg.connect(
                        self._url,
                        autocommit=True,
                        connect_timeout=limits.CONNECT_TIMEOUT_S,
                        application_name="eventhub heartbeat",
                        tcp_user_timeout=limits.CONNECT_TIMEOUT_S * 1_000,
                        options=f"-c statement_timeout={limits.HEALTH_CHECK_MS_MAX}",
                    )
                number = (
                    scalars(self._connection).execute(SQL["heartbeat"], {"part": part}).fetchone()
                )
                return None if number is None else int(number)
            except psycopg.Error as error:
                throttled.info("heartbeat_postponed", part=part, reason=type(error).__name__)
                connection, self._connection = self._connection, None
                if connection is not None:
                    connection.close()
                return None
