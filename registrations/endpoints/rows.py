"""Endpoints as rows: where the hub calls back, in the caller's transaction. Sql module.

Who may is said by the callers. `disable` alone has a transaction of its own, for those who call.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.eventlog import append, queries
from eventhub.eventlog.changes import Resource
from eventhub.eventlog.system import Announcement, announce_in
from registrations.endpoints.health import Health
from registrations.errors import UnknownEndpoint

SQL = queries.load("endpoints.sql", Path(__file__).parent.parent / "sql")

Connection = psycopg.Connection[Any]
Format = Literal["native", "cloudevents_structured", "cloudevents_binary"]  # of a callback's body


class Settings(NamedTuple):
    """What of an endpoint can be changed."""

    url: str
    description: str = ""
    ordered: bool = False  # one delivery of a stream at a time, in the stream's order
    format: Format = "native"
    enabled: bool = True
    reason: str | None = None  # why it is not enabled: `request`, `gone`


class Endpoint(NamedTuple):
    """An endpoint as it is shown; its secret is not."""

    id: int
    client: str
    settings: Settings
    created_at_us: int
    changed_at_us: int
    health: Health


class Whose(NamedTuple):
    """The zone and, unless all of the zone are meant, the client whose endpoints are meant."""

    zone_id: int
    client_id: int | None


class NewEndpoint(NamedTuple):
    zone_id: int
    client_id: int
    url: str
    description: str
    ordered: bool
    format: Format
    secret: bytes  # sealed


def count(connection: Connection, client_id: int) -> int:
    row = connection.execute(SQL["count_endpoints"], (client_id,)).fetchone()
    return int(row[0]) if row else 0


def insert(connection: Connection, endpoint: NewEndpoint) -> int:
    """The id of a new endpoint."""
    row = connection.execute(SQL["insert_endpoint"], endpoint._asdict()).fetchone()
    if row is None:
        raise RuntimeError("the endpoint was not made")
    return int(row[0])


def hold(
    connection: Connection, client_id: int, ids: Iterable[int], urls: Iterable[str]
) -> dict[int, str]:
    """The client's endpoints of those ids or URLs, {id: URL} by id, kept from deletion to the end
    of the transaction.
    """
    values = {"client_id": client_id, "ids": list(ids), "urls": list(urls)}
    return dict(connection.execute(SQL["hold_endpoints"], values).fetchall())


def lock(connection: Connection, whose: Whose, endpoint_id: int) -> Endpoint:
    """The endpoint, so that nobody else changes it; UnknownEndpoint if there is none."""
    values = {**whose._asdict(), "id": endpoint_id}
    if connection.execute(SQL["lock_endpoint"], values).fetchone() is None:
        raise UnknownEndpoint(field="endpoint")
    return get(connection, whose, endpoint_id)


def is_named(connection: Connection, endpoint_id: int) -> bool:
    """True while a live registration names the endpoint, whose row is locked."""
    row = connection.execute(SQL["is_named"], (endpoint_id,)).fetchone()
    return bool(row and row[0])


def streams_behind(connection: Connection, endpoint_id: int) -> list[str]:
    """The names of the streams whose events the endpoint, whose row is locked, is sent."""
    return [name for [name] in connection.execute(SQL["streams_behind"], (endpoint_id,)).fetchall()]


def change(connection: Connection, endpoint_id: int, settings: Settings) -> None:
    connection.execute(SQL["change_endpoint"], {**settings._asdict(), "id": endpoint_id})


def delete(connection: Connection, endpoint_id: int) -> None:
    connection.execute(SQL["delete_endpoint"], (endpoint_id,))


def delete_of_client(connection: Connection, client_id: int) -> int:
    """Delete all endpoints of a client: how many."""
    return connection.execute(SQL["delete_endpoints_of_client"], (client_id,)).rowcount


def search(connection: Connection, whose: Whose, after: int, count: int) -> list[Endpoint]:
    """At most so many endpoints by id, from the one after `after` on."""
    values = {**whose._asdict(), "id": None, "after": after, "count": count}
    return _found(connection.execute(SQL["list_endpoints"], values).fetchall())


def get(connection: Connection, whose: Whose, endpoint_id: int) -> Endpoint:
    """One endpoint; UnknownEndpoint if there is none."""
    values = {**whose._asdict(), "id": endpoint_id, "after": 0, "count": 1}
    found = _found(connection.execute(SQL["list_endpoints"], values).fetchall())
    if not found:
        raise UnknownEndpoint(field="endpoint")
    return found[0]


async def disable(connection: psycopg.AsyncConnection[Any], endpoint_id: int, reason: str) -> bool:
    """Call the endpoint no more until it is enabled again, and announce it; False if it was not
    enabled, or is deleted.

    On a connection in autocommit mode, in a transaction of its own.
    """
    async with connection.transaction():
        cursor = await connection.execute(SQL["disable"], {"id": endpoint_id, "reason": reason})
        row = await cursor.fetchone()
        if row is None:
            return False
        zone_id, zone, client, ordered, format = row
        after = Settings("", "", ordered, format, False, reason)
        told = changed(zone_id, client, endpoint_id, after)
        place = await announce_in(connection, zone=zone, announcement=told)
    heads = append.heads_text({place.stream_id: place.sequence})
    await connection.execute(append.SQL["notify"], (heads,))
    return True


def resource_of(zone_id: int, endpoint_id: int) -> Resource:
    return Resource("endpoint", zone_id, str(endpoint_id))


def changed(zone_id: int, client: str, endpoint_id: int, settings: Settings) -> Announcement:
    """What is told of a change; not the URL, which may hold secrets of its own."""
    told = settings._asdict()
    del told["url"], told["description"]
    attributes = {"client": client, "endpoint": endpoint_id, **told}
    return Announcement("endpoint.changed", attributes, resource_of(zone_id, endpoint_id))


def _found(rows: Iterable[tuple[Any, ...]]) -> list[Endpoint]:
    return [
        Endpoint(row[0], row[1], Settings(*row[2:8]), row[8], row[9], Health(*row[10:]))
        for row in rows
    ]
