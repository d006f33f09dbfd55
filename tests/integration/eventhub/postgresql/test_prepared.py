"""A statement prepared once: each call ends, also when its connection is lost or silent."""

import asyncio
import os
import select
import socket
import struct
from pathlib import Path

import psycopg
import pytest
import uvloop

from eventhub.postgresql.connections import connect
from eventhub.postgresql.prepared import PreparedStatement

URL = os.environ["DATABASE_URL"]
SLEEPING = "SELECT pg_sleep(60)::text AS slept WHERE %b::int4 = 1"
ONE = (1).to_bytes(4)


async def sleeping(seconds: float = 30.0) -> PreparedStatement:
    statement = PreparedStatement(
        await connect(URL, name="test"), SLEEPING, ["slept"], seconds=seconds
    )
    await statement.prepare()
    return statement


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
        statement = await sleeping()
        pid = statement.connection.info.backend_pid
        call = asyncio.ensure_future(statement.fetch([ONE]))
        await backend_works(other, pid)
        await other.execute("SELECT pg_terminate_backend(%s)", [pid])
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(20):
                await call
        assert statement.connection.closed
        await statement.close()
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
        statement = PreparedStatement(connection, SLEEPING, ["slept"], seconds=300)
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(20):
                await statement.prepare()
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
    statement = await sleeping(0.3)
    with pytest.raises(psycopg.OperationalError, match="no answer in time"):
        async with asyncio.timeout(20):
            await statement.fetch([ONE])
    assert statement.connection.closed
    await statement.close()


async def test_an_error_of_sql_leaves_the_connection_usable() -> None:
    connection = await connect(URL, name="test")
    divided = "SELECT (4 / %b::int4)::text AS quotient"
    statement = PreparedStatement(connection, divided, ["quotient"], seconds=30)
    await statement.prepare()
    with pytest.raises(psycopg.errors.DivisionByZero):
        await statement.fetch([bytes(4)])
    assert await statement.fetch([ONE]) == [("4",)]
    await statement.close()
