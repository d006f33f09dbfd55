"""Leads among the processes that do the same periodic work: one at a time holds an advisory lock in
its session, which the server ends when it is idle for long. So a stopped process leads for seconds
only. SQL module.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg

from eventhub.base import limits
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import scalars

_LEAD: LiteralString = "SELECT pg_try_advisory_lock(hashtext(%s))"


@asynccontextmanager
async def leading_session(url: str, name: str) -> AsyncIterator[Connection]:
    """Open a connection in autocommit mode that the server ends when it is idle for long. Raises
    what psycopg raises.
    """
    settings = {
        "statement_timeout": f"{int(limits.DETACH_TIMEOUT_S_MAX)}s",
        "lock_timeout": f"{limits.CLEAN_LOCK_TIMEOUT_MS}ms",
        "idle_in_transaction_session_timeout": f"{limits.TRANSACTION_IDLE_S_MAX}s",
        "idle_session_timeout": f"{limits.RETAIN_SESSION_IDLE_S_MAX}s",
    }
    async with await psycopg.AsyncConnection.connect(
        url,
        autocommit=True,
        prepare_threshold=0,
        application_name=name,
        connect_timeout=limits.CONNECT_TIMEOUT_S,
        options=" ".join(f"-c {key}={value}" for key, value in settings.items()),
    ) as connection:
        yield connection


async def try_lead(connection: Connection, name: str) -> bool:
    """Return whether this session leads from now on, until it ends."""
    return bool(await (await scalars(connection).execute(_LEAD, (name,))).fetchone())
