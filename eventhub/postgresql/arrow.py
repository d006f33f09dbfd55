"""Rows as Arrow record batches, streamed over a connection of their own (ADBC), for results too
large for memory. SQL module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from adbc_driver_manager import Error as DriverError
from psycopg.conninfo import make_conninfo

from eventhub.base import limits
from eventhub.base.arrow import leave_pandas_out
from eventhub.base.errors import DatabaseUnavailable

if TYPE_CHECKING:
    import pyarrow as pa

_SETTINGS = {
    "default_transaction_isolation": r"repeatable\ read",
    "default_transaction_read_only": "on",
    # rows come in the order of the statement, or of the table
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
}


class ArrowSnapshot:
    """A read-only transaction, whose first query takes the snapshot. One user at a time, except for
    `cancel`.

    Statements have no parameters: with them the driver holds a whole result in memory. Every method
    raises DatabaseUnavailable.
    """

    def __init__(self, url: str, *, name: str, statement_s_max: float) -> None:
        """Connect. If this process dies, the server ends its statement within seconds."""
        # a fifth of a second that only processes with snapshots spend
        leave_pandas_out()
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
        """Make the running statement fail. Any thread may call it. Between two statements it has no
        effect, so repeat it until the reader has ended.
        """
        self._cancelled = True
        with _explained():
            self._connection.adbc_cancel()

    def run(self, statement: str) -> None:
        """Execute a statement without rows."""
        with _explained(), self._connection.cursor() as cursor:
            cursor.execute(statement)

    def begin_again(self) -> None:
        """Start another transaction, whose first query takes the snapshot."""
        with _explained():
            self._connection.rollback()

    def batches(self, query: str) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of a query, some 16 MiB at a time; no batch if it has none."""
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
    import pyarrow as pa

    try:
        yield
    except (DriverError, pa.ArrowException, OSError) as error:  # pyarrow's, amid a stream
        raise DatabaseUnavailable(f"The database did not return the rows: {error}") from error
