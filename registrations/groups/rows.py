"""What of groups of registrations is done under the locks of registrations, in the caller's
transaction. Sql module. Who may is said by the callers.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub.eventlog import queries
from eventhub.eventlog.rows import cursor_of

SQL = queries.load("groups.sql", Path(__file__).parent.parent / "sql")

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
