"""The deletion of zones, as steps of the task in deletion.py: a due zone ends with its keys and
makes its streams due; when these are deleted, its clients and definitions end. SQL module.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.eventlog.deletion import announcing
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.streams import lock_system
from eventhub.eventlog.system import Announcement
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of
from registrations.client_deletion import end_client

SQL = queries.load("delivery/sql/zone_deletion.sql")
log = get_logger(__name__)

Connection = psycopg.Connection[Any]


class _Named(NamedTuple):
    """A zone or a client."""

    id: int
    name: str


class _Ended(NamedTuple):
    """The numbers of streams that end with a zone, and of keys that were revoked."""

    streams: int
    keys: int


def delete_due(connection: Connection) -> Iterator[str]:
    """Delete the zones that are due; yield the kind of each. Then make their streams due."""
    rows = cursor_of(connection, _Named).execute(SQL["due"], (limits.DELETIONS_AT_ONCE,))
    for zone in rows.fetchall():
        found: list[Announcement] = []
        with announcing(connection, zone.name, found):
            query = cursor_of(connection, _Ended).execute(SQL["delete"], {"id": zone.id})
            ended = query.fetchone()
            if ended is not None:
                found.append(Announcement("zone.deleted", ended._asdict()))
        if ended is not None:
            log.info("zone_deleted", zone=zone.name, **ended._asdict())
            yield "zone"
    with connection.transaction():
        lock_system(connection)
        connection.execute(SQL["streams_due"])


def erase_emptied(connection: Connection) -> Iterator[int]:
    """Remove the clients and definitions of deleted zones without streams; yield after each."""
    rows = cursor_of(connection, _Named).execute(SQL["emptied"], (limits.DELETIONS_AT_ONCE,))
    for zone in rows.fetchall():
        yield from _delete_clients(connection, zone)
        with announcing(connection, zone.name, [Announcement("zone.erased", {})]):
            connection.execute(SQL["erase"], {"id": zone.id})
        log.info("zone_erased", zone=zone.name)
        yield 1


def _delete_clients(connection: Connection, zone: _Named) -> Iterator[int]:
    values = (zone.id, limits.DELETIONS_AT_ONCE)
    while found := cursor_of(connection, _Named).execute(SQL["clients"], values).fetchall():
        for client in found:
            announcements: list[Announcement] = []
            with announcing(connection, zone.name, announcements):
                connection.execute(SQL["lock_client"], (client.id,))
                ended = end_client(connection, client_id=client.id, client=client.name)
                connection.execute(SQL["delete_client"], (client.id,))
                resource = Resource("client", zone.id, client.name)
                name = {"client": client.name}
                announcements += [*ended, Announcement("client.deleted", name, resource)]
            yield 1
