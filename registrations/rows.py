"""Registrations as rows: sessions, versions and barriers, in the caller's transaction. SQL module.

The one order of locks: client, session, registrations by id, groups, endpoints, head of `system`,
heads of streams ascending. Nothing is announced and nothing is checked here.
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
from registrations import expensive
from registrations.expensive import StartedVersion

SQL = queries.load("registrations/sql/registrations.sql")

Connection = psycopg.Connection[Any]
Vector = dict[int, Cursor]  # a stream's last place when a barrier was raised


class Session(NamedTuple):
    """A client's session; its row is locked to the end of the transaction."""

    id: int
    client_id: int
    registrations: int  # live ones


class Wanted(NamedTuple):
    """What a version of a registration asks for. `expensive`: what it takes of its client's budget
    on each stream; (): nothing.
    """

    streams: tuple[int, ...]
    language: str
    filter_json: str
    endpoint_id: int | None
    suspended: bool = False
    group_id: int | None = None
    group: str | None = None
    report_json: str | None = None
    digest: UUID | None = None
    expensive: tuple[int, ...] = ()


class Registration(NamedTuple):
    """A live registration with its current version."""

    id: int
    client: str
    session: str
    streams: tuple[int, ...]
    language: str
    filter_json: str
    endpoint_id: int | None
    url: str | None  # of the endpoint
    number: int  # of the version
    created_at_us: int
    barrier: int  # from which the version holds
    key: str | None
    suspended: bool  # by itself
    group_id: int | None
    group: str | None
    report_json: str | None
    equal_to: int | None  # another live registration of the client that asks for the same

    @property
    def wanted(self) -> Wanted:
        """What the version asks for, without what is derived from that."""
        asked = (self.streams, self.language, self.filter_json, self.endpoint_id, self.suspended)
        return Wanted(*asked, self.group_id, self.group, self.report_json)


class Version(NamedTuple):
    """A version of a registration: what it asks for next, or of one that ends, asked for last."""

    registration: int
    number: int
    key: str | None
    wanted: Wanted


class Known(NamedTuple):
    """A registration that is live, or was."""

    key: str | None
    id: int
    live: bool


class Stream(NamedTuple):
    """A stream, and what a registration on it has to know."""

    id: int
    name: str
    transient: bool
    matching: str  # the strategy


class _Name(NamedTuple):
    id: int
    name: str


class _Places(NamedTuple):
    """The places of a barrier, in parallel lists."""

    streams: list[int]
    segments: list[str]
    sequences: list[int]


class _Place(NamedTuple):
    barrier: int
    stream_id: int
    cursor: Cursor


class Search(NamedTuple):
    """Which live registrations are listed, by id; None: all. `patterns` and `system`: of which
    streams alone (owners.Heard).
    """

    zone_id: int | None = None
    client_id: int | None = None
    ids: list[int] | None = None
    endpoint: int | None = None
    stream_id: int | None = None
    group: str | None = None
    suspended: bool | None = None  # by itself
    key: str | None = None
    patterns: list[str] | None = None
    system: bool = True
    after: int = 0
    items_max: int | None = None


def lock_session(connection: Connection, client_id: int) -> Session | None:
    """The client's session `default`, made if there is none; None if the client has ended."""
    if scalars(connection).execute(SQL["lock_client"], (client_id,)).fetchone() is None:
        return None
    query = cursor_of(connection, Session)
    found = query.execute(SQL["lock_session"], (client_id,)).fetchone()
    if found is None:
        connection.execute(SQL["add_session"], (client_id,))
        found = query.execute(SQL["lock_session"], (client_id,)).fetchone()
    return found


def streams_by_name(connection: Connection, zone_id: int, names: Iterable[str]) -> list[Stream]:
    """Those streams of the zone that there are; `system` is in every zone."""
    query = cursor_of(connection, Stream)
    return query.execute(SQL["streams_by_name"], (zone_id, list(names))).fetchall()


