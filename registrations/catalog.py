"""Loads registrations for matchers: the versions of a stream, with their bounds as sequences of
that stream. SQL module.

A version applies to the event with sequence q if `since < q` and, if the version has ended, `q <=
until`. To keep a matcher current: read the head of `system`, load the versions, then for each later
`registration*.*` event load the versions of its barrier; adding a version twice changes nothing. A
version in a group applies only while the group is not suspended: load the suspensions of the groups
together with the versions, and again for the groups of a barrier.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any, LiteralString, NamedTuple

import psycopg

from eventhub.base.event_loop import run_in_slices
from eventhub.postgresql import queries
from eventhub.postgresql.rows import (
    fetch_all,
    fetch_one,
    fetch_value,
    named,
    tuples_of,
)
from registrations.compiled_filter_cache import COMPILED_FILTERS
from registrations.match_index.epochs.facts import EpochFacts, StreamSnapshot
from registrations.matching.spec import Specs
from registrations.matching.versions import StreamVersion, SuspensionSpan

SQL = queries.load("registrations/sql/catalog.sql", {"groups": "%(groups)s::bigint[]"})
_ROWS_PER_FETCH = 2_000  # take some ms of the event loop

Connection = psycopg.AsyncConnection[Any]


class StoredVersion(NamedTuple):
    """A row of the tables: a version with its filter as the client wrote it."""

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
    variable: str | None
    client_id: int

    def version(self, specs: Specs) -> StreamVersion:
        """Return the version for matchers, with its compiled filter."""
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
            self.variable,
        )


class VersionQuery(NamedTuple):
    """The conditions of loading versions of a stream: see `versions` in catalog.sql."""

    stream_id: int
    after: int | None = None


class ChangedVersionQuery(NamedTuple):
    """The conditions of loading changed versions of a stream: at some barriers or since a snapshot,
    and other versions by id. See `versions_changed` in catalog.sql.
    """

    stream_id: int
    barriers: list[int] | None = None
    xmin: str | None = None
    others: list[int] | None = None


class CallbackStream(NamedTuple):
    """A stream with versions that name an endpoint, and the position below which none applies."""

    stream_id: int
    segment: str  # UUID
    sequence: int


class LiveRegistration(NamedTuple):
    """A registration that has not ended, and the streams that its current version names."""

    id: int
    streams: tuple[int, ...]  # ascending


class SessionOwner(NamedTuple):
    """The owner of registrations: a session of a client, or a session group."""

    session: int | None
    session_group: int | None = None


class _EndedVersion(NamedTuple):
    """An ended version, and the last sequence that it applies to."""

    id: int
    until: int


class _ClientName(NamedTuple):
    id: int
    name: str


class GroupSuspension(NamedTuple):
    """A suspension of a group, or that there is none that counts: `since` is None."""

    group_id: int
    since: int | None
    until: int | None


async def versions_of_stream(
    connection: Connection, stream_id: int, after: int
) -> list[StoredVersion]:
    """Return all versions with an endpoint that can apply to an event after that sequence."""
    query = VersionQuery(stream_id, after=after)
    return await read_versions(connection, SQL["versions"], query._asdict())


async def versions_of_barriers(
    connection: Connection, barriers: Sequence[int], stream_id: int
) -> list[StoredVersion]:
    """Return the versions with an endpoint that begin or end at the barriers, including versions
    that never applied to an event.
    """
    query = ChangedVersionQuery(stream_id, barriers=list(barriers))
    return await read_versions(connection, SQL["versions_changed"], query._asdict())


async def versions_since(connection: Connection, facts: EpochFacts) -> list[StoredVersion]:
    """Return the versions that an epoch of a stream's index misses: those that began or ended since
    its snapshot, and those that it could not hold. Some of them may be unchanged.
    """
    changed = ChangedVersionQuery(facts.stream, xmin=str(facts.xmin), others=list(facts.refused))
    return await read_versions(connection, SQL["versions_changed"], changed._asdict())


async def ended_since(connection: Connection, facts: EpochFacts) -> dict[int, int]:
    """Return the versions that ended, or may have ended, since an epoch's snapshot, with the last
    sequence that each applies to.
    """
    values = {"stream_id": facts.stream, "xmin": str(facts.xmin)}
    cursor = await tuples_of(connection, _EndedVersion).execute(SQL["ended_since"], values)
    found: dict[int, int] = {}
    while rows := await cursor.fetchmany(_ROWS_PER_FETCH):
        found.update(rows)
        await asyncio.sleep(0)
    return found


async def stream_snapshot(connection: Connection, stream_id: int) -> StreamSnapshot | None:
    """Return the state of the stream in the snapshot of this transaction; None if it is unknown."""
    return await fetch_one(connection, StreamSnapshot, SQL["moment"], (stream_id,))


async def client_names(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    rows = await fetch_all(connection, _ClientName, SQL["client_names"], (list(ids),))
    return {row.id: intern(row.name) for row in rows}


async def compiled(
    written: list[StoredVersion], known: Mapping[int, StreamVersion] | None = None
) -> list[StreamVersion]:
    """Compile stored versions, except `known` ones, and empty the list `written`. It may take long,
    in time slices of the event loop: release the connection before.
    """
    found: list[StreamVersion] = []
    await run_in_slices(_compile(written, known or {}, found))
    return found


async def suspensions_of(
    connection: Connection, groups: Iterable[int | None], stream_id: int, after: int = 0
) -> dict[int, tuple[SuspensionSpan, ...]]:
    """Return, by group, the suspensions that can cover an event after that sequence: its own and
    those of its parent. The parents of the groups are also in the result.
    """
    ids = {group for group in groups if group is not None}
    if not ids:
        return {}
    values = {"groups": list(ids), "stream_id": stream_id, "after": after}
    return spans_of(ids, await fetch_all(connection, GroupSuspension, SQL["suspensions"], values))


def spans_of(
    groups: Iterable[int], rows: Iterable[GroupSuspension]
) -> dict[int, tuple[SuspensionSpan, ...]]:
    found: dict[int, list[SuspensionSpan]] = {group: [] for group in groups}
    for row in rows:
        spans = found.setdefault(row.group_id, [])
        if row.since is not None:
            spans.append(SuspensionSpan(row.since, row.until))
    return {group: tuple(suspensions) for group, suspensions in found.items()}


async def streams_with_callbacks(
    connection: Connection, known: Sequence[int] = (), xmin: str | None = None
) -> list[CallbackStream]:
    """Return the streams that have or had versions with an endpoint, except the known ones. With
    `xmin`, return only those that may have got one since `oldest_transaction` returned that value.
    """
    values = {"known": list(known), "xmin": xmin}
    return await fetch_all(connection, CallbackStream, SQL["streams_with_callbacks"], values)


async def oldest_transaction(connection: Connection) -> str:
    """Return the id of the oldest transaction that may still be open."""
    return await fetch_value(connection, SQL["xmin"]) or "0"


async def live_registrations(
    connection: Connection, client_id: int, ids: Sequence[int]
) -> list[LiveRegistration]:
    """Return the live registrations of the client among the ids, ascending."""
    values = {"client_id": client_id, "registrations": list(ids)}
    found = await fetch_all(connection, LiveRegistration, SQL["live_registrations"], values)
    return [row._replace(streams=tuple(row.streams)) for row in found]


def _compile(
    written: list[StoredVersion], known: Mapping[int, StreamVersion], found: list[StreamVersion]
) -> Iterator[None]:
    """Compile one version at each step. Equal filters of a stream are compiled once."""
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


async def read_versions(
    connection: Connection, statement: LiteralString, values: Mapping[str, Any]
) -> list[StoredVersion]:
    """Fetch versions in batches, so that 100,000 of them do not block the event loop."""
    async with (
        connection.transaction(),
        connection.cursor("catalog", row_factory=named(StoredVersion)) as cursor,
    ):
        cursor.itersize = _ROWS_PER_FETCH
        await connection.execute(SQL["raise_work_mem"])
        await cursor.execute(statement, values)
        return [row async for row in cursor]
