"""Runs work that needs an asynchronous connection in a synchronous view. SQL module."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from eventhub.base.env import read_env
from eventhub.postgresql.connections import Connection, connect

Result = TypeVar("Result")


def run_connected(
    work: Callable[[Connection], Coroutine[Any, Any, Result]], *, name: str
) -> Result:
    """Run work on a connection of its own, in autocommit mode, with the application name
    `eventhub {name}`. Raises DatabaseUnavailable.
    """

    async def connected() -> Result:
        async with await connect(read_env().database_url, name=f"eventhub {name}") as connection:
            return await work(connection)

    return asyncio.run(connected())
