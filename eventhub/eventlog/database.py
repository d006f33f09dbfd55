"""Connections of the hot path: how they are made, how long they may take, and what their errors
mean. Sql module.
"""

import asyncio
import select
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from eventhub import limits
from eventhub.errors import DatabaseUnavailable

Connection = psycopg.AsyncConnection[Any]
T = TypeVar("T")

# What psycopg raises when the server is away, stopping, or the connection broke.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, OSError, TimeoutError)

_abandoned: set[asyncio.Future[Any]] = set()


async def connect(url: str, *, name: str) -> Connection:
    """A connection in autocommit mode whose statements are prepared at their first use.

    Raises DatabaseUnavailable.
    """
    try:
        connection = await within(
            psycopg.AsyncConnection.connect(
                url,
                autocommit=True,
                prepare_threshold=0,
                application_name=name,
                connect_timeout=limits.CONNECT_TIMEOUT_S,
            ),
            limits.CONNECT_TIMEOUT_S,
        )
    except AWAY as error:
        raise DatabaseUnavailable() from error
    connection.prepared_max = 200
    return connection


def broken(connection: Connection) -> bool:
    """True if an idle connection has something to read: the server is closing it."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


async def within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await the work, or raise TimeoutError after so many seconds without waiting for its
    cancellation to finish.

    Cancelling a query asks the server to cancel it, which a stopped server never answers.
    """
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        _abandoned.add(task)
        task.add_done_callback(_forget)
        raise TimeoutError
    return task.result()


def _forget(task: "asyncio.Future[Any]") -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()


def reading_pool(url: str) -> AsyncConnectionPool[Connection]:
    """The pool of catch-up reads; opened by its user.

    It reconnects by itself when the database comes back.
    """
    return AsyncConnectionPool(
        url,
        min_size=1,
        max_size=limits.READERS_PER_PROCESS_MAX,
        kwargs={
            "autocommit": True,
            "application_name": "eventhub read",
            "connect_timeout": limits.CONNECT_TIMEOUT_S,
        },
        open=False,
        timeout=limits.READ_TIMEOUT_S_MAX / 2,
        reconnect_timeout=5,
        name="read",
    )


@asynccontextmanager
async def reading(pool: AsyncConnectionPool[Connection]) -> AsyncIterator[Connection]:
    """A connection for one read; raises DatabaseUnavailable if there is none, or it breaks."""
    try:
        async with pool.connection() as connection:
            yield connection
    except AWAY as error:
        raise DatabaseUnavailable() from error
