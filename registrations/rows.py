"""Registrations as rows: sessions, versions and barriers, in the caller's transaction. Sql module.

The one order of locks: client, session, registrations by id, groups, endpoints, head of `system`,
heads of streams ascending. Nothing is announced and nothing is checked here.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import BaseRowFactory, tuple_row

from eventhub import limits
from eventhub.eventlog import queries
from eventhub.eventlog.arrays import Int8Array, TextArray, adapt, int8_array, text_array
from eventhub.eventlog.rows import cursor_of, named, scalars
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import lock_system
from registrations import expensive
from registrations.errors import UnknownRegistration

SQL = queries.load("registrations.sql", Path(__file__).parent / "sql")

Connection = psycopg.Connection[Any]
Vector = dict[int, Cursor]  # a stream's last place when a barrier was raised


class Session(NamedTuple):
    """A client's session; its row is locked to the end of the transaction."""

    id: int
    registrations: int  # live ones


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


class Wanted(NamedTuple):
    """What a version of a registration asks for."""

    streams: tuple[int, ...]
    language: str
    filter_json: str
    endpoint_id: int | None
    suspended: bool = False
    group_id: int | None = None
    report_json: str | None = None
    digest: UUID | None = None
    expensive: tuple[
        int, ...
    ] = ()  # what it takes of its client's budget on each stream; (): nothing


class Belonging(NamedTuple):
    """Whose a registration is."""

    zone_id: int
    client_id: int
    session_id: int


class NewVersion(NamedTuple):
    """What a registration asks for next."""

    registration: int
    number: int
    wanted: Wanted


class Keyed(NamedTuple):
    """The registration that a client's key names, or named last."""

    id: int
    live: bool


class _Named(NamedTuple):
    key: str
    keyed: Keyed


class _Stream(NamedTuple):
    id: int
    name: str


class _Matched(NamedTuple):
    id: int
    matching: str


class _Made(NamedTuple):
    id: int


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
    """Which registrations of a zone are listed; None: all. `patterns` and `system`: of which
    streams alone (owners.Heard); `few`: these streams, if they are few.
    """

    zone_id: int
    client_id: int | None = None
    endpoint: int | None = None
    stream_id: int | None = None
    group: str | None = None
    suspended: bool | None = None  # by itself
    key: str | None = None
    patterns: list[str] | None = None
    system: bool = True
    few: list[int] | None = None


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


def count_session(connection: Connection, session_id: int, change: int) -> None:
    """So many live registrations more, or fewer."""
    connection.execute(SQL["count_session"], (change, session_id))


def streams_by_name(connection: Connection, zone_id: int, names: Iterable[str]) -> dict[str, int]:
    """The ids of those streams of the zone that there are; `system` is in every zone."""
    query = cursor_of(connection, _Stream)
    return {name: id for id, name in query.execute(SQL["streams_by_name"], (zone_id, list(names)))}


