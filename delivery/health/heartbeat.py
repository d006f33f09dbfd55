"""Writes heartbeats of the timetable and of periodic tasks, so that web processes see whether they
run. (Workers show that they live themselves: callbacks/alive.py.) SQL module.

A database that is away is no reason to stop: the next heartbeat tries again.
"""

import threading
from typing import Any, Literal

import psycopg

from delivery.health.facts import SQL
from eventhub.base import limits
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.rows import scalars

throttled = ThrottledLog(get_logger(__name__))
Part = Literal["beat", "archiver", "indexer"]


class Heart:
    """Of one process. Its connection is kept: a new one costs ten times a heartbeat.
    Any thread may call it.
    """

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._beating = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    def beat(self, part: Part) -> int | None:
        """Write one heartbeat; returns a number that is another one once something was appended to
        the log, None if the database is away.
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
                number = scalars(self._connection).execute(SQL["heard"], {"part": part}).fetchone()
                return None if number is None else int(number)
            except psycopg.Error as error:
                throttled.info("heartbeat_postponed", part=part, reason=type(error).__name__)
                connection, self._connection = self._connection, None
                if connection is not None:
                    connection.close()
                return None
