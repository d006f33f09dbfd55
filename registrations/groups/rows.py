"""Groups of registrations as rows, and when they are suspended, in the caller's transaction. Sql
module.

Who may is said by the callers. Suspending a group is one row, however many registrations are in it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub.eventlog import queries
from eventhub.eventlog.changes import Resource
from eventhub.eventlog.rows import cursor_of

SQL = queries.load("groups.sql", Path(__file__).parent.parent / "sql")

Connection = psycopg.Connection[Any]


class Behind(NamedTuple):
    """A stream on which the group's registrations are or ever were."""

    id: int
    name: str
    current: bool


class _Held(NamedTuple):
    name: str
    id: int


def hold(connection: Connection, client_id: int, names: Iterable[str]) -> dict[str, int]:
    """The client's groups of those names, {name: id}, kept as they are to the end of the
    transaction.
    """
    asked = list(names)
    if not asked:
        return {}
    return dict(cursor_of(connection, _Held).execute(SQL["hold_groups"], (client_id, asked)))


def streams_ever(connection: Connection, group_id: int) -> list[Behind]:
    """What a barrier of the group, whose row is locked, must have: a stream that is not there had
    none of its registrations before.
    """
    return cursor_of(connection, Behind).execute(SQL["streams_ever"], (group_id,)).fetchall()


def suspend(connection: Connection, group_id: int, barrier: int) -> None:
    connection.execute(SQL["suspend"], (group_id, barrier))


def resume(connection: Connection, group_id: int, barrier: int) -> None:
    connection.execute(SQL["resume"], (barrier, group_id))


def delete_of_client(connection: Connection, client_id: int) -> None:
    """Delete all groups of a client, whose registrations end with them."""
    connection.execute(SQL["delete_groups_of_client"], (client_id,))


def resource_of(zone_id: int, group_id: int) -> Resource:
    return Resource("registration_group", zone_id, str(group_id))
