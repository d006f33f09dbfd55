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
from registrations.endpoints.rows import Whose
from registrations.errors import UnknownGroup

SQL = queries.load("groups.sql", Path(__file__).parent.parent / "sql")

Connection = psycopg.Connection[Any]


class Group(NamedTuple):
    """A group as it is shown."""

    id: int
    client: str
    name: str
    suspended: bool
    registrations: int  # live ones that name it
    created_at_us: int


class Behind(NamedTuple):
    """A stream on which the group's registrations are or ever were."""

    id: int
    name: str
    current: bool


def count(connection: Connection, client_id: int) -> int:
    row = connection.execute(SQL["count_groups"], (client_id,)).fetchone()
    return int(row[0]) if row else 0


def insert(connection: Connection, zone_id: int, client_id: int, name: str) -> int | None:
    """The id of a new group; None if the client has one of that name."""
    row = connection.execute(SQL["insert_group"], (zone_id, client_id, name)).fetchone()
    return int(row[0]) if row else None


def hold(connection: Connection, client_id: int, names: Iterable[str]) -> dict[str, int]:
    """The client's groups of those names, {name: id}, kept as they are to the end of the
    transaction.
    """
    asked = list(names)
    if not asked:
        return {}
    return dict(connection.execute(SQL["hold_groups"], (client_id, asked)).fetchall())


def lock(connection: Connection, whose: Whose, group_id: int) -> Group:
    """The group, so that nobody else changes it or joins it; UnknownGroup if there is none."""
    values = {**whose._asdict(), "id": group_id}
    if connection.execute(SQL["lock_group"], values).fetchone() is None:
        raise UnknownGroup(field="group")
    return get(connection, whose, group_id)


def streams_ever(connection: Connection, group_id: int) -> list[Behind]:
    """What a barrier of the group, whose row is locked, must have: a stream that is not there had
    none of its registrations before.
    """
    rows = connection.execute(SQL["streams_ever"], (group_id,)).fetchall()
    return [Behind(*row) for row in rows]


def suspend(connection: Connection, group_id: int, barrier: int) -> None:
    connection.execute(SQL["suspend"], (group_id, barrier))


def resume(connection: Connection, group_id: int, barrier: int) -> None:
    connection.execute(SQL["resume"], (barrier, group_id))


def delete(connection: Connection, group_id: int) -> None:
    connection.execute(SQL["delete_group"], (group_id,))


def delete_of_client(connection: Connection, client_id: int) -> None:
    """Delete all groups of a client, whose registrations end with them."""
    connection.execute(SQL["delete_groups_of_client"], (client_id,))


def search(connection: Connection, whose: Whose, after: int, count: int) -> list[Group]:
    """At most so many groups by id, from the one after `after` on."""
    values = {**whose._asdict(), "id": None, "after": after, "count": count}
    return [Group(*row) for row in connection.execute(SQL["list_groups"], values).fetchall()]


def get(connection: Connection, whose: Whose, group_id: int) -> Group:
    """One group; UnknownGroup if there is none."""
    values = {**whose._asdict(), "id": group_id, "after": 0, "count": 1}
    row = connection.execute(SQL["list_groups"], values).fetchone()
    if row is None:
        raise UnknownGroup(field="group")
    return Group(*row)


def resource_of(zone_id: int, group_id: int) -> Resource:
    return Resource("registration_group", zone_id, str(group_id))
