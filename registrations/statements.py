"""The rows of registrations: versions and barriers, in the caller's transaction. SQL
module.

Locks are always taken in this order: client, owner, session groups, registrations by id, groups,
endpoints, head of `system`, heads of streams ascending. This module announces and checks nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import BaseRowFactory, scalar_row, tuple_row

from eventhub.base import limits
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import lock_system
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import adapt, int8_array, text_array
from eventhub.postgresql.rows import cursor_of, named, scalars
from registrations import filter_budget
from registrations.catalog import SessionOwner
from registrations.filter_budget import StartedVersion
from registrations.timers.ending import end_of_registrations

SQL = queries.load("registrations/sql/registrations.sql")

Connection = psycopg.Connection[Any]
OF_CLIENT = SessionOwner(None)  # of a registration that belongs to no session
Vector = dict[int, Cursor]  # by stream id, its last position when a barrier was raised


class RegistrationDefinition(NamedTuple):
    """The definition in a version. `expensive`: its budget on each stream; (): nothing."""

    streams: tuple[int, ...]
    language: str
    filter_json: str
    endpoint_id: int | None
    suspended: bool = False
    group_id: int | None = None
    group: str | None = None
    report_json: str | None = None
    variable: str | None = None  # that a READY filter binds
    digest: UUID | None = None
    expensive: tuple[int, ...] = ()


class RegistrationRow(NamedTuple):
    """A live registration with its current version."""

    id: int
    client: str
    streams: tuple[int, ...]
    language: str
    filter_json: str
    endpoint_id: int | None
    url: str | None  # of the endpoint
    number: int  # of the version
    created_at_us: int
    barrier: int  # at which the version begins
    key: str | None
    suspended: bool  # itself; its group may be suspended, too
    group_id: int | None
    group: str | None
    report_json: str | None
    equal_to: int | None  # another live registration of the client with an equal filter
    session_id: int | None
    session_group_id: int | None
    session: str | None
    session_group: str | None
    root_id: int | None  # the root group of its session

    @property
    def owner(self) -> SessionOwner:
        """The session or session group that it belongs to."""
        return SessionOwner(self.session_id, self.session_group_id)

    @property
    def definition(self) -> RegistrationDefinition:
        """The definition of the version, without the fields that are derived from the others."""
        first = (self.streams, self.language, self.filter_json, self.endpoint_id, self.suspended)
        return RegistrationDefinition(*first, self.group_id, self.group, self.report_json)


class VersionRow(NamedTuple):
    """A version of a registration: the next one, or the last one of a registration that ends."""

    registration: int
    number: int
    key: str | None
    definition: RegistrationDefinition
    owner: SessionOwner = OF_CLIENT


class KnownRegistration(NamedTuple):
    """A registration, live or ended, by its key."""

    key: str | None
    id: int
    live: bool


class RegistrationStream(NamedTuple):
    """The fields of a stream that registrations on it depend on."""

    id: int
    name: str
    transient: bool
    matching: str  # the strategy
    deletes_at_us: int | None = None  # the end of the grace period of its deletion, if scheduled


class _StreamName(NamedTuple):
    id: int
    name: str


class LockedGroup(NamedTuple):
    """A group of registrations, and the session or session group that it belongs to."""

    name: str
    id: int
    session_id: int | None
    session_group_id: int | None

    @property
    def owner(self) -> SessionOwner:
        return SessionOwner(self.session_id, self.session_group_id)


class _EndpointUrl(NamedTuple):
    id: int
    url: str


class _BarrierRow(NamedTuple):
    """The positions of a barrier, in parallel lists."""

    streams: list[int]
    segments: list[str]
    sequences: list[int]


class _BarrierPosition(NamedTuple):
    barrier: int
    stream_id: int
    cursor: Cursor


class RegistrationQuery(NamedTuple):
    """The conditions of a list of live registrations; None: any. `patterns` and `system` restrict
    the streams (owners.ListenableStreams).
    """

    zone_id: int | None = None
    client_id: int | None = None
    ids: list[int] | None = None
    endpoint: int | None = None
    stream_id: int | None = None
    group: str | None = None
    session: str | None = None
    session_group: str | None = None
    suspended: bool | None = None  # itself, not its group
    key: str | None = None
    patterns: list[str] | None = None
    system: bool = True
    after: int = 0
    items_max: int | None = None


def lock_owner(connection: Connection, client_id: int) -> int | None:
    """Lock the client as the owner of registrations and endpoints to the end of the transaction;
    return the number of its live registrations, None if the client has ended.
    """
    if scalars(connection).execute(SQL["lock_client"], (client_id,)).fetchone() is None:
        return None
    count: int | None = scalars(connection).execute(SQL["lock_owner"], (client_id,)).fetchone()
    return count


def streams_by_name(
    connection: Connection, zone_id: int, names: Iterable[str]
) -> list[RegistrationStream]:
    """Return the streams of the zone that have one of the names; `system` is in every zone."""
    query = cursor_of(connection, RegistrationStream)
    return query.execute(SQL["streams_by_name"], (zone_id, list(names))).fetchall()


def stream_names(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    return dict(cursor_of(connection, _StreamName).execute(SQL["stream_names"], (list(ids),)))


def streams_without_data(connection: Connection, ids: Iterable[int]) -> frozenset[int]:
    """Return those of the streams that do not have the policy `filterable_data`."""
    return frozenset(scalars(connection).execute(SQL["streams_without_data"], (list(ids),)))


def lock_groups(
    connection: Connection, client_id: int, names: Iterable[str], roots: Iterable[int] = ()
) -> dict[str, LockedGroup]:
    """Lock the client's groups with these names, their parents and the roots FOR SHARE to the end
    of the transaction and return them by name.
    """
    values = {"client_id": client_id, "names": list(names), "roots": list(roots)}
    if not values["names"] and not values["roots"]:
        return {}
    found = cursor_of(connection, LockedGroup).execute(SQL["lock_groups"], values)
    return {group.name: group for group in found}


def lock_endpoints(
    connection: Connection, client_id: int, ids: Iterable[int], urls: Iterable[str]
) -> dict[int, str]:
    """Lock the client's endpoints with these ids or URLs against deletion, to the end of the
    transaction; return them as {id: URL}, by id.
    """
    values = {"client_id": client_id, "ids": list(ids), "urls": list(urls)}
    return dict(cursor_of(connection, _EndpointUrl).execute(SQL["lock_endpoints"], values))


def delete_groups_and_endpoints(connection: Connection, client_id: int) -> int:
    """Delete those of a client whose registrations have ended; return the number of endpoints."""
    connection.execute(SQL["delete_groups"], (client_id,))
    ids = scalars(connection).execute(SQL["endpoints_of_client"], (client_id,)).fetchall()
    delete_endpoints(connection, ids)
    return len(ids)


def delete_endpoints(connection: Connection, ids: Sequence[int]) -> None:
    """Delete endpoints, and what belongs to them, that no registration names any more."""
    connection.execute(SQL["delete_endpoints"], {"ids": list(ids)})


def new_barrier(connection: Connection) -> int:
    """Insert an empty barrier, to be raised later in this transaction, and return its id; rows may
    refer to it at once.
    """
    return int(scalars(connection).execute(SQL["new_barrier"]).fetchone() or 0)


def fill_barrier(connection: Connection, barrier: int, stream_ids: Iterable[int]) -> Vector:
    """Lock the heads of `system` and of the streams to the end of the transaction, and fill the
    barrier with them. The counts of groups are updated before. Only what needs the lock of `system`
    and announcements may follow.
    """
    with connection.pipeline():
        connection.execute(SQL["count_groups_at"], {"barrier": barrier})
        lock_system(connection)
        values = {"barrier": barrier, "streams": sorted(stream_ids)}
        rows = cursor_of(connection, _BarrierRow).execute(SQL["fill_barrier"], values)
    [found] = rows.fetchall()
    cursors = map(Cursor, found.segments, found.sequences)
    return dict(zip(found.streams, cursors, strict=True))


def insert(
    connection: Connection,
    zone_id: int,
    client_id: int,
    keys: Sequence[str | None],
    owners: Sequence[SessionOwner],
) -> list[int]:
    """Insert registrations with the client's keys and the sessions that they belong to; return
    their ids, ascending in the order given. The caller adds their first versions.
    """
    if not keys:
        return []
    values = {
        "zone_id": zone_id,
        "client_id": client_id,
        "keys": text_array(keys),
        "sessions": int8_array([owner.session for owner in owners]),
        "session_groups": int8_array([owner.session_group for owner in owners]),
    }
    return _packed(connection, scalar_row).execute(SQL["insert"], values).fetchall()


def owner_of(connection: Connection, zone_id: int, client_id: int | None, id: int) -> int | None:
    """Return the client of a live registration of the zone; None if there is none, or if it belongs
    to another client than `client_id`.
    """
    values = {"id": id, "zone_id": zone_id, "client_id": client_id}
    owner: int | None = scalars(connection).execute(SQL["owner"], values).fetchone()
    return owner


def lock_registrations(connection: Connection, ids: Iterable[int]) -> list[RegistrationRow]:
    """Lock the live registrations with these ids, in the order of the ids, and return them."""
    in_order = sorted(set(ids))
    if not in_order:
        return []
    connection.execute(SQL["lock_registrations"], (in_order,))
    # a second statement sees what was committed before the lock was granted
    return search(connection, RegistrationQuery(ids=in_order))


def end_versions(connection: Connection, ids: Sequence[int], barrier: int) -> list[int]:
    """End the current versions of registrations; return the streams that these named."""
    if not ids:
        return []
    values = {"registrations": ids, "barrier": barrier}
    return scalars(connection).execute(SQL["end_versions"], values).fetchall()


def add_versions(connection: Connection, versions: Sequence[VersionRow], barrier: int) -> None:
    """Insert first versions, and the next versions of registrations whose current ones ended."""
    if not versions:
        return
    definitions = [one.definition for one in versions]
    values = {
        "registrations": int8_array([one.registration for one in versions]),
        "numbers": int8_array([one.number for one in versions]),
        "streams": text_array([f"{{{','.join(map(str, one.streams))}}}" for one in definitions]),
        "languages": text_array([one.language for one in definitions]),
        "filters": text_array([one.filter_json for one in definitions]),
        "endpoints": int8_array([one.endpoint_id for one in definitions]),
        "suspended": int8_array([int(one.suspended) for one in definitions]),
        "groups": int8_array([one.group_id for one in definitions]),
        "reports": text_array([one.report_json for one in definitions]),
        "variables": text_array([one.variable for one in definitions]),
        "digests": text_array([one.digest.hex if one.digest else None for one in definitions]),
        "barrier": barrier,
    }
    _packed(connection, tuple_row).execute(SQL["insert_versions"], values)
    started = (
        StartedVersion(it.registration, it.definition.streams, it.definition.expensive)
        for it in versions
    )
    filter_budget.record_costs(connection, started)


def end(connection: Connection, ids: Sequence[int]) -> None:
    """End registrations, with their timers."""
    if ids:
        connection.execute(SQL["end_registrations"], {"ids": list(ids)})
        end_of_registrations(connection, ids)


def count(connection: Connection, client_id: int, change: int) -> None:
    """Add `change` to the client's number of live registrations."""
    if change:
        connection.execute(SQL["count_registrations"], (change, client_id))


