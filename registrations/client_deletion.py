"""The end of a client's sessions, registrations, groups, endpoints, timers, patterns, sources
and connectors, with the client or its zone. SQL module.
"""

from typing import Any

import psycopg

from eventhub.eventlog.system import Announcement
from eventhub.postgresql.rows import scalars
from registrations import statements
from registrations.connectors.statements import end_connectors_of_client
from registrations.pattern_groups import ending
from registrations.sessions import statements as session_statements
from registrations.sources.statements import end_sources_of_client
from registrations.timers.ending import end_of_client


def end_client(
    connection: psycopg.Connection[Any], *, client_id: int, client: str
) -> list[Announcement]:
    """End what belongs to a client whose row is locked; its registrations at one barrier.
    The heads stay locked, so the caller only appends the returned announcements after it.
    """
    if statements.lock_owner(connection, client_id) is None:
        return []
    announcements: list[Announcement] = []
    sessions = session_statements.end_sessions(connection, client_id)
    for kind, count in (("session", sessions.sessions), ("session_group", sessions.session_groups)):
        if count:
            attributes = {"client": client, kind: None, f"{kind}s": count, "barrier": None}
            announcements.append(Announcement(f"{kind}.deleted", attributes))
    barrier = statements.new_barrier(connection)
    of_client = statements.SQL["live_of_client"]
    ids = scalars(connection).execute(of_client, (client_id,)).fetchall()
    streams = statements.end_versions(connection, ids, barrier)
    if ids:
        statements.end(connection, ids)
        statements.count(connection, client_id, -len(ids))
        several = {"registration": None, "registrations": len(ids), "barrier": barrier}
        announcements.append(Announcement("registration.deleted", {"client": client, **several}))
    groups = ending.groups_of_client(connection, client_id)
    streams += ending.end_groups(connection, groups, barrier)
    if groups:
        several = {"pattern_group": None, "pattern_groups": len(groups), "barrier": barrier}
        patterns = sum(group.patterns for group in groups)
        attributes = {"client": client, **several, "patterns": patterns}
        announcements.append(Announcement("pattern_group.deleted", attributes))
    endpoints = statements.delete_groups_and_endpoints(connection, client_id)
    if endpoints:
        attributes = {"client": client, "endpoint": None, "endpoints": endpoints}
        announcements.append(Announcement("endpoint.deleted", attributes))
    if timers := end_of_client(connection, client_id):
        attributes = {"client": client, "timer": None, "timers": timers}
        announcements.append(Announcement("timer.deleted", attributes))
    if sources := end_sources_of_client(connection, client_id):
        attributes = {"client": client, "source": None, "sources": sources}
        announcements.append(Announcement("source.deleted", attributes))
    if connectors := end_connectors_of_client(connection, client_id):
        attributes = {"client": client, "connector": None, "connectors": connectors}
        announcements.append(Announcement("connector.deleted", attributes))
    statements.fill_barrier(connection, barrier, streams)
    return announcements
