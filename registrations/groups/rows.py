"""Statements on groups in the caller's transaction. Callers authorize. SQL module."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg

from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("registrations/sql/groups.sql")

Connection = psycopg.Connection[Any]


class _GroupName(NamedTuple):
    name: str
    id: int


def lock_groups(connection: Connection, client_id: int, names: Iterable[str]) -> dict[str, int]:
    """Lock the client's groups with these names FOR SHARE; return them as {name: id}."""
    names = list(names)
    if not names:
        return {}
    return dict(cursor_of(connection, _GroupName).execute(SQL["lock_groups"], (client_id, names)))


def delete_of_client(connection: Connection, client_id: int) -> None:
    """Delete all groups of a client, whose registrations end with them."""
    connection.execute(SQL["delete_groups_of_client"], (client_id,))
