"""What of groups of registrations is done under the locks of registrations, in the caller's
transaction. Who may is said by the callers. SQL module.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg

from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("registrations/sql/groups.sql")

Connection = psycopg.Connection[Any]


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


def delete_of_client(connection: Connection, client_id: int) -> None:
    """Delete all groups of a client, whose registrations end with them."""
    connection.execute(SQL["delete_groups_of_client"], (client_id,))
