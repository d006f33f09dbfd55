"""Reads which parts of the hub are alive and what is waiting for them. SQL module."""

from typing import NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

SQL = queries.load("delivery/sql/health.sql")


class HealthFacts(NamedTuple):
    """The state of the hub at one moment; times in microseconds, by the database's clock."""

    now_us: int
    booted_at_us: int | None
    forwarders: int  # alive
    forwarder_us: int | None  # when one was seen last
    workers: int
    worker_us: int | None
    beat_us: int | None
    archiver_us: int | None
    indexer_us: int | None
    stranded: int  # streams with callbacks that no forwarder holds any more
    stranded_groups: int  # pattern groups, likewise
    stopped_groups: int  # pattern groups whose state cannot be read
    stranded_us: int | None
    unarchived_us: int | None  # when the oldest segment that is to be archived was sealed
    unarchivable: int  # segments whose last attempt failed ...
    unarchivable_code: str | None  # ... and an error's code of them
    unbuilt: int  # match indexes whose last build failed
    unbuilt_code: str | None
    unbuilt_us: int | None
    requested_us: int | None  # the oldest request of a build, while no builder is at work
    overdue: bool = True  # whether late deliveries could be looked for in time
    overdue_us: int | None = None  # when the oldest of them was due


async def read(connection: Connection) -> HealthFacts:
    """Read the facts on a connection in autocommit mode. Raise what psycopg raises."""
    bounds = {
        "silent_s": limits.HEALTH_SILENT_S_MAX,
        "endpoints_max": limits.HEALTH_ENDPOINTS_MAX,
        "due_s": limits.HEALTH_DUE_S_MAX,
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    facts: HealthFacts | None = None
    found, overdue = cursor_of(connection, HealthFacts), scalars(connection)
    settings = {"statement_ms": f"{limits.HEALTH_CHECK_MS_MAX}ms"}
    try:
        async with connection.pipeline():  # to its end one transaction, in which the settings hold
            await connection.execute(SQL["settings"], settings, prepare=True)
            await found.execute(SQL["facts"], bounds, prepare=True)
            [facts] = await found.fetchall()
            await overdue.execute(SQL["overdue"], bounds, prepare=True)
            overdue_us = await overdue.fetchone()
    except psycopg.errors.QueryCanceled:
        if facts is None:
            raise
        return facts._replace(overdue=False)
    return facts._replace(overdue_us=overdue_us)
