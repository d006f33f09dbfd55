"""What workers change in endpoints, and how changes are announced. SQL module."""

from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.eventlog import append
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement, announce_in
from eventhub.postgresql import queries
from eventhub.postgresql.rows import fetch_one

SQL = queries.load("registrations/sql/endpoints.sql")

Connection = psycopg.Connection[Any]
Format = Literal["native", "cloudevents_structured", "cloudevents_binary"]  # of a callback's body
Signature = Literal["v1", "v1a", "both"]  # of a callback


class _DisabledEndpoint(NamedTuple):
    """A disabled endpoint: its zone, and the attributes of its announcement."""

    zone_id: int
    zone: str
    attributes: dict[str, Any]


async def disable(connection: psycopg.AsyncConnection[Any], endpoint_id: int, reason: str) -> bool:
    """Disable the endpoint and announce the change; return False if it is disabled or deleted.

    Needs a connection in autocommit mode and opens its own transaction.
    """
    async with connection.transaction():
        values = {"id": endpoint_id, "reason": reason}
        row = await fetch_one(connection, _DisabledEndpoint, SQL["disable"], values)
        if row is None:
            return False
        change = announcement("changed", row.zone_id, row.attributes)
        appended = await announce_in(connection, zone=row.zone, announcement=change)
    heads = append.heads_text({appended.stream_id: appended.sequence})
    await connection.execute(append.SQL["notify"], (heads,))
    return True


def announcement(change: str, zone_id: int, attributes: dict[str, Any]) -> Announcement:
    """Return an announcement of an endpoint. It has no URL, which may contain secrets."""
    resource = Resource("endpoint", zone_id, str(attributes["endpoint"]))
    return Announcement(f"endpoint.{change}", attributes, resource)
