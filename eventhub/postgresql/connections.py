"""Database connections of the hot path: connecting, timeouts, and the meaning of their errors.
SQL module.
"""

import asyncio
import os
import select
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from eventhub.base import limits
from eventhub.base.errors import DatabaseBusy, DatabaseUnavailable

Connection = psycopg.AsyncConnection[Any]

# the first statement of a pipeline whose statements are planned once for a connection, and not for
# the values of each of its first five calls
PLANNED_ONCE: LiteralString = "SELECT set_config('plan_cache_mode', 'force_generic_plan', true)"

# raised by psycopg if the server is unavailable or stopping, or the connection broke
CONNECTION_ERRORS = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    PoolTimeout,
    OSError,
    TimeoutError,
)


_answered_s: WeakKeyDictionary[AsyncConnectionPool[Connection], float] = WeakKeyDictionary()


async def connect(url: str, *, name: str) -> Connection:
    """Return a connection in autocommit mode whose statements are prepared at their first use.

    Raises DatabaseUnavailable.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(
            url,
            autocommit=True,
            prepare_threshold=0,
            application_name=name,
            connect_timeout=limits.CONNECT_TIMEOUT_S,
            options=f"-c statement_timeout={limits.STATEMENT_TIMEOUT_S_MAX}s"
            f" -c idle_in_transaction_session_timeout={limits.TRANSACTION_IDLE_S_MAX}s",
        )
    except CONNECTION_ERRORS as error:
        raise DatabaseUnavailable() from error
    return connection


@contextmanager
def blocking(url: str, *, name: str) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection in autocommit mode for a command or a job, which may wait. Raises
    DatabaseUnavailable, also when it breaks.
    """
    try:
        with psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=limits.CONNECT_TIMEOUT_S,
            application_name=f"eventhub {name}",
        ) as connection:
            yield connection
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable() from error


def broken(connection: Connection) -> bool:
    """Return whether an idle connection is closed, or readable: then the server is closing it."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


async def notifications(connection: Connection) -> AsyncIterator[str]:
    """Yield the payloads of NOTIFY, from a connection that is used for nothing else after its
    LISTEN.

    It waits for the socket; psycopg's own `notifies` polls ten times a second. Raises
    OperationalError when the connection breaks.
    """
    pgconn = connection.pgconn
    while True:
        while (notice := pgconn.notifies()) is not None:
            yield notice.extra.decode()
        await _readable(pgconn.socket)
        pgconn.consume_input()


async def wait_for_notify(connection: Connection, seconds: float) -> Sequence[str]:
    """Wait for NOTIFY, at most some seconds; return the payloads of what came. One that arrives
    with the result of a statement goes to the connection's handlers instead. Raises
    OperationalError when the connection breaks.
    """
    pgconn = connection.pgconn
    try:
        async with asyncio.timeout(seconds):
            await _readable(pgconn.socket)
    except TimeoutError:
        return ()
    pgconn.consume_input()
    return [notice.extra.decode() for notice in iter(pgconn.notifies, None)]


async def _readable(socket_fd: int) -> None:
    """Wait until a socket is readable. It is not watched while it is read, because libpq closes a
    broken one, and its descriptor may be reused at once.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(socket_fd, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(socket_fd)


@contextmanager
def answered_within(connection: Connection, seconds: float) -> Iterator[None]:
    """Shut down the connection's socket if the server does not answer in time, so that the caller
    gets an OperationalError at once.

    Cancelling the wait is not enough: psycopg then asks the server to cancel the statement, which a
    stopped server never answers.
    """
    timer = asyncio.get_running_loop().call_later(seconds, sever, connection)
    try:
        yield
    finally:
        timer.cancel()


def sever(connection: Connection) -> None:
    """Shut down the connection's socket: a statement under way fails at once."""
    if not connection.closed:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as same:
            same.shutdown(socket.SHUT_RDWR)


def reading_pool(
    url: str, name: str, size: int, *, idle: int = 1
) -> AsyncConnectionPool[Connection]:
    """Return a pool for short reads, which the caller opens. It reconnects when the database is
    available again. `idle`: connections that it keeps open.
    """
    return AsyncConnectionPool(
        url,
        min_size=idle,
        max_size=size,
        kwargs={
            "autocommit": True,
            "application_name": f"eventhub {name}",
            "connect_timeout": limits.CONNECT_TIMEOUT_S,
        },
        open=False,
        timeout=limits.READ_TIMEOUT_S_MAX,
        reconnect_timeout=5,
        name=name,
    )


@asynccontextmanager
async def reading(
    pool: AsyncConnectionPool[Connection], *, seconds: float = limits.READ_TIMEOUT_S_MAX
) -> AsyncIterator[Connection]:
    """Take an open connection for one read. Raises DatabaseUnavailable if there is none in time, it
    breaks, or the server does not answer in time, DatabaseBusy if others use them all.
    """
    clock = asyncio.get_running_loop().time
    came_s = clock()
    try:
        connection = await _taken(pool, came_s + min(seconds, limits.READ_TIMEOUT_S_MAX))
        try:
            with answered_within(connection, seconds):
                yield connection
        finally:
            await pool.putconn(connection)
        _answered_s[pool] = clock()
    except PoolTimeout as error:
        # another reader of the same pool was answered while this one waited
        busy = _answered_s.get(pool, 0.0) > came_s
        raise (DatabaseBusy() if busy else DatabaseUnavailable()) from error
    except CONNECTION_ERRORS as error:
        raise DatabaseUnavailable() from error


async def _taken(pool: AsyncConnectionPool[Connection], until_s: float) -> Connection:
    """Take a connection that the server has not closed since its last use, until a time of the
    loop's clock. Raises PoolTimeout.
    """
    clock = asyncio.get_running_loop().time
    while broken(connection := await _next_free(pool, until_s - clock())):
        await connection.close()
        await pool.putconn(connection)  # which opens another one
    return connection


async def _next_free(pool: AsyncConnectionPool[Connection], seconds: float) -> Connection:
    """Take a connection. The pool ignores a cancellation that comes at the same time as a
    connection; here it is raised, or a task that was cancelled would go on for ever.
    """
    before = _cancellations()
    connection = await pool.getconn(max(0.0, seconds))
    if _cancellations() > before:
        await pool.putconn(connection)
        raise asyncio.CancelledError
    return connection


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
