"""One statement on a connection of its own, prepared once, with a reader that stays registered.
SQL module.

psycopg's cursor costs some 150 µs a call: it adapts parameters, looks the statement up, and
registers a reader for each wait. The log's append is one statement with encoded arrays, so all of
that is done once.

libuv calls the reader of a socket that has an error once, and never again, also if that left
something unread. So a call in progress also looks by itself now and then, until its time is over.

Concurrency contract: one event loop; one call at a time. Nothing else uses the connection.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult

from eventhub.base import limits
from eventhub.postgresql.connections import Connection

_NAME = b"eventhub"
_BINARY = pq.Format.BINARY
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class PreparedStatement:
    """A statement with `%b` placeholders, whose parameters are bytes as PostgreSQL receives them,
    or None. `columns`: the names that its result must have, in order. `seconds`: the most that a
    call may take.
    """

    def __init__(
        self, connection: Connection, statement: str, columns: Sequence[str], *, seconds: float
    ) -> None:
        self._seconds = seconds
        self._until_s = 0.0  # the end of the time of the call in progress
        self.connection = connection
        self._pgconn = connection.pgconn
        self._columns = [name.encode() for name in columns]
        self._statement = _numbered(statement)
        self._formats = [_BINARY] * statement.count("%b")
        self._rows = Transformer(connection)
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[PGresult] | None = None  # of the call in progress
        self._found: PGresult | None = None  # its result, until all of the answer was read
        self._reading = self._writing = False
        # a descriptor of our own: libpq closes its own when the connection breaks, and its number
        # may be reused at once
        self._fd = os.dup(self._pgconn.socket)

    async def prepare(self) -> None:
        """Prepare the statement, before the first call. Raises psycopg.Error; TypeError for
        columns that differ.
        """
        try:
            self._pgconn.send_prepare(_NAME, self._statement)
            await self._answer()
            self._pgconn.send_describe_prepared(_NAME)
            described = await self._answer()
            columns = [described.fname(at) for at in range(described.nfields)]
            if columns != self._columns:
                raise TypeError(f"The statement's columns are {columns}, not {self._columns}.")
        except BaseException:
            self._release()
            raise

    async def fetch(self, values: Sequence[bytes | None]) -> list[tuple[Any, ...]]:
        """Run the statement and return its rows. Raises psycopg.Error; OperationalError, with the
        connection closed, also when that breaks, or the server does not answer in time.
        """
        self._pgconn.send_query_prepared(_NAME, values, self._formats, _BINARY)
        result = await self._answer()
        self._rows.set_pgresult(result)
        return self._rows.load_rows(0, result.ntuples, tuple)

    async def close(self) -> None:
        """Close the connection."""
        self._release()
        await self.connection.close()

    def _release(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1

    async def _answer(self) -> PGresult:
        self._found, self._answered = None, self._loop.create_future()
        if not self._reading:
            self._loop.add_reader(self._fd, self._readable)
            self._reading = True
        self._until_s = self._loop.time() + self._seconds
        timer = self._loop.call_later(limits.APPEND_LOOK_S, self._look, self._answered)
        try:
            self._flush()
            result = await self._answered
        finally:
            timer.cancel()
            self._answered = None
        if result.status not in _DONE:
            raise error_from_result(result)
        return result

    def _flush(self) -> None:
        """Send what libpq has queued; the rest when the socket is writable."""
        try:
            unsent = self._pgconn.flush()
        except psycopg.Error as error:
            self._end(error)
            return
        if unsent:
            self._loop.add_writer(self._fd, self._flush)
        elif self._writing:
            self._loop.remove_writer(self._fd)
        self._writing = bool(unsent)

    def _readable(self) -> None:
        """Read what the server sent. Without a call in progress it is left unread: the server is
        closing the connection, and `broken` finds it.
        """
        if self._answered is None or self._answered.done():
            self._loop.remove_reader(self._fd)
            self._reading = False
            return
        try:
            self._pgconn.consume_input()
            while not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:
                    self._end(self._found)
                    return
                self._found = result
        except psycopg.Error as error:
            self._end(error)

    def _look(self, call: "asyncio.Future[PGresult]") -> None:
        """Read the answer to a call if nothing announced it; end the call when its time is over."""
        if self._answered is not call or call.done():
            return
        self._readable()
        if call.done():
            return
        if self._loop.time() >= self._until_s:
            self._release()
            self._pgconn.finish()
            self._end(psycopg.OperationalError("no answer in time"))
        else:
            self._loop.call_later(limits.APPEND_LOOK_S, self._look, call)

    def _end(self, found: PGresult | psycopg.Error | None) -> None:
        """End the call in progress."""
        if self._answered is None or self._answered.done():
            return
        if isinstance(found, psycopg.Error):
            self._answered.set_exception(found)
        elif found is not None:
            self._answered.set_result(found)
        else:
            self._answered.set_exception(psycopg.OperationalError("no result"))


def _numbered(statement: str) -> bytes:
    """Return the statement with `$1`, `$2`, ... for its placeholders."""
    numbers = count(1)
    return re.sub("%b", lambda _: f"${next(numbers)}", statement).encode()
