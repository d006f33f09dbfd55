"""Statements of sources: on the path of a request, and their ends. SQL module."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_one, scalars
from registrations.emitting_client import EmittingClient

SQL = queries.load("registrations/sources/sql/sources.sql")


class FoundSource(NamedTuple):
    """A source as a request finds it. `options` and `mapping` are JSON."""

    id: int
    name: str
    provider: str
    options: str
    mapping: str
    enabled: bool
    emits: EmittingClient
    sealed: list[bytes]

    def principal(self) -> Principal:
        """Return the principal as which it emits."""
        return self.emits.principal(f"source:{self.name}")


class RequestRecord(NamedTuple):
    """What is recorded of a request. `body`: its beginning; None: it was refused."""

    source: int
    outcome: str
    reason: str
    detail: str
    address: str
    sequence: int | None
    headers: str
    query: str
    body: bytes | None
    body_bytes: int


async def find_source(connection: Connection, digest: bytes) -> FoundSource | None:
    """Return the source of a token's digest; None if there is none. Raise what psycopg raises."""
    return await fetch_one(connection, FoundSource, SQL["find"], {"digest": digest})


async def record_request(connection: Connection, record: RequestRecord) -> None:
    """Count a request and store it as a sample. Raise what psycopg raises."""
    values = {**record._asdict(), "samples_max": limits.SOURCE_SAMPLES_MAX}
    await connection.execute(SQL["record"], values)


def end_sources(connection: psycopg.Connection[Any], ids: Sequence[int]) -> int:
    """Delete sources, in the caller's transaction; return how many there were."""
    return len(scalars(connection).execute(SQL["end"], {"ids": [*ids]}).fetchall())


def end_sources_of_client(connection: psycopg.Connection[Any], client_id: int) -> int:
    """Delete the sources of a client; return how many there were."""
    return _end(connection, "of_client", client_id, limits.SOURCES_PER_CLIENT_MAX)


def end_sources_of_stream(connection: psycopg.Connection[Any], stream_id: int) -> int:
    """Delete some sources of a stream; return how many, 0 if none is left."""
    return _end(connection, "of_stream", stream_id, limits.ERASE_ROWS_MAX)


def _end(connection: psycopg.Connection[Any], name: str, id: int, rows_max: int) -> int:
    values = {"id": id, "rows_max": rows_max}
    ids = scalars(connection).execute(SQL[name], values).fetchall()
    return end_sources(connection, ids) if ids else 0
