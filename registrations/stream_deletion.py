"""The registrations of a stream that is being deleted: those of this stream alone end, others go on
without it. SQL module.

The changes are those that a client could make: a barrier, versions, and announcements in `system`,
for some registrations of one client in each transaction.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog.deletion import DueStream, announcing, count_ended, erased
from eventhub.eventlog.system import Announcement
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars
from registrations import statements
from registrations.announcements import RegistrationChanged
from registrations.connectors.statements import end_connectors_of_stream
from registrations.endpoints.statements import end_subscriptions
from registrations.filter_source import stored_filter
from registrations.match_index.epochs.folder import index_root
from registrations.pattern_groups.ending import end_groups_of_stream, names_stream
from registrations.sources.statements import end_sources_of_stream
from registrations.statements import RegistrationDefinition, RegistrationRow, VersionRow
from registrations.timers.ending import end_of_stream

SQL = queries.load("registrations/sql/stream_deletion.sql")

Connection = psycopg.Connection[Any]


class _ClientRegistrations(NamedTuple):
    """Some registrations of one client."""

    client_id: int
    ids: list[int]


class _NamedStream(NamedTuple):
    id: int
    name: str
    matching: str


def end_registrations(connection: Connection, stream: DueStream) -> Iterator[int]:
    """End the pattern groups of the stream, and its registrations, or take it out of them; yield
    the number changed by each transaction.
    """
    yield from end_groups_of_stream(connection, stream)
    values = {"id": stream.id, "rows_max": limits.END_REGISTRATIONS_MAX}
    while True:
        found = cursor_of(connection, _ClientRegistrations).execute(SQL["some_client"], values)
        some = found.fetchone()
        if some is None:
            return
        announcements: list[Announcement] = []
        with announcing(connection, stream.zone, announcements):
            announcements += _end_some(connection, stream, some)
        yield len(announcements)


def has_registrations(connection: Connection, stream_id: int) -> bool:
    """Return whether a live registration or pattern group names the stream."""
    found = bool(scalars(connection).execute(SQL["has_registrations"], (stream_id,)).fetchone())
    return found or names_stream(connection, stream_id)


def erase_rows(connection: Connection, stream_id: int) -> Iterator[int]:
    """Remove the rows of timers, sources, connectors, groups, interests, cursors and index builds
    that concern a deleted stream; yield the number after each statement.
    """
    for end in (end_of_stream, end_sources_of_stream, end_connectors_of_stream):
        while count := _end_some_of(connection, end, stream_id):
            yield count
    for name in ("erase_groups", "erase_interests", "erase_cursors", "erase_claims", "erase_build"):
        yield from erased(connection, SQL[name], stream_id)


def _end_some_of(
    connection: Connection, end: Callable[[Connection, int], int], stream_id: int
) -> int:
    with connection.transaction():
        return end(connection, stream_id)


def erase_index(data: Path, stream_id: int) -> None:
    """Remove the stream's match index from this machine's data folder."""
    rmtree(index_root(data, stream_id), ignore_errors=True)


def _end_some(
    connection: Connection, stream: DueStream, some: _ClientRegistrations
) -> list[Announcement]:
    """Change some registrations at one barrier, in the caller's transaction."""
    owner = statements.lock_owner(connection, some.client_id)
    found = [] if owner is None else statements.lock_registrations(connection, some.ids)
    found = [one for one in found if stream.id in one.streams]  # changed by its client meanwhile
    if not found:
        return []
    ids = {id for one in found for id in one.streams}
    query = cursor_of(connection, _NamedStream).execute(SQL["streams"], ([*ids],))
    streams = {one.id: one for one in query.fetchall()}
    barrier = statements.new_barrier(connection)
    announcements, ended, changed = [], [], []
    for one in found:
        names = [streams[id].name for id in one.streams]
        left = [streams[id] for id in one.streams if id != stream.id]
        if left:
            version = VersionRow(
                one.id,
                one.number + 1,
                one.key,
                _without(one, left, some.client_id),
                one.owner,
            )
            changed.append(version)
        else:
            version = VersionRow(one.id, one.number, one.key, one.definition, one.owner)
            ended.append(one.id)
        change = RegistrationChanged(stream.zone_id, one.client, version, barrier)
        type = "registration.changed" if left else "registration.deleted"
        announcements.append(change.announcement(type, names))
    statements.end_versions(connection, [one.id for one in found], barrier)
    statements.add_versions(connection, changed, barrier)
    statements.end(connection, ended)
    announcements += end_subscriptions(connection, {one.id: one.key for one in found}, barrier)
    statements.count(connection, some.client_id, -len(ended))
    statements.fill_barrier(connection, barrier, ids)
    count_ended(connection, stream.id, len(found))
    return announcements


def _without(
    found: RegistrationRow, left: list[_NamedStream], client_id: int
) -> RegistrationDefinition:
    """Return the registration's definition on the streams that are left."""
    filter = stored_filter(found.language, found.filter_json)
    ids = tuple(one.id for one in left)
    expensive = () if found.suspended else filter.budgets([one.matching for one in left])
    return found.definition._replace(
        streams=ids,
        digest=filter.digest(client_id, ids),
        expensive=expensive,
        variable=filter.variable(),
    )
