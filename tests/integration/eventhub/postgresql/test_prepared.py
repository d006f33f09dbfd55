"""A statement that is prepared once: each call ends, also when its connection is lost or silent,
and finds its statement prepared.
"""

import asyncio
import os
import select
import socket
import struct
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
import uvloop

from eventhub.postgresql.connections import Connection, answered_within, connect
from eventhub.postgresql.prepared import Watch, fetch_prepared

URL = os.environ["DATABASE_URL"]
SLEEPING = "SELECT pg_sleep(60)::text AS slept"
QUOTIENT = "SELECT (4 / %(by)s::integer)::text AS quotient"


class Slept(NamedTuple):
    slept: str


class Quotient(NamedTuple):
    quotient: str


async def sleep(connection: Connection) -> list[Slept]:
    return await fetch_prepared(connection, Slept, SLEEPING, {})


async def quotient(connection: Connection, by: int) -> str:
    [found] = await fetch_prepared(connection, Quotient, QUOTIENT, {"by": by})
    return found.quotient


async def backend_works(other: psycopg.AsyncConnection[object], pid: int) -> None:
    """Wait until a backend runs a statement."""
    query = "SELECT state = 'active' FROM pg_stat_activity WHERE pid = %s"
    async with asyncio.timeout(30):
        while True:
            found = await other.execute(query, [pid])
            if await found.fetchone() == (True,):
                return


async def test_a_call_whose_backend_is_terminated_ends() -> None:
    other = await connect(URL, name="test other")
    for _ in range(20):  # the server's message and the end of the connection come in any order
        connection = await connect(URL, name="test")
        pid = connection.info.backend_pid
        call = asyncio.ensure_future(sleep(connection))
        await backend_works(other, pid)
        await other.execute("SELECT pg_terminate_backend(%s)", [pid])
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(20):
                await call
        assert connection.closed
    await other.close()


def test_a_call_ends_whose_server_closes_without_reading_it(tmp_path: Path) -> None:
    """Then the socket has an error, for which libuv calls its reader once, and no more."""
    uvloop.run(_call_a_server_that_closes(tmp_path))


async def _call_a_server_that_closes(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / ".s.PGSQL.5432"))
        listening.listen()
        closing = asyncio.ensure_future(asyncio.to_thread(_accept_and_close, listening))
        url = f"postgresql://any@/any?host={tmp_path}&port=5432"
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(20):
                await sleep(connection)
        assert connection.closed
        await closing


def _accept_and_close(listening: socket.socket) -> None:
    """Serve the start of a connection; then answer a message that is not read, and close."""
    server, _ = listening.accept()
    with server:
        server.recv(1_000)  # the start
        server.sendall(b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I")
        select.select([server], [], [])
        fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"
        server.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)


async def test_a_call_that_takes_too_long_ends_with_its_connection() -> None:
    connection = await connect(URL, name="test")
    with pytest.raises(psycopg.OperationalError), answered_within(connection, 0.3):
        async with asyncio.timeout(20):
            await sleep(connection)
    assert connection.closed


async def test_a_cancelled_call_closes_its_connection() -> None:
    connection, other = await connect(URL, name="test"), await connect(URL, name="test other")
    call = asyncio.ensure_future(sleep(connection))
    await backend_works(other, connection.info.backend_pid)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert connection.closed, "the next call would get the answer to this one"
    await other.close()


async def test_an_error_of_sql_leaves_the_connection_usable() -> None:
    async with await connect(URL, name="test") as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await quotient(connection, 0)
        assert await quotient(connection, 1) == "4"


async def test_a_kept_watch_serves_many_calls_and_ends_with_its_connection() -> None:
    other = await connect(URL, name="test other")
    connection = await connect(URL, name="test")
    watch = Watch(connection.pgconn)
    for by in (1, 2, 0, 4):
        call = fetch_prepared(connection, Quotient, QUOTIENT, {"by": by}, watch)
        if by:
            assert await call == [(str(4 // by),)]
        else:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await call
    await other.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
    async with asyncio.timeout(20):
        while not connection.closed:  # it is noticed while no statement is under way
            await other.execute("SELECT")
    assert not asyncio.get_running_loop().remove_reader(watch.fd)  # which would be called for ever
    with pytest.raises(psycopg.OperationalError):
        await fetch_prepared(connection, Quotient, QUOTIENT, {"by": 1}, watch)
    watch.close()
    await connection.close()
    await other.close()


async def test_a_statement_is_prepared_again_after_a_rollback() -> None:
    """psycopg then deallocates all prepared statements."""
    async with await connect(URL, name="test") as connection:
        assert await quotient(connection, 2) == "2"
        async with connection.transaction(force_rollback=True):
            await connection.execute("SELECT 1", prepare=True)
        await connection.execute("SELECT 1")
        left = "SELECT FROM pg_prepared_statements WHERE name LIKE 'eventhub%'"
        assert (await connection.execute(left)).rowcount == 0, "this test shows nothing"
        assert await quotient(connection, 4) == "1"


async def test_columns_that_differ_from_the_fields_are_refused() -> None:
    async with await connect(URL, name="test") as connection:
        with pytest.raises(TypeError, match="quotient"):
            await fetch_prepared(connection, Slept, QUOTIENT, {"by": 1})
        assert await quotient(connection, 1) == "4"
