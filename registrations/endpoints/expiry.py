"""Endpoints that have expired are deleted, and the registrations that name them end, as if their
client had requested it. SQL module.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import get_logger
from eventhub.eventlog.deletion import announcing
from eventhub.eventlog.system import Announcement
from eventhub.postgresql import queries
from eventhub.postgresql.connections import blocking
from eventhub.postgresql.rows import cursor_of, scalars
from registrations import statements
from registrations.announcements import RegistrationChanged
from registrations.endpoints.statements import announcement
from registrations.statements import VersionRow

SQL = queries.load("registrations/sql/endpoint_expiry.sql")
log = get_logger(__name__)

Connection = psycopg.Connection[Any]


class _Expired(NamedTuple):
    """An endpoint that has expired."""

    id: int
    client_id: int
    client: str
    zone_id: int
    zone: str


def delete_expired(database_url: str) -> int:
    """Delete the endpoints that have expired, one in each transaction; return their number."""
    deleted = 0
    try:
        with blocking(database_url, name="expiry") as connection:
            for endpoint in _all_expired(connection):
                announcements: list[Announcement] = []
                with announcing(connection, endpoint.zone, announcements):
                    announcements += _delete(connection, endpoint)
                deleted += bool(announcements)
    except DatabaseUnavailable as error:
        log.info("endpoints_not_expired", reason=error.code)
    if deleted:
        log.info("endpoints_expired", endpoints=deleted)
    return deleted


def _all_expired(connection: Connection) -> Iterator[_Expired]:
    """Yield the endpoints that have expired, read some at a time."""
    after = 0
    while True:
        values = {"after": after, "rows_max": limits.ERASE_ROWS_MAX}
        found = cursor_of(connection, _Expired).execute(SQL["some_expired"], values).fetchall()
        if not found:
            return
        yield from found
        after = found[-1].id


def _delete(connection: Connection, endpoint: _Expired) -> list[Announcement]:
    """Delete an endpoint in the caller's transaction; return what is to be announced last in it."""
    if statements.lock_owner(connection, endpoint.client_id) is None:
        return []
    ids = scalars(connection).execute(SQL["registrations_of_endpoint"], (endpoint.id,)).fetchall()
    found = statements.lock_registrations(connection, ids) if ids else []
    if scalars(connection).execute(SQL["is_expired"], (endpoint.id,)).fetchone() is None:
        return []
    streams = {id for one in found for id in one.streams}
    names = statements.stream_names(connection, streams)
    barrier = statements.new_barrier(connection)
    announcements = []
    for one in found:
        version = VersionRow(one.id, one.number, one.key, one.definition, one.owner)
        change = RegistrationChanged(endpoint.zone_id, endpoint.client, version, barrier)
        ended = [names[id] for id in one.streams]
        announcements.append(change.announcement("registration.deleted", ended))
    statements.end_versions(connection, [one.id for one in found], barrier)
    statements.end(connection, [one.id for one in found])
    statements.count(connection, endpoint.client_id, -len(found))
    statements.delete_endpoints(connection, [endpoint.id])
    statements.fill_barrier(connection, barrier, streams)
    attributes = {"client": endpoint.client, "endpoint": endpoint.id, "expired": True}
    return [*announcements, announcement("deleted", endpoint.zone_id, attributes)]