def stream_names(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    return dict(cursor_of(connection, _Stream).execute(SQL["stream_names"], (list(ids),)))


def transient_streams(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Those of the streams that are in memory only, for good."""
    return set(scalars(connection).execute(SQL["transient_streams"], (list(ids),)))


def strategies(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    """By which strategy the events of streams are matched."""
    return dict(cursor_of(connection, _Matched).execute(SQL["strategies"], (list(ids),)))


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
    found = places.fetchone()
    if found is None:
        raise RuntimeError("the barrier was not made in this transaction")
    cursors = map(Cursor, found.segments, found.sequences)
    return dict(zip(found.streams, cursors, strict=True))


def insert(
    connection: Connection,
    whose: Belonging,
    barrier: int,
    wanted: Sequence[Wanted],
    keys: Sequence[str | None],
) -> list[int]:
    """New registrations with the clients' keys for them; their ids, ascending in the order
    given.
    """
    values = {**whose._asdict(), "barrier": barrier, "keys": text_array(keys), **_columns(wanted)}
    query = _packed(connection, row_factory=named(_Made))
    ids = [made.id for made in query.execute(SQL["insert_registrations"], values)]
    expensive.note(connection, map(_begun, ids, wanted))
    return ids


def owner_of(connection: Connection, zone_id: int, client_id: int | None, registration: int) -> int:
    """The client of a live registration of the zone, and of the client if one is given; else
    UnknownRegistration.
    """
    values = {"id": registration, "zone_id": zone_id, "client_id": client_id}
    found = scalars(connection).execute(SQL["owner"], values).fetchone()
    if found is None:
        raise UnknownRegistration(field="registration")
    return int(found)


def lock_registrations(connection: Connection, ids: Iterable[int]) -> list[Registration]:
    """Those of the ids that are live, by id, so that nobody else changes them."""
    asked = sorted(set(ids))
    if not asked:
        return []
    connection.execute(SQL["lock_registrations"], (asked,))
    return show(connection, asked)  # a statement of its own, after the lock


def lock_registration(connection: Connection, registration: int) -> Registration:
    """The live registration, so that nobody else changes it; UnknownRegistration if it ended."""
    found = lock_registrations(connection, [registration])
    if not found:
        raise UnknownRegistration(field="registration")
    return found[0]


def end_versions(connection: Connection, registrations: Iterable[int], barrier: int) -> None:
    values = {"registrations": list(registrations), "barrier": barrier}
    connection.execute(SQL["end_versions"], values)


def add_versions(connection: Connection, versions: Sequence[NewVersion], barrier: int) -> None:
    """The next versions of registrations whose current ones have ended."""
    values = {
        "registrations": int8_array([one.registration for one in versions]),
        "numbers": int8_array([one.number for one in versions]),
        "barrier": barrier,
        **_columns([one.wanted for one in versions]),
    }
    _packed(connection).execute(SQL["insert_versions"], values)
    expensive.note(connection, (_begun(one.registration, one.wanted) for one in versions))


def end(connection: Connection, registrations: Iterable[int]) -> None:
    connection.execute(SQL["end_registrations"], (list(registrations),))


def by_key(connection: Connection, client_id: int, keys: Iterable[str]) -> dict[str, Keyed]:
    """What the client's keys name; one that ended only if none of that key is live."""
    query = _packed(connection, row_factory=named(_Named))
    rows = query.execute(SQL["by_key"], (client_id, text_array([*keys])))
    return {row.key: row.keyed for row in rows}


def own(connection: Connection, client_id: int, ids: Iterable[int]) -> dict[int, bool]:
    """Those of the ids that are or were the client's: True for those that are live."""
    query = cursor_of(connection, Keyed)
    return dict(query.execute(SQL["own"], (client_id, list(ids))))


def end_of_client(connection: Connection, client_id: int, barrier: int) -> tuple[int, list[int]]:
    """End all registrations of a client whose session is locked: how many, and their streams."""
    ended = connection.execute(SQL["end_registrations_of_client"], (client_id,)).rowcount
    values = {"client_id": client_id, "barrier": barrier}
    streams = scalars(connection).execute(SQL["end_versions_of_client"], values).fetchone()
    return ended, list(streams or ())


def search(connection: Connection, wanted: Search, after: int, count: int) -> list[Registration]:
    """At most so many registrations by id, from the one after `after` on."""
    values = {**wanted._asdict(), "after": after, "count": count}
    return _shown(cursor_of(connection, Registration).execute(SQL["list_registrations"], values))


def few_streams(
    connection: Connection, zone_id: int, patterns: list[str] | None, system: bool
) -> list[int] | None:
    """The streams that an actor may listen to (owners.Heard); None if they may be many."""
    if patterns is None:
        return None
    values = {"zone_id": zone_id, "patterns": patterns, "system": system}
    most = limits.STREAMS_LOOKED_UP_MAX
    query = scalars(connection).execute(SQL["few_streams"], {**values, "most": most})
    few: list[int] | None = query.fetchone()
    return few


def show(connection: Connection, ids: Sequence[int]) -> list[Registration]:
    """Those of the ids that are live, by id."""
    values = (list(ids),)
    return _shown(cursor_of(connection, Registration).execute(SQL["show_registrations"], values))


def vectors(connection: Connection, registrations: Sequence[Registration]) -> dict[int, Vector]:
    """By barrier, the places from which the registrations hold on their streams."""
    barriers = {one.barrier for one in registrations}
    streams = {id for one in registrations for id in one.streams}
    found: dict[int, Vector] = {barrier: {} for barrier in barriers}
    query = cursor_of(connection, _Place)
    for row in query.execute(SQL["barrier_places"], (list(barriers), list(streams))):
        found[row.barrier][row.stream_id] = row.cursor
    return found


def _shown(found: Iterable[Registration]) -> list[Registration]:
    """With their streams as a tuple."""
    return [one._replace(streams=tuple(one.streams)) for one in found]


def _columns(wanted: Sequence[Wanted]) -> dict[str, Int8Array | TextArray]:
    return {
        "streams": text_array([f"{{{','.join(map(str, one.streams))}}}" for one in wanted]),
        "languages": text_array([one.language for one in wanted]),
        "filters": text_array([one.filter_json for one in wanted]),
        "endpoints": int8_array([one.endpoint_id for one in wanted]),
        "suspended": int8_array([int(one.suspended) for one in wanted]),
        "groups": int8_array([one.group_id for one in wanted]),
        "reports": text_array([one.report_json for one in wanted]),
        "digests": text_array([one.digest.hex if one.digest else None for one in wanted]),
    }


def _begun(id: int, wanted: Wanted) -> expensive.Begun:
    return expensive.Begun(id, wanted.streams, wanted.expensive)


def _packed(
    connection: Connection, row_factory: BaseRowFactory[Any] = tuple_row
) -> psycopg.Cursor[Any]:
    """For statements of many rows: the server binds their parameters, arrays as they are packed."""
    cursor = psycopg.Cursor(connection, row_factory=row_factory)
    adapt(cursor)
    return cursor