def by_key(
    connection: Connection, client_id: int, keys: Iterable[str]
) -> dict[str, KnownRegistration]:
    """Return the registration that each key of the client names; an ended one only if no live one
    has the key.
    """
    query = _packed(connection, named(KnownRegistration))
    rows = query.execute(SQL["by_key"], (client_id, text_array([*keys])))
    return {row.key: row for row in rows}


def own(connection: Connection, client_id: int, ids: Iterable[int]) -> dict[int, bool]:
    """Return the ids that belong to the client, live or ended: True for the live ones."""
    query = cursor_of(connection, KnownRegistration)
    return {row.id: row.live for row in query.execute(SQL["own"], (client_id, list(ids)))}


def search(connection: Connection, definition: RegistrationQuery) -> list[RegistrationRow]:
    """Return at most `items_max` live registrations with ids above `after`, ascending."""
    values = {**definition._asdict(), "few": few_streams(connection, definition)}
    found = cursor_of(connection, RegistrationRow).execute(SQL["search"], values)
    return [one._replace(streams=tuple(one.streams)) for one in found]


def few_streams(connection: Connection, definition: RegistrationQuery) -> list[int] | None:
    """Return the only streams that a query can find registrations of; None if they may be many."""
    if definition.patterns is None or definition.ids is not None:
        return None
    values = {**definition._asdict(), "most": limits.STREAMS_LOOKED_UP_MAX}
    few: list[int] | None = scalars(connection).execute(SQL["few_streams"], values).fetchone()
    return few


def vectors(connection: Connection, registrations: Sequence[RegistrationRow]) -> dict[int, Vector]:
    """Return, by barrier, the positions after which the registrations match their streams."""
    barriers = {one.barrier for one in registrations}
    streams = {id for one in registrations for id in one.streams}
    found: dict[int, Vector] = {barrier: {} for barrier in barriers}
    query = cursor_of(connection, _BarrierPosition)
    for row in query.execute(SQL["barrier_positions"], (list(barriers), list(streams))):
        found[row.barrier][row.stream_id] = row.cursor
    return found


def _packed(connection: Connection, rows: BaseRowFactory[Any]) -> psycopg.Cursor[Any]:
    """Return a cursor for statements of many rows, with parameters bound by the server and arrays
    in binary form.
    """
    cursor = psycopg.Cursor(connection, row_factory=rows)
    adapt(cursor)
    return cursor
