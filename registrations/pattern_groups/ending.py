"""The end of pattern groups, with their patterns: by themselves, with their client, or with one of
their streams. SQL module.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog.deletion import DueStream, announcing
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars
from registrations import statements

SQL = queries.load("registrations/pattern_groups/sql/pattern_groups.sql")

Connection = psycopg.Connection[Any]


class EndingGroup(NamedTuple):
    """A group that ends; its row is locked."""

    id: int
    name: str
    streams: list[int]
    patterns: int


class _ClientGroups(NamedTuple):
    """Some groups of one client."""

    client_id: int
    ids: list[int]


def end_groups(connection: Connection, groups: Sequence[EndingGroup], barrier: int) -> set[int]:
    """End locked groups at a barrier, which the caller fills; return their streams."""
    if groups:
        values = {"groups": [group.id for group in groups], "barrier": barrier}
        connection.execute(SQL["lock_leases"], values)
        connection.execute(SQL["end_groups"], values)
    return {id for group in groups for id in group.streams}


def groups_of_client(connection: Connection, client_id: int) -> list[EndingGroup]:
    """Lock and return the live groups of a client, which is locked."""
    return (
        cursor_of(connection, EndingGroup).execute(SQL["groups_of_client"], (client_id,)).fetchall()
    )


def lock_groups(connection: Connection, ids: Sequence[int]) -> list[EndingGroup]:
    """Lock and return those of the groups that are live."""
    return cursor_of(connection, EndingGroup).execute(SQL["lock_groups"], ([*ids],)).fetchall()


def names_stream(connection: Connection, stream_id: int) -> bool:
    """Return whether a live group reads the stream or writes its outputs to it."""
    return bool(scalars(connection).execute(SQL["names_stream"], {"id": stream_id}).fetchone())


def end_groups_of_stream(connection: Connection, stream: DueStream) -> Iterator[int]:
    """End the groups that read a stream or write to it; yield the number that each transaction
    ended.
    """
    values = {"id": stream.id, "rows_max": limits.END_PATTERN_GROUPS_MAX}
    while True:
        found = cursor_of(connection, _ClientGroups).execute(SQL["groups_of_stream"], values)
        some = found.fetchone()
        if some is None:
            return
        announcements: list[Announcement] = []
        with announcing(connection, stream.zone, announcements):
            announcements += _end_some(connection, stream, some)
        yield len(announcements)


def _end_some(connection: Connection, stream: DueStream, some: _ClientGroups) -> list[Announcement]:
    statements.lock_owner(connection, some.client_id)
    groups = lock_groups(connection, some.ids)
    barrier = statements.new_barrier(connection)
    streams = end_groups(connection, groups, barrier)
    client = scalars(connection).execute(SQL["client_name"], (some.client_id,)).fetchone()
    statements.fill_barrier(connection, barrier, streams)
    return [deleted_announcement(stream.zone_id, str(client), group, barrier) for group in groups]


def deleted_announcement(
    zone_id: int, client: str, group: EndingGroup, barrier: int
) -> Announcement:
    """Return the announcement of the end of a group."""
    attributes = {
        "client": client,
        "pattern_group": group.id,
        "name": group.name,
        "patterns": group.patterns,
        "barrier": barrier,
    }
    return Announcement(
        "pattern_group.deleted", attributes, Resource("pattern_group", zone_id, str(group.id))
    )
