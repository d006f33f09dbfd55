"""Connections of the hot path."""

import asyncio
import os

from eventhub.postgresql.connections import reading, reading_pool

URL = os.environ["DATABASE_URL"]
SIZE = 3


async def test_connections_that_the_server_closed_are_replaced_when_they_are_taken() -> None:
    async with reading_pool(URL, "test", SIZE) as pool:
        taken = asyncio.Barrier(SIZE)

        async def number() -> int:
            async with reading(pool) as connection:
                await taken.wait()  # each has a connection of its own
                cursor = await connection.execute("SELECT pg_backend_pid()")
                return int((await cursor.fetchone() or ())[0])

        before = {*await asyncio.gather(*(number() for _ in range(SIZE)))}
        async with reading(pool) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE pid = ANY (%s) AND pid <> pg_backend_pid()",
                [[*before]],
            )
        after = {*await asyncio.gather(*(number() for _ in range(SIZE)))}
    assert len(before) == len(after) == SIZE
    assert len(before & after) == 1  # that of the statement
