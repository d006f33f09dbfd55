"""The database's status in `/readyz`, and how fast it answers, while connections are held by others
or by a server that does not answer.
"""

import asyncio
import json
import socket
import time
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace

from eventhub.base import limits
from eventhub.base.env import read_env
from eventhub.base.errors import DatabaseUnavailable
from eventhub.http.operations import ready_route
from eventhub.postgresql.connections import reading, reading_pool
from eventhub.web.hub import Hub, open_hub
from tests.databases import migrated_database


async def database(hub: Hub) -> str:
    answer = await ready_route(hub.log, hub.authorizer, hub.health, [])
    [found] = [one for one in json.loads(answer.body)["components"] if one["name"] == "database"]
    return str(found["status"])


async def test_database_is_not_down_because_readers_hold_all_connections() -> None:
    """Catch-ups of many readers removed a process from its load balancer: emit worked, and the
    reason was wrong.
    """
    with migrated_database("ready") as url:
        env = replace(read_env(), database_url=url, database_direct_url=url, mark_url="")
        async with open_hub(env) as hub, AsyncExitStack() as held:
            assert await database(hub) == "ok"
            first = reading(hub.log.pool)
            await first.__aenter__()
            for _ in range(limits.READERS_PER_PROCESS_MAX - 1):
                await held.enter_async_context(reading(hub.log.pool))
            next_one = asyncio.create_task(held.enter_async_context(reading(hub.log.pool)))
            await asyncio.sleep(0)  # it waits in line before the check
            checking = asyncio.create_task(database(hub))
            await asyncio.sleep(0)
            await first.__aexit__(None, None, None)
            await next_one
            async with asyncio.timeout(limits.READY_CHECK_S_MAX + 1.5):  # before a read is ended
                assert await checking == "ok"


async def test_waiting_for_a_connection_takes_no_longer_than_the_read_may() -> None:
    """With a hanging PostgreSQL, `/readyz` answered after five seconds, later than probes wait."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        pool = reading_pool(f"postgresql://u@127.0.0.1:{port}/d", "silent", 1)
        await pool.open()
        began = time.monotonic()
        try:
            with pytest.raises(DatabaseUnavailable):
                async with reading(pool, seconds=0.2):
                    pytest.fail("nobody answers")
            assert time.monotonic() - began < limits.READ_TIMEOUT_S_MAX / 2
        finally:
            await pool.close(timeout=0)
