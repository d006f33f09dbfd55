"""What of endpoints is done under other locks or by other processes than the API's. SQL module.

Who may is said by the callers. `disable` alone has a transaction of its own, for those who call.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.eventlog import append
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement, announce_in
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("registrations/sql/endpoints.sql")

Connection = psycopg.Connection[Any]
Format = Literal["native", "cloudevents_structured", "cloudevents_binary"]  # of a callback's body


class _Held(NamedTuple):
    id: int
    url: str


class _Disabled(NamedTuple):
    """Whose the endpoint was that was disabled, and what is told of it now."""

    zone_id: int
    zone: str
    attributes: dict[str, Any]


def hold(
    connection: Connection, client_id: int, ids: Iterable[int], urls: Iterable[str]
) -> dict[int, str]:
    """The client's endpoints of those ids or URLs, {id: URL} by id, kept from deletion to the end
    of the transaction.
    """
    values = {"client_id": client_id, "ids": list(ids), "urls": list(urls)}
    return dict(cursor_of(connection, _Held).execute(SQL["hold_endpoints"], values))


def delete_of_client(connection: Connection, client_id: int) -> int:
    """Delete all endpoints of a client: how many."""
    return connection.execute(SQL["delete_endpoints_of_client"], (client_id,)).rowcount


async def disable(connection: psycopg.AsyncConnection[Any], endpoint_id: int, reason: str) -> bool:
    """Call the endpoint no more until it is enabled again, and announce it; False if it was not
    enabled, or is deleted.

    On a connection in autocommit mode, in a transaction of its own.
    """
    async with connection.transaction():
        query = cursor_of(connection, _Disabled)
        values = {"id": endpoint_id, "reason": reason}
        row = await (await query.execute(SQL["disable"], values)).fetchone()
        if row is None:
            return False
        told = announcement("changed", row.zone_id, row.attributes)
        place = await announce_in(connection, zone=row.zone, announcement=told)
    heads = append.heads_text({place.stream_id: place.sequence})
    await connection.execute(append.SQL["notify"], (heads,))
    return True


def announcement(change: str, zone_id: int, attributes: dict[str, Any]) -> Announcement:
    """What is told of an endpoint: never its URL, which may hold secrets of its own."""
    resource = Resource("endpoint", zone_id, str(attributes["endpoint"]))
    return Announcement(f"endpoint.{change}", attributes, resource)
