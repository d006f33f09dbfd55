"""Leads among the processes that do the same periodic work: one at a time holds an advisory lock in
its session, which the server ends when it is idle for long. So a stopped process leads for seconds
only. SQL module.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import pause_together_s, wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection
from eventhub.postgresql.rows import scalars

throttled = ThrottledLog(get_logger(__name__))
# What the leading process does, with `watched_s`; returns the seconds until the next step, 0 if
# there may be more to do.
Step = Callable[[Connection, float], Awaitable[float]]
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


async def watch(url: str, name: str, clock: Clock, step: Step, woken: asyncio.Event) -> None:
    """Watch over one session of the database until it fails: take the step now and then, and when
    `woken` is set, while this process leads. The step gets `watched_s`, the time since this process
    reached the database without interruption, so that no outage or start counts as somebody's
    silence.
    """
    try:
        async with leading_session(url, name) as connection:
            since_s, leads = clock.monotonic_s(), False
            while True:
                woken.clear()
                leads = leads or await try_lead(connection, name)
                pause_s = limits.WATCH_REST_S
                if leads:
                    pause_s = await step(connection, clock.monotonic_s() - since_s)
                if pause_s > 0:
                    pause_s = min(pause_s, limits.WATCH_REST_S)
                    await wait_until_set(woken, pause_together_s(pause_s))
    except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
        throttled.info("watch_postponed", watch=name, reason=type(error).__name__)
        await asyncio.sleep(limits.RETAIN_FAULT_PAUSE_S)
