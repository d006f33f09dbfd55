"""The end of timers with their registration, client or stream, in the caller's transaction.
SQL module.
"""

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import scalars

SQL = queries.load("registrations/timers/sql/timers.sql")

Connection = psycopg.Connection[Any]


def end_of_registrations(connection: Connection, ids: Sequence[int]) -> int:
    """Delete the timers of registrations; return how many there were."""
    return _end(connection, SQL["end_of_registrations"], ([*ids],)) if ids else 0


def end_of_client(connection: Connection, client_id: int) -> int:
    """Delete the timers of a client; return how many there were."""
    return _end(connection, SQL["end_of_client"], (client_id,))


def end_of_stream(connection: Connection, stream_id: int) -> int:
    """Delete some timers on a stream; return how many, 0 if none is left."""
    values = {"id": stream_id, "rows_max": limits.ERASE_ROWS_MAX}
    return _end(connection, SQL["end_of_stream"], values)


def count_ended(connection: Connection, clients: Sequence[int]) -> None:
    """Subtract deleted timers from the numbers of their clients, each named once per timer."""
    if clients:
        connection.execute(SQL["count_ended"], {"clients": [*clients]})


def _end(connection: Connection, statement: LiteralString, values: Any) -> int:
    clients = scalars(connection).execute(statement, values).fetchall()
    count_ended(connection, clients)
    return len(clients)
