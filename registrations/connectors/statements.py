"""Statements of connectors: of the process that runs them, and their ends. SQL module."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value, scalars
from registrations.emitting_client import EmittingClient

SQL = queries.load("registrations/connectors/sql/connectors.sql")


class ConnectorDefinition(NamedTuple):
    """A connector to run. `settings` and `mapping` are JSON; `version` changes with it."""

    id: int
    name: str
    kind: str
    settings: str
    mapping: str
    on_refusal: str
    sealed: bytes
    version: str
    emits: EmittingClient

    def principal(self) -> Principal:
        """Return the principal as which it emits."""
        return self.emits.principal(f"connector:{self.name}")


class Advance(NamedTuple):
    """A step of a connector's position. `expected`: the position before it."""

    id: int
    version: str
    expected: str
    position: str
    rows: int = 0
    refused: int = 0


class ConnectorReport(NamedTuple):
    """How a connector is. `error`: a code, "": nothing holds it up; `lag`: None: not known."""

    id: int
    state: str
    error: str = ""
    detail: str = ""
    lag: int | None = None


async def enabled_connectors(connection: Connection) -> list[ConnectorDefinition]:
    """Return the connectors to run. Raise what psycopg raises."""
    values = {"connectors_max": limits.CONNECTORS_MAX}
    return await fetch_all(connection, ConnectorDefinition, SQL["enabled"], values)


async def position_of(connection: Connection, id: int) -> str | None:
    """Return the position of a connector; None: it was deleted. Raise what psycopg raises."""
    found: str | None = await fetch_value(connection, SQL["position"], {"id": id})
    return found


async def advance(connection: Connection, step: Advance) -> bool:
    """Move a position in the caller's transaction; return False if the connector was changed,
    paused or deleted, or another process moved it. Raise what psycopg raises.
    """
    return bool(await fetch_value(connection, SQL["advance"], step._asdict()))


async def report(connection: Connection, reports: Sequence[ConnectorReport]) -> None:
    """Write the states of connectors. Raise what psycopg raises."""
    columns = [[*column] for column in zip(*reports, strict=True)]
    names = ("ids", "states", "errors", "details", "lags")
    await connection.execute(SQL["report"], dict(zip(names, columns, strict=True)))


def end_connectors(connection: psycopg.Connection[Any], ids: Sequence[int]) -> int:
    """Delete connectors, in the caller's transaction; return how many there were."""
    return len(scalars(connection).execute(SQL["end"], {"ids": [*ids]}).fetchall())


def end_connectors_of_client(connection: psycopg.Connection[Any], client_id: int) -> int:
    """Delete the connectors of a client; return how many there were."""
    return _end(connection, "of_client", client_id, limits.CONNECTORS_PER_CLIENT_MAX)


def end_connectors_of_stream(connection: psycopg.Connection[Any], stream_id: int) -> int:
    """Delete some connectors of a stream; return how many, 0 if none is left."""
    return _end(connection, "of_stream", stream_id, limits.ERASE_ROWS_MAX)


def _end(connection: psycopg.Connection[Any], name: str, id: int, rows_max: int) -> int:
    values = {"id": id, "rows_max": rows_max}
    ids = scalars(connection).execute(SQL[name], values).fetchall()
    return end_connectors(connection, ids) if ids else 0
