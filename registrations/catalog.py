"""Registrations as matchers want them: the versions of a stream, with their bounds as that stream's
sequences. SQL module.

A version holds for the event of a sequence q if `since < q` and, if it has ended, `q <= until`. To
follow along: note the head of `system`, load the versions, then for each later `registration*.*`
event load the versions of its barrier; adding what is there already changes nothing. A version of a
group holds only while the group is not suspended: load the suspensions of the versions' groups with
them, and those of the groups of a barrier.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any, NamedTuple

import psycopg

from eventhub.base.time_slices import run_in_slices
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, named, scalars, tuples_of
from registrations.compiled import COMPILED_FILTERS
from registrations.match_index.epochs.facts import Facts, Moment
from registrations.matching.spec import Specs
from registrations.matching.stream_matcher import AUTO
from registrations.matching.versions import StreamVersion, SuspensionSpan

SQL = queries.load("registrations/sql/catalog.sql")

_ROWS_PER_FETCH = 2_000  # some ms of the event loop

Connection = psycopg.AsyncConnection[Any]


class Written(NamedTuple):
    """A row of the tables: a version with its filter as it was written."""

    id: int
    registration: int
    client: str
    endpoint_id: int | None
    since: int
    until: int | None
    language: str
    filter_json: str
    zone: str | None
    suspended: bool
    group: int | None
    report: str | None
    client_id: int

    def version(self, specs: Specs) -> StreamVersion:
        return StreamVersion(
            self.id,
            self.registration,
            intern(self.client),
            self.endpoint_id,
            specs,
            self.since,
            self.until,
            self.zone,
            self.suspended,
            self.group,
            self.report,
        )


class Wanted(NamedTuple):
    """Which versions of a stream are loaded: see catalog.sql."""

    stream_id: int
    after: int | None = None
    registrations: list[int] | None = None


class Changed(NamedTuple):
    """Which changed versions of a stream are loaded, at some barriers or since a snapshot, and
    which besides: see catalog.sql.
    """

    stream_id: int
    barriers: list[int] | None = None
    xmin: str | None = None
    others: list[int] | None = None


class CallbackStream(NamedTuple):
    """A stream with versions that name an endpoint, and the place below which none holds."""

    stream_id: int
    segment: str  # UUID
    sequence: int


class LiveRegistration(NamedTuple):
    """A registration that has not ended, and the streams its current version names."""

    id: int
    streams: tuple[int, ...]  # ascending


class _Ended(NamedTuple):
    """A version that ended, and where."""

    id: int
    until: int


class _Client(NamedTuple):
    id: int
    name: str


class _OfGroup(NamedTuple):
    """When a group is suspended."""

    group_id: int
    suspension: SuspensionSpan


async def versions_of_stream(connection: Connection, stream_id: int, after: int) -> list[Written]:
    """All versions with an endpoint that can hold for an event after that sequence."""
    return await _read(connection, Wanted(stream_id, after=after))


async def versions_of_barriers(
    connection: Connection, barriers: Sequence[int], stream_id: int
) -> list[Written]:
    """The versions with an endpoint that begin or end at the barriers of changes, also those that
    never held.
    """
    return await _read(connection, Changed(stream_id, barriers=list(barriers)))


async def versions_since(connection: Connection, facts: Facts) -> list[Written]:
    """What an epoch of a stream's index does not stand for as it is now: the versions that began or
    ended since its snapshot, and those that it could not hold. Some may be as they were.
    """
    changed = Changed(facts.stream, xmin=str(facts.xmin), others=list(facts.refused))
    return await _read(connection, changed)


async def ended_since(connection: Connection, facts: Facts) -> dict[int, int]:
    """The versions that ended since an epoch's snapshot, or that may have, and where."""
    values = {"stream_id": facts.stream, "xmin": str(facts.xmin)}
    cursor = await tuples_of(connection, _Ended).execute(SQL["ended_since"], values)
    found: dict[int, int] = {}
    while piece := await cursor.fetchmany(_ROWS_PER_FETCH):
        found.update(piece)
        await asyncio.sleep(0)
    return found


async def moment_of(connection: Connection, stream_id: int) -> Moment | None:
    """The stream in the snapshot of this transaction; None if there is none of the number."""
    query = cursor_of(connection, Moment)
    return await (await query.execute(SQL["moment"], (stream_id,))).fetchone()