def stream_names(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    return dict(cursor_of(connection, _Name).execute(SQL["stream_names"], (list(ids),)))


def new_barrier(connection: Connection) -> int:
    """The id of a barrier to be raised in this transaction; rows may refer to it at once."""
    return int(scalars(connection).execute(SQL["new_barrier"]).fetchone() or 0)


def raise_barrier(connection: Connection, barrier: int, stream_ids: Iterable[int]) -> Vector:
    """Hold the heads of `system` and of the streams to the end of the transaction, and fill the
    barrier with them. Only `announce` comes after it; groups have counted before what begins and
    ends there.
    """
    with connection.pipeline():
        connection.execute(SQL["count_groups_at"], {"barrier": barrier})
        lock_system(connection)
        values = {"barrier": barrier, "streams": sorted(stream_ids)}
        places = cursor_of(connection, _Places).execute(SQL["raise_barrier"], values)
    [found] = places.fetchall()
    cursors = map(Cursor, found.segments, found.sequences)
    return dict(zip(found.streams, cursors, strict=True))


def insert(
    connection: Connection, zone_id: int, session: Session, keys: Sequence[str | None]
) -> list[int]:
    """New registrations with the client's keys for them; their ids, ascending in the order given.
    Each still needs its first version.
    """
    if not keys:
        return []
    values = (zone_id, session.client_id, session.id, text_array(keys))
    return _packed(connection, scalar_row).execute(SQL["insert"], values).fetchall()


def owner_of(connection: Connection, zone_id: int, client_id: int | None, id: int) -> int | None:
    """The client of a live registration of the zone, and of the client if one is given."""
    values = {"id": id, "zone_id": zone_id, "client_id": client_id}
    owner: int | None = scalars(connection).execute(SQL["owner"], values).fetchone()
    return owner


def lock_registrations(connection: Connection, ids: Iterable[int]) -> list[Registration]:
    """Those of the ids that are live, by id, so that nobody else changes them."""
    asked = sorted(set(ids))
    if not asked:
        return []
    connection.execute(SQL["lock_registrations"], (asked,))
    return search(connection, Search(ids=asked))  # a statement of its own, after the lock


def end_versions(connection: Connection, ids: Sequence[int], barrier: int) -> list[int]:
    """End the current versions of registrations: the streams that these were on."""
    if not ids:
        return []
    values = {"registrations": ids, "barrier": barrier}
    return scalars(connection).execute(SQL["end_versions"], values).fetchall()


def add_versions(connection: Connection, versions: Sequence[Version], barrier: int) -> None:
    """First versions, and the next ones of registrations whose current ones have ended."""
    if not versions:
        return
    wanted = [one.wanted for one in versions]
    values = {
        "registrations": int8_array([one.registration for one in versions]),
        "numbers": int8_array([one.number for one in versions]),
        "streams": text_array([f"{{{','.join(map(str, one.streams))}}}" for one in wanted]),
        "languages": text_array([one.language for one in wanted]),
        "filters": text_array([one.filter_json for one in wanted]),
        "endpoints": int8_array([one.endpoint_id for one in wanted]),
        "suspended": int8_array([int(one.suspended) for one in wanted]),
        "groups": int8_array([one.group_id for one in wanted]),
        "reports": text_array([one.report_json for one in wanted]),
        "digests": text_array([one.digest.hex if one.digest else None for one in wanted]),
        "barrier": barrier,
    }
    _packed(connection, tuple_row).execute(SQL["insert_versions"], values)
    begun = (
        StartedVersion(it.registration, it.wanted.streams, it.wanted.expensive) for it in versions
    )
    expensive.record_costs(connection, begun)


def end(connection: Connection, ids: Sequence[int]) -> None:
    if ids:
        connection.execute(SQL["end_registrations"], (ids,))


def count_session(connection: Connection, session: Session, change: int) -> None:
    """So many live registrations more, or fewer."""
    if change:
        connection.execute(SQL["count_session"], (change, session.id))


def by_key(connection: Connection, client_id: int, keys: Iterable[str]) -> dict[str, Known]:
    """What the client's keys name; one that ended only if none of that key is live."""
    query = _packed(connection, named(Known))
    rows = query.execute(SQL["by_key"], (client_id, text_array([*keys])))
    return {row.key: row for row in rows}


def own(connection: Connection, client_id: int, ids: Iterable[int]) -> dict[int, bool]:
    """Those of the ids that are or were the client's: True for those that are live."""
    query = cursor_of(connection, Known)
    return {row.id: row.live for row in query.execute(SQL["own"], (client_id, list(ids)))}


def search(connection: Connection, wanted: Search) -> list[Registration]:
    """At most `items_max` live registrations by id, from the one after `after` on."""
    values = {**wanted._asdict(), "few": few_streams(connection, wanted)}
    found = cursor_of(connection, Registration).execute(SQL["search"], values)
    return [one._replace(streams=tuple(one.streams)) for one in found]


def few_streams(connection: Connection, wanted: Search) -> list[int] | None:
    """The streams that a search is bounded to; None if they may be many."""
    if wanted.patterns is None or wanted.ids is not None:
        return None
    values = {**wanted._asdict(), "most": limits.STREAMS_LOOKED_UP_MAX}
    few: list[int] | None = scalars(connection).execute(SQL["few_streams"], values).fetchone()
    return few


def vectors(connection: Connection, registrations: Sequence[Registration]) -> dict[int, Vector]:
    """By barrier, the places from which the registrations hold on their streams."""
    barriers = {one.barrier for one in registrations}
    streams = {id for one in registrations for id in one.streams}
    found: dict[int, Vector] = {barrier: {} for barrier in barriers}
    query = cursor_of(connection, _Place)
    for row in query.execute(SQL["barrier_places"], (list(barriers), list(streams))):
        found[row.barrier][row.stream_id] = row.cursor
    return found


def _packed(connection: Connection, rows: BaseRowFactory[Any]) -> psycopg.Cursor[Any]:
    """For statements of many rows: the server binds their parameters, arrays as they are packed."""
    cursor = psycopg.Cursor(connection, row_factory=rows)
    adapt(cursor)
    return cursor
