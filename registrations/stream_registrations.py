"""Loads some registrations in one stream: those that listeners name, and those of sessions and
session groups. SQL module.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.connections import PLANNED_ONCE, Connection
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.catalog import SQL as CATALOG
from registrations.catalog import (
    GroupSuspension,
    SessionOwner,
    StoredVersion,
    read_versions,
    spans_of,
)
from registrations.matching.strategies import AUTO
from registrations.matching.versions import SuspensionSpan

_FILE = "registrations/sql/stream_registrations.sql"
_OWNED = {"owned": queries.load(_FILE)["owned"]}
_IDS = "ARRAY(" + queries.load(_FILE, _OWNED)["ids"] + ")"
_GROUPS = "ARRAY(" + queries.load(_FILE, {"ids": _IDS})["groups"] + ")"
_PARTS = {"ids": _IDS, "groups": _GROUPS}
SQL = queries.load(_FILE, _PARTS)
_SUSPENSIONS = queries.load("registrations/sql/catalog.sql", _PARTS)["suspensions"]


class _Owned(NamedTuple):
    """A registration of a session or session group."""

    session_id: int | None
    session_group_id: int | None
    registration_id: int


class _GroupParent(NamedTuple):
    group_id: int
    parent_id: int


class StreamRegistrations(NamedTuple):
    """Registrations in a stream: their versions, the suspensions of their groups as of
    `suspensions_of`, the parents of the groups that have one, the strategy by which the stream's
    events are matched, and the registrations of the owners, live or ended.
    """

    written: list[StoredVersion]
    suspensions: dict[int, tuple[SuspensionSpan, ...]]
    parents: dict[int, int]
    strategy: str
    owned: dict[SessionOwner, list[int]]


async def registrations_in_stream(
    connection: Connection,
    ids: Sequence[int],
    owners: Sequence[SessionOwner],
    stream_id: int,
    after: int,
) -> StreamRegistrations:
    """Return registrations in a stream, those with these ids and those of these owners: their
    versions that can apply to an event after that sequence, with an endpoint or without, and what
    else decides on their matches. Those of a few are read in one round trip: many sessions return
    at once.
    """
    most = limits.VERSIONS_READ_AT_ONCE_MAX
    values = {
        "registrations": list(ids),
        "sessions": [one.session for one in owners if one.session is not None],
        "session_groups": [one.session_group for one in owners if one.session_group is not None],
        "stream_id": stream_id,
        "after": after,
        "versions_max": most + 1,
    }
    found = await _read(connection, values, None)
    if len(found.written) <= most:
        return found
    # again, before the rest
    every = await read_versions(connection, SQL["versions"], {**values, "versions_max": None})
    return await _read(connection, values, every)


async def _read(
    connection: Connection, values: Mapping[str, Any], written: list[StoredVersion] | None
) -> StreamRegistrations:
    """Read in one round trip, and the versions too unless they are given."""
    owned, versions = cursor_of(connection, _Owned), cursor_of(connection, StoredVersion)
    suspensions = cursor_of(connection, GroupSuspension)
    parents, strategy = cursor_of(connection, _GroupParent), scalars(connection)
    async with connection.pipeline():
        await connection.execute(PLANNED_ONCE, prepare=True)
        await owned.execute(SQL["owned"], values, prepare=True)
        if written is None:
            await versions.execute(SQL["versions"], values, prepare=True)
        # later than the versions, whose groups are thus found
        await suspensions.execute(_SUSPENSIONS, values, prepare=True)
        await parents.execute(SQL["parents"], values, prepare=True)
        await strategy.execute(CATALOG["strategy"], (values["stream_id"],), prepare=True)
    of_owners: dict[SessionOwner, list[int]] = {}
    for row in await owned.fetchall():
        owner = SessionOwner(row.session_id, row.session_group_id)
        of_owners.setdefault(owner, []).append(row.registration_id)
    return StreamRegistrations(
        await versions.fetchall() if written is None else written,
        spans_of((), await suspensions.fetchall()),
        dict(await parents.fetchall()),
        await strategy.fetchone() or AUTO,
        of_owners,
    )
