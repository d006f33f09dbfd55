"""Connections of the hot path: how they are made, how long a statement may take, and what their
errors mean. Sql module.
"""

import asyncio
import os
import select
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from eventhub import limits
from eventhub.errors import DatabaseUnavailable

Connection = psycopg.AsyncConnection[Any]

# What psycopg raises when the server is away, stopping, or the connection broke.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, OSError, TimeoutError)


async def connect(url: str, *, name: str) -> Connection:
    """A connection in autocommit mode whose statements are prepared at their first use.

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
    except AWAY as error:
        raise DatabaseUnavailable() from error
    return connection


@contextmanager
def blocking(url: str, *, name: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection in autocommit mode for a command or a job, which may wait. Raises
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
    """True if an idle connection has something to read: the server is closing it."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def answered_within(connection: Connection, seconds: float) -> Iterator[None]:
    """Shut the connection's socket if the server has not answered by then, so that whoever waits
    gets an OperationalError at once.

    Cancelling the wait would not do: psycopg then asks the server to cancel the statement, which a
    stopped server never answers.
    """
    timer = asyncio.get_running_loop().call_later(seconds, _sever, connection)
    try:
        yield
    finally:
        timer.cancel()


def _sever(connection: Connection) -> None:
    if not connection.closed:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as same:
            same.shutdown(socket.SHUT_RDWR)


def reading_pool(url: str, name: str, size: int) -> AsyncConnectionPool[Connection]:
    """A pool of short reads; opened by its user. It reconnects by itself when the database comes
    back.
    """
    return AsyncConnectionPool(
        url,
        min_size=1,
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
    """A connection for one read; raises DatabaseUnavailable if there is none, it breaks, or the
    server does not answer in time.
    """
    try:
        async with pool.connection() as connection:
            with answered_within(connection, seconds):
                yield connection
    except AWAY as error:
        raise DatabaseUnavailable() from error
