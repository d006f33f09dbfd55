"""Connections of the hot path."""

import asyncio
import os

from eventhub.postgresql.connections import reading, reading_pool
from tests.acceptance.wire import until

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


async def test_a_cancellation_that_comes_with_a_connection_is_not_lost() -> None:
    """The pool would return the connection instead of raising."""
    async with reading_pool(URL, "cancelled", 1) as pool:
        await pool.wait()
        held = await pool.getconn()

        async def read_for_ever() -> None:
            while True:
                async with reading(pool):
                    await asyncio.Event().wait()

        waiting = asyncio.create_task(read_for_ever())
        await until(lambda: pool.get_stats()["requests_waiting"] == 1)
        await pool.putconn(held)  # it is given to the waiting task, which did not run yet
        waiting.cancel()
        done, _ = await asyncio.wait({waiting}, timeout=10)
        assert done, "the task goes on"
        assert waiting.cancelled()
        async with reading(pool):  # the connection is back in the pool
            pass
