"""Rows as Arrow record batches, streamed by a connection of its own (ADBC), for what is too large
to hold. SQL module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pyarrow as pa
from adbc_driver_manager import Error as DriverError
from psycopg.conninfo import make_conninfo

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable

_SETTINGS = {
    "default_transaction_isolation": r"repeatable\ read",
    "default_transaction_read_only": "on",
    # rows come as a statement says, or in the order of the table
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
}


class Snapshot:
    """A transaction that reads, and whose first query says what is seen. One user at a time, but
    for `cancel`.

    Statements have no parameters: with them the driver holds a whole answer in memory. Everything
    raises DatabaseUnavailable.
    """

    def __init__(self, url: str, *, name: str, statement_s_max: float) -> None:
        """Should this process die, the server ends its statement within seconds."""
        # brings pandas along: half a second that no process spends which never reads so
        from adbc_driver_postgresql import dbapi

        settings = {
            **_SETTINGS,
            "statement_timeout": f"{int(statement_s_max)}s",
            "client_connection_check_interval": f"{int(limits.SNAPSHOT_ALIVE_INTERVAL_S)}s",
        }
        info = make_conninfo(
            url,
            connect_timeout=limits.CONNECT_TIMEOUT_S,
            application_name=f"eventhub {name}",
            options=" ".join(f"-c {key}={value}" for key, value in settings.items()),
        )
        with _explained():
            self._connection = dbapi.connect(info)
        self._cancelled = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def cancel(self) -> None:
        """What is read fails. Any thread may call; between two statements nobody hears it, so call
        until the reader is gone.
        """
        self._cancelled = True
        with _explained():
            self._connection.adbc_cancel()

    def run(self, statement: str) -> None:
        """A statement without rows."""
        with _explained(), self._connection.cursor() as cursor:
            cursor.execute(statement)

    def begin_again(self) -> None:
        """Another transaction; the next query says what is seen."""
        with _explained():
            self._connection.rollback()

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Its rows, some 16 MiB at a time; no batch if there is none."""
        with self._connection.cursor() as cursor:
            with _explained():
                cursor.execute(query)
                rows = cursor.fetch_record_batch()
            while not self._cancelled:
                with _explained():
                    batch = next(rows, None)
                if batch is None:
                    return
                yield batch
        raise DatabaseUnavailable("Reading was cancelled.")


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (DriverError, pa.ArrowException, OSError) as error:  # pyarrow's, amid a stream
        raise DatabaseUnavailable(f"The database did not give the rows: {error}") from error
