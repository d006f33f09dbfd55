"""Statements of the hot path with less of psycopg: each is prepared once on a connection, its
parameters are encoded by the types that the server names, and its result is awaited once. SQL
module.

After a pause, as between the events of an idle hub, psycopg's cursor takes 0.3 ms longer for a
statement, and 50 µs more of the processor when it is busy.

libuv calls the reader of a socket that has an error once, and never again, also if that left
something unread. So a call also looks by itself now and then.

Concurrency contract: one event loop; calls on one connection wait for each other.
"""

import asyncio
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGconn, PGresult

from eventhub.base import limits
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import row_maker

Kind = TypeVar("Kind", bound=tuple[Any, ...])
_BINARY = pq.Format.BINARY
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|[bs]|%)")
_numbers = count(1)  # of prepared statements
_ENCODERS: Mapping[int, Callable[[Any], bytes]] = {  # by the type's number in PostgreSQL
    16: struct.Struct(">?").pack,
    20: struct.Struct(">q").pack,
    23: struct.Struct(">i").pack,
    25: str.encode,
    700: struct.Struct(">f").pack,
    701: struct.Struct(">d").pack,
    2950: lambda uuid: UUID(uuid).bytes,
}
_statements = "_eventhub_statements"  # the attribute of a connection


# By name, or in the order of `%b` or `%s`. Bytes are as PostgreSQL receives them; UUIDs are texts.
Values = Mapping[str, Any] | Sequence[Any]


class _PreparedStatement(NamedTuple):
    """A prepared statement. `names`: its parameters in order; `types`: the numbers of theirs."""

    name: bytes
    names: list[str]
    types: list[int]
    formats: list[pq.Format]
    rows: Any  # psycopg's Transformer
    make: Callable[[Any], Any]

    def encoded(self, values: "Values") -> Sequence[bytes | None]:
        if not isinstance(values, Mapping):
            return values
        found: list[bytes | None] = []
        for name, type in zip(self.names, self.types, strict=True):
            value = values[name]
            if value is not None and not isinstance(value, bytes):
                value = _ENCODERS[type](value)
            found.append(value)
        return found


async def fetch_prepared(
    connection: Connection,
    kind: type[Kind],
    statement: str,
    values: Values,
    watch: "Watch | None" = None,
) -> list[Kind]:
    """Run a statement on a connection in autocommit mode, or in its transaction, and return the
    rows. `watch`: that of the connection, if its owner keeps one.

    The statement is prepared at its first use. Raises psycopg.Error; TypeError for columns that
    differ from the fields. A cancelled call closes the connection.
    """
    async with connection.lock:
        kept, watch = watch, watch or Watch(connection.pgconn)
        try:
            prepared, result = await _fetch(connection, watch, statement, values, kind)
        finally:
            if kept is None:
                watch.close()
    prepared.rows.set_pgresult(result)
    rows: list[Kind] = prepared.rows.load_rows(0, result.ntuples, prepared.make)
    return rows


async def _fetch(
    connection: Connection, watch: "Watch", statement: str, values: Values, kind: type[Kind]
) -> tuple[_PreparedStatement, PGresult]:
    known: dict[str, _PreparedStatement] = connection.__dict__.setdefault(_statements, {})
    prepared = known.get(statement)
    if prepared is None:
        prepared = known[statement] = await _prepare(watch, statement, kind)
    try:
        return prepared, await _run(watch, prepared, values)
    except psycopg.errors.InvalidSqlStatementName:  # psycopg deallocates all after a rollback
        known.clear()
        prepared = known[statement] = await _prepare(watch, statement, kind)
        return prepared, await _run(watch, prepared, values)


async def _run(watch: "Watch", prepared: _PreparedStatement, values: Values) -> PGresult:
    parameters = prepared.encoded(values)
    watch.pgconn.send_query_prepared(prepared.name, parameters, prepared.formats, _BINARY)
    return await watch.answer()


async def _prepare(watch: "Watch", statement: str, kind: type[Kind]) -> _PreparedStatement:
    name = b"eventhub_%d" % next(_numbers)
    names: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        return f"${names.setdefault(found[1] or str(len(names)), len(names) + 1)}"

    text = _PLACEHOLDER.sub(numbered, statement)
    watch.pgconn.send_prepare(name, text.encode())
    await watch.answer()
    watch.pgconn.send_describe_prepared(name)
    described = await watch.answer()
    types = [described.param_type(at) for at in range(described.nparams)]
    columns = tuple(described.fname(at) for at in range(described.nfields))
    formats = [_BINARY] * len(types)
    return _PreparedStatement(
        name, [*names], types, formats, Transformer(), row_maker(kind, columns)
    )


class Watch:
    """Watches the socket of a connection for the answers to its statements, one at a time. It ends
    before the connection does, because the descriptor may be reused; nobody else awaits anything on
    the connection meanwhile.
    """

    def __init__(self, pgconn: PGconn) -> None:
        self.pgconn = pgconn
        self.fd = pgconn.socket
        self._loop = asyncio.get_running_loop()
        self._found: PGresult | None = None
        self._ended: asyncio.Future[PGresult] | None = None  # of the statement under way
        self._timer: asyncio.TimerHandle | None = None
        self._writes = False
        self._is_open = True
        self._loop.add_reader(self.fd, self._read)

    def close(self) -> None:
        """Stop to watch. The descriptor may belong to another connection afterwards."""
        if not self._is_open:
            return
        self._is_open = False
        self._loop.remove_reader(self.fd)
        if self._writes:
            self._loop.remove_writer(self.fd)

    async def answer(self) -> PGresult:
        """Send what libpq has queued, and return the result of the statement, the last one if there
        are several. Raises psycopg.Error.
        """
        self._found = None
        ended = self._ended = self._loop.create_future()
        self._timer = self._loop.call_later(limits.STATEMENT_LOOK_S, self._look)
        self._write()
        try:
            result: PGresult = await ended
        except BaseException as error:
            if not isinstance(error, psycopg.Error):
                self.close()
                self.pgconn.finish()  # else the rest would be taken for the next answer
            raise
        finally:
            self._ended = None
            self._timer.cancel()
        if result.status not in _DONE:
            raise error_from_result(result)
        return result

    def _write(self) -> None:
        """Send what libpq has queued; the rest when the socket is writable."""
        try:
            unsent = bool(self.pgconn.flush())
        except psycopg.Error as error:
            self._fail(error)
            return
        if unsent and not self._writes:
            self._loop.add_writer(self.fd, self._write)
        elif self._writes and not unsent:
            self._loop.remove_writer(self.fd)
        self._writes = unsent

    def _read(self) -> None:
        try:
            self.pgconn.consume_input()
            while self._is_waiting() and not self.pgconn.is_busy():
                result = self.pgconn.get_result()
                if result is None:
                    self._end()
                else:
                    self._found = result
        except psycopg.Error as error:
            self._fail(error)

    def _is_waiting(self) -> bool:
        return self._ended is not None and not self._ended.done()

    def _end(self) -> None:
        if self._found is None:
            self._fail(psycopg.OperationalError("no result"))
        elif self._ended is not None:
            self._ended.set_result(self._found)

    def _fail(self, error: psycopg.Error) -> None:
        """End the statement under way, and the watch: a broken socket stays readable for ever."""
        self.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error)

    def _look(self) -> None:
        self._timer = self._loop.call_later(limits.STATEMENT_LOOK_S, self._look)
        self._read()
