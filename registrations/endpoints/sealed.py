"""Reads the encrypted secrets of endpoints for workers. SQL module."""

from collections.abc import Iterable
from typing import NamedTuple

from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all

SQL = queries.load("registrations/sql/endpoint_secrets.sql")


class SealedSecret(NamedTuple):
    """An encrypted secret of an endpoint. `expires_at_us`: None for the current one of its kind."""

    id: int
    endpoint_id: int
    kind: str
    sealed: bytes
    expires_at_us: int | None


async def load_secrets(
    connection: Connection, endpoints: Iterable[int]
) -> dict[int, list[SealedSecret]]:
    """Return the secrets of endpoints that have not expired, by endpoint: of each kind the newest
    first. Raise what psycopg raises.
    """
    values = {"endpoints": int8_array([*endpoints])}
    found: dict[int, list[SealedSecret]] = {}
    for row in await fetch_all(connection, SealedSecret, SQL["of_endpoints"], values, binary=True):
        found.setdefault(row.endpoint_id, []).append(row)
    return found
