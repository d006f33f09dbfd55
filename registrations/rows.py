"""Registrations as rows: sessions, versions and barriers, in the caller's transaction. Sql module.

The one order of locks: client, session, registration, endpoint, head of `system`, heads of streams
ascending. Nothing is announced and nothing is checked here.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub.eventlog import queries
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import lock_system
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


class Wanted(NamedTuple):
    """The first version of a new registration."""

    streams: tuple[int, ...]
    language: str
    filter_json: str
    endpoint_id: int | None


class Belonging(NamedTuple):
    """Whose a registration is."""

    zone_id: int
    client_id: int
    session_id: int


class NewVersion(NamedTuple):
    """What a registration asks for from the barrier on."""

    number: int
    wanted: Wanted
    barrier: int


class Search(NamedTuple):
    """Which registrations of a zone are listed; None: all. `patterns` and `system`: of which
    streams alone (owners.Heard).
    """

    zone_id: int
    client_id: int | None = None
    endpoint_id: int | None = None
    stream_id: int | None = None
    patterns: list[str] | None = None
    system: bool = True


def lock_session(connection: Connection, client_id: int) -> Session | None:
    """The client's session `default`, made if there is none; None if the client has ended."""
    if connection.execute(SQL["lock_client"], (client_id,)).fetchone() is None:
        return None
    found = connection.execute(SQL["lock_session"], (client_id,)).fetchone()
    if found is None:
        connection.execute(SQL["add_session"], (client_id,))
        found = connection.execute(SQL["lock_session"], (client_id,)).fetchone()
    return Session(*found) if found else None


def count_session(connection: Connection, session_id: int, change: int) -> None:
    """So many live registrations more, or fewer."""
    connection.execute(SQL["count_session"], (change, session_id))


def streams_by_name(connection: Connection, zone_id: int, names: Iterable[str]) -> dict[str, int]:
    """The ids of those streams of the zone that there are; `system` is in every zone."""
    return dict(connection.execute(SQL["streams_by_name"], (zone_id, list(names))).fetchall())


def stream_names(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    return dict(connection.execute(SQL["stream_names"], (list(ids),)).fetchall())


def transient_streams(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Those of the streams that are in memory only, for good."""
    return {id for [id] in connection.execute(SQL["transient_streams"], (list(ids),)).fetchall()}


def new_barrier(connection: Connection) -> int:
    """The id of a barrier to be raised in this transaction; rows may refer to it at once."""
    return _number(connection, "new_barrier", ())


def raise_barrier(connection: Connection, barrier: int, stream_ids: Iterable[int]) -> Vector:
    """Hold the heads of `system` and of the streams to the end of the transaction, and fill the
    barrier with them. Only `announce` comes after it.
    """
    with connection.pipeline():
        lock_system(connection)
        values = {"barrier": barrier, "streams": sorted(stream_ids)}
        cursor = connection.execute(SQL["raise_barrier"], values)
    row = cursor.fetchone()
    if row is None:
        raise RuntimeError("the barrier was not made in this transaction")
    return {id: Cursor(*place) for id, *place in zip(*map(_list, row), strict=True)}


def insert(
    connection: Connection, whose: Belonging, barrier: int, wanted: Sequence[Wanted]
) -> list[int]:
    """New registrations; their ids, ascending in the order given."""
    values = {
        **whose._asdict(),
        "barrier": barrier,
        "languages": [one.language for one in wanted],
        "streams": [f"{{{','.join(map(str, one.streams))}}}" for one in wanted],
        "filters": [one.filter_json for one in wanted],
        "endpoints": [one.endpoint_id for one in wanted],
    }
    return [id for [id] in connection.execute(SQL["insert_registrations"], values).fetchall()]


def owner_of(connection: Connection, zone_id: int, client_id: int | None, registration: int) -> int:
    """The client of a live registration of the zone, and of the client if one is given; else
    UnknownRegistration.
    """
    values = {"id": registration, "zone_id": zone_id, "client_id": client_id}
    found = connection.execute(SQL["owner"], values).fetchone()
    if found is None:
        raise UnknownRegistration(field="registration")
    return int(found[0])


def lock_registration(connection: Connection, registration: int) -> Registration:
    """The live registration, so that nobody else changes it; UnknownRegistration if it ended."""
    connection.execute(SQL["lock_registration"], (registration,))
    found = show(connection, [registration])  # a statement of its own, after the lock
    if not found:
        raise UnknownRegistration(field="registration")
    return found[0]


def end_version(connection: Connection, registration: int, barrier: int) -> None:
    connection.execute(SQL["end_version"], (barrier, registration))


def add_version(connection: Connection, registration: int, version: NewVersion) -> None:
    """The next version of a registration whose current one has ended."""
    streams, language, filter_json, endpoint_id = version.wanted
    values = {
        "registration": registration,
        "number": version.number,
        "streams": list(streams),
        "language": language,
        "filter": filter_json,
        "endpoint": endpoint_id,
        "barrier": version.barrier,
    }
    connection.execute(SQL["insert_version"], values)


def end(connection: Connection, registration: int) -> None:
    connection.execute(SQL["end_registration"], (registration,))


def end_of_client(connection: Connection, client_id: int, barrier: int) -> tuple[int, list[int]]:
    """End all registrations of a client whose session is locked: how many, and their streams."""
    ended = connection.execute(SQL["end_registrations_of_client"], (client_id,)).rowcount
    values = {"client_id": client_id, "barrier": barrier}
    row = connection.execute(SQL["end_versions_of_client"], values).fetchone()
    return ended, list(row[0]) if row else []


def search(connection: Connection, wanted: Search, after: int, count: int) -> list[Registration]:
    """At most so many registrations by id, from the one after `after` on."""
    values = {**wanted._asdict(), "after": after, "count": count}
    return _found(connection.execute(SQL["list_registrations"], values).fetchall())


def show(connection: Connection, ids: Sequence[int]) -> list[Registration]:
    """Those of the ids that are live, by id."""
    return _found(connection.execute(SQL["show_registrations"], (list(ids),)).fetchall())


def vectors(connection: Connection, registrations: Sequence[Registration]) -> dict[int, Vector]:
    """By barrier, the places from which the registrations hold on their streams."""
    barriers = {one.barrier for one in registrations}
    streams = {id for one in registrations for id in one.streams}
    found: dict[int, Vector] = {barrier: {} for barrier in barriers}
    rows = connection.execute(SQL["barrier_places"], (list(barriers), list(streams))).fetchall()
    for barrier, stream_id, segment, sequence in rows:
        found[barrier][stream_id] = Cursor(segment, sequence)
    return found


def _found(rows: Iterable[tuple[Any, ...]]) -> list[Registration]:
    found = [Registration(*row) for row in rows]
    return [one._replace(streams=tuple(one.streams)) for one in found]


def _list(value: Any) -> list[Any]:
    return value or []


def _number(connection: Connection, query: str, values: tuple[Any, ...]) -> int:
    row = connection.execute(SQL[query], values).fetchone()
    if row is None:
        raise RuntimeError(f"{query} gave nothing")
    return int(row[0])
