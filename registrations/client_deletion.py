"""The end of a client's registrations, groups and endpoints, with the client or its zone.
SQL module.
"""

import psycopg

from eventhub.eventlog.system import Announcement
from eventhub.postgresql.rows import scalars
from registrations import rows
from registrations.endpoints import rows as endpoint_rows
from registrations.groups import rows as group_rows


def end_client(
    connection: "psycopg.Connection[object]", *, client_id: int, client: str
) -> list[Announcement]:
    """End the registrations, groups and endpoints of a client whose row is locked, at one barrier.
    The heads stay locked, so the caller only appends the returned announcements after it.
    """
    session = rows.lock_session(connection, client_id)
    if session is None:
        return []
    announcements: list[Announcement] = []
    barrier = rows.new_barrier(connection)
    ids = scalars(connection).execute(rows.SQL["live_of_client"], (client_id,)).fetchall()
    streams = rows.end_versions(connection, ids, barrier)
    if ids:
        rows.end(connection, ids)
        rows.count_session(connection, session, -len(ids))
        several = {"registration": None, "registrations": len(ids), "barrier": barrier}
        announcements.append(Announcement("registration.deleted", {"client": client, **several}))
    group_rows.delete_of_client(connection, client_id)
    endpoints = endpoint_rows.delete_of_client(connection, client_id)
    if endpoints:
        attributes = {"client": client, "endpoint": None, "endpoints": endpoints}
        announcements.append(Announcement("endpoint.deleted", attributes))
    rows.raise_barrier(connection, barrier, streams)
    return announcements
