"""The end of event types and channels whose grace period is over. SQL module.

Their rows remain, because stored events are of the versions and carry the bits. The connection is
in autocommit mode.
"""

from collections.abc import Iterator
from typing import NamedTuple

from eventhub.base import limits
from eventhub.eventlog.deletion import Connection, announcing
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of
from eventhub.types.paths import encoded

SQL = queries.load("eventhub/types/sql/deletion.sql")


class _DueType(NamedTuple):
    zone_id: int
    zone: str
    domain: str
    type: str


class _DueChannel(NamedTuple):
    id: int
    zone_id: int
    zone: str
    name: str


def delete_due(connection: Connection) -> Iterator[str]:
    """Delete the types and channels that are due, each in a transaction; yield the kind of each."""
    bounds = (limits.DELETIONS_AT_ONCE,)
    for type in cursor_of(connection, _DueType).execute(SQL["due_types"], bounds).fetchall():
        found: list[Announcement] = []
        with announcing(connection, type.zone, found):
            if connection.execute(SQL["delete_type"], type._asdict()).rowcount:
                names = {"domain": type.domain, "type": type.type}
                path = f"{encoded(type.domain)}/{encoded(type.type)}"
                resource = Resource("type", type.zone_id, path)
                found.append(Announcement("type.deleted", names, resource))
        yield from ["type"] * len(found)
    rows = cursor_of(connection, _DueChannel).execute(SQL["due_channels"], bounds)
    for channel in rows.fetchall():
        found = []
        with announcing(connection, channel.zone, found):
            if connection.execute(SQL["delete_channel"], (channel.id,)).rowcount:
                resource = Resource("channel", channel.zone_id, channel.name)
                name = {"channel": channel.name}
                found.append(Announcement("channel.deleted", name, resource))
        yield from ["channel"] * len(found)
