"""Registrations as matchers want them: the versions of a stream, with their bounds as that stream's
sequences. Sql module, no Django.

A version holds for the event of a sequence q if `since < q` and, if it has ended, `q <= until`. To
follow along: note the head of `system`, load the versions, then for each later `registration*.*`
event load the versions of its barrier; adding what is there already changes nothing. A version of a
group holds only while the group is not suspended: load the suspensions of the versions' groups with
them, and those of the groups of a barrier.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import psycopg

from eventhub.access.audience import may_see
from eventhub.event.envelope import Event
from eventhub.eventlog import queries
from eventhub.eventlog.system import shown_to
from registrations.filters import stored_filter
from registrations.match.matching import AUTO
from registrations.match.spec import Specs

SQL = queries.load("catalog.sql", Path(__file__).parent / "sql")

_ROWS_PER_FETCH = 2_000  # about 5 ms of the event loop

Connection = psycopg.AsyncConnection[Any]


class Version(NamedTuple):
    """One version of a registration, as one stream sees it. `id` is the matcher's id."""

    id: int
    registration: int
    client: str  # its name
    endpoint_id: int | None
    specs: Specs
    since: int  # exclusive: the stream's last sequence when the version began
    until: int | None  # inclusive; None: it has not ended
    zone: str | None = None  # on `system`: only this zone's events and the whole hub's are wanted
    suspended: bool = False  # by itself: it never holds
    group: int | None = None
    report: str | None = None  # as JSON; None: the whole event

    def holds(self, sequence: int) -> bool:
        """True if the event of that sequence lies within the bounds; its group is not asked."""
        within = self.since < sequence and (self.until is None or sequence <= self.until)
        return within and not self.suspended

    def may_tell(self, event: Event, groups: Callable[[str], frozenset[str]]) -> bool:
        """False for an event that the client, of those groups now, may not see, or of another zone.

        The groups are asked for only if the event has an audience.
        """
        if event.destinations or event.audience:
            own = groups(self.client) if event.audience else frozenset()
            if not may_see(event, self.client, own):
                return False
        return self.zone is None or shown_to(event, self.zone)


class Suspension(NamedTuple):
    """When a group matches nothing, as one stream sees it."""

    since: int  # exclusive
    until: int | None  # inclusive; None: it is not resumed

    def covers(self, sequence: int) -> bool:
        return self.since < sequence and (self.until is None or sequence <= self.until)


class Wanted(NamedTuple):
    """Which versions of a stream are loaded: see catalog.sql."""

    stream_id: int
    after: int | None = None
    barrier: int | None = None
    registrations: list[int] | None = None


class CallbackStream(NamedTuple):
    """A stream with versions that name an endpoint, and the place below which none holds."""

    stream_id: int
    segment: str  # UUID
    sequence: int


class LiveRegistration(NamedTuple):
    """A registration that has not ended, and the streams its current version names."""

    id: int
    streams: tuple[int, ...]  # ascending


async def versions_of_stream(connection: Connection, stream_id: int, after: int) -> list[Version]:
    """All versions with an endpoint that can hold for an event after that sequence."""
    return await _load(connection, Wanted(stream_id, after=after))


async def versions_of_barrier(
    connection: Connection, barrier: int, stream_id: int
) -> list[Version]:
    """The versions with an endpoint that begin or end at the barrier of a change, also those that
    never held.
    """
    return await _load(connection, Wanted(stream_id, barrier=barrier))


async def versions_of_registrations(
    connection: Connection, ids: Sequence[int], stream_id: int, after: int
) -> list[Version]:
    """The versions of some registrations that can hold for an event after that sequence, with an
    endpoint or without.
    """
    return await _load(connection, Wanted(stream_id, after=after, registrations=list(ids)))


async def suspensions_of(
    connection: Connection, groups: Iterable[int | None], stream_id: int, after: int = 0
) -> dict[int, tuple[Suspension, ...]]:
    """Of each of the groups, the suspensions that can cover an event after that sequence."""
    asked = {group for group in groups if group is not None}
    if not asked:
        return {}
    values = {"groups": list(asked), "stream_id": stream_id, "after": after}
    cursor = await connection.execute(SQL["suspensions"], values)
    found: dict[int, list[Suspension]] = {group: [] for group in asked}
    for group, since, until in await cursor.fetchall():
        found[group].append(Suspension(since, until))
    return {group: tuple(suspensions) for group, suspensions in found.items()}


async def strategy_of(connection: Connection, stream_id: int) -> str:
    """By which strategy the stream's events are matched."""
    cursor = await connection.execute(SQL["strategy"], (stream_id,))
    row = await cursor.fetchone()
    return str(row[0]) if row else AUTO


async def streams_with_callbacks(
    connection: Connection, known: Sequence[int] = ()
) -> list[CallbackStream]:
    """The streams that have, or had, versions with an endpoint, without the known ones."""
    cursor = await connection.execute(SQL["streams_with_callbacks"], {"known": list(known)})
    return [CallbackStream(*row) for row in await cursor.fetchall()]


async def live_registrations(
    connection: Connection, client_id: int, ids: Sequence[int]
) -> list[LiveRegistration]:
    """Those of the ids that are live registrations of the client, ascending."""
    values = {"client_id": client_id, "registrations": list(ids)}
    cursor = await connection.execute(SQL["live_registrations"], values)
    return [LiveRegistration(id, tuple(streams)) for id, streams in await cursor.fetchall()]


async def _load(connection: Connection, wanted: Wanted) -> list[Version]:
    """Versions, a piece at a time, so that 100,000 do not stop the event loop."""
    shared = _shared_specs()
    found: list[Version] = []
    async for row in _rows(connection, wanted):
        id, registration, client, endpoint, since, until, language, filter_json, *more = row
        specs = shared(language, filter_json)
        bounds = (since, until)
        found.append(Version(id, registration, intern(client), endpoint, specs, *bounds, *more))
    return found


async def _rows(connection: Connection, wanted: Wanted) -> AsyncIterator[tuple[Any, ...]]:
    async with connection.transaction(), connection.cursor("catalog") as cursor:
        cursor.itersize = _ROWS_PER_FETCH
        await connection.execute(SQL["roomy"])
        await cursor.execute(SQL["versions"], wanted._asdict())
        async for row in cursor:
            yield row


def _shared_specs() -> Callable[[str, str], Specs]:
    """The compiled form of stored filters, once for each."""
    specs: dict[tuple[str, str], Specs] = {}

    def shared(*key: Any) -> Specs:
        found = specs.get(key)
        if found is None:
            found = specs[key] = stored_filter(*key).specs()
        return found

    return shared