async def client_names(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    cursor = await cursor_of(connection, _Client).execute(SQL["client_names"], (list(ids),))
    return {row.id: intern(row.name) for row in await cursor.fetchall()}


async def versions_of_registrations(
    connection: Connection, ids: Sequence[int], stream_id: int, after: int
) -> list[Written]:
    """The versions of some registrations that can hold for an event after that sequence, with an
    endpoint or without.
    """
    return await _read(connection, Wanted(stream_id, after=after, registrations=list(ids)))


async def compiled(
    written: list[Written], known: Mapping[int, StreamVersion] | None = None
) -> list[StreamVersion]:
    """What was read, as matchers want it; `known` versions are not compiled again. It may take
    long, in turns of the event loop: let go of the connection before. `written` is emptied.
    """
    found: list[StreamVersion] = []
    await run_in_slices(_compile(written, known or {}, found))
    return found


async def suspensions_of(
    connection: Connection, groups: Iterable[int | None], stream_id: int, after: int = 0
) -> dict[int, tuple[SuspensionSpan, ...]]:
    """Of each of the groups, the suspensions that can cover an event after that sequence."""
    asked = {group for group in groups if group is not None}
    if not asked:
        return {}
    values = {"groups": list(asked), "stream_id": stream_id, "after": after}
    cursor = await cursor_of(connection, _OfGroup).execute(SQL["suspensions"], values)
    found: dict[int, list[SuspensionSpan]] = {group: [] for group in asked}
    for row in await cursor.fetchall():
        found[row.group_id].append(row.suspension)
    return {group: tuple(suspensions) for group, suspensions in found.items()}


async def strategy_of(connection: Connection, stream_id: int) -> str:
    """By which strategy the stream's events are matched."""
    found = await scalars(connection).execute(SQL["strategy"], (stream_id,))
    return await found.fetchone() or AUTO


async def streams_with_callbacks(
    connection: Connection, known: Sequence[int] = (), xmin: str | None = None
) -> list[CallbackStream]:
    """The streams that have, or had, versions with an endpoint, without the known ones; with `xmin`
    those that may have got one since `oldest_transaction` gave it.
    """
    values = {"known": list(known), "xmin": xmin}
    found = await cursor_of(connection, CallbackStream).execute(
        SQL["streams_with_callbacks"], values
    )
    return await found.fetchall()


async def oldest_transaction(connection: Connection) -> str:
    """The oldest that may still change something now."""
    return await (await scalars(connection).execute(SQL["xmin"])).fetchone() or "0"


async def live_registrations(
    connection: Connection, client_id: int, ids: Sequence[int]
) -> list[LiveRegistration]:
    """Those of the ids that are live registrations of the client, ascending."""
    values = {"client_id": client_id, "registrations": list(ids)}
    found = await cursor_of(connection, LiveRegistration).execute(SQL["live_registrations"], values)
    return [row._replace(streams=tuple(row.streams)) for row in await found.fetchall()]


def _compile(
    written: list[Written], known: Mapping[int, StreamVersion], found: list[StreamVersion]
) -> Iterator[None]:
    """A version at each step. Equal filters of a stream are compiled once, however many they
    are.
    """
    specs: dict[tuple[str, str], Specs] = {}
    written.reverse()
    while written:
        one = written.pop()
        before = known.get(one.id)
        key = one.language, one.filter_json
        shared = specs.get(key) if before is None else before.specs
        if shared is None:
            shared = specs[key] = COMPILED_FILTERS.specs(*key)
        found.append(one.version(shared))
        yield


async def _read(connection: Connection, wanted: Wanted | Changed) -> list[Written]:
    """A piece at a time, so that 100,000 do not stop the event loop."""
    async with (
        connection.transaction(),
        connection.cursor("catalog", row_factory=named(Written)) as cursor,
    ):
        cursor.itersize = _ROWS_PER_FETCH
        await connection.execute(SQL["roomy"])
        is_all = isinstance(wanted, Wanted)
        await cursor.execute(SQL["versions" if is_all else "versions_changed"], wanted._asdict())
        return [row async for row in cursor]
