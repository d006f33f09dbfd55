"""Loads the versions of registrations that listeners name, or that sessions have: those of many at
once, because thousands connect after a restart. Plain module.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.grouped_calls import GroupedCalls
from eventhub.eventlog.log import Log
from eventhub.postgresql.connections import Connection, reading
from registrations.catalog import SessionOwner, StoredVersion
from registrations.feed import Feed, Listener
from registrations.matching.versions import SuspensionSpan
from registrations.stream_registrations import registrations_in_stream


class RegistrationSet(NamedTuple):
    """Registrations by id, or all of a session or session group."""

    ids: tuple[int, ...] = ()
    owner: SessionOwner | None = None

    def subscription(self, feed: Feed, listener: Listener) -> AbstractContextManager[None]:
        """Notify a listener of their changes, until the end of the block."""
        if self.owner is not None:
            return feed.owner_subscription([self.owner], listener)
        return feed.subscription(self.ids, listener)


class LoadedVersions(NamedTuple):
    """The versions of some registrations in a stream, the suspensions of their groups (and of the
    parents of these) by group, and the strategy by which the stream's events are matched.
    """

    written: list[StoredVersion]
    suspensions: dict[int, tuple[SuspensionSpan, ...]]
    strategy: str


class _MatcherLoad(NamedTuple):
    registrations: RegistrationSet
    stream_id: int
    after: int


class VersionLoader:
    """The versions of registrations, for the matchers of one process."""

    def __init__(self, hub_log: Log) -> None:
        self._log = hub_log
        self._calls = GroupedCalls(self._load, limits.VERSION_LOADS_PER_GROUP_MAX)

    async def load(
        self, registrations: RegistrationSet, stream_id: int, after: int
    ) -> LoadedVersions:
        """Return all versions that can apply to an event after a sequence; some of them may have
        ended before. Raises DatabaseUnavailable.
        """
        return await self._calls.submit(_MatcherLoad(registrations, stream_id, after))

    async def _load(self, requests: Sequence[_MatcherLoad]) -> list[LoadedVersions]:
        found: dict[_MatcherLoad, LoadedVersions] = {}
        by_stream = attrgetter("stream_id")
        async with reading(self._log.pool) as connection:
            for stream_id, group in groupby(sorted(requests, key=by_stream), by_stream):
                found |= await _of_stream(connection, stream_id, {*group})
        # the callers of equal requests change their lists
        return [found[one]._replace(written=[*found[one].written]) for one in requests]


async def _of_stream(
    connection: Connection, stream_id: int, requests: Collection[_MatcherLoad]
) -> dict[_MatcherLoad, LoadedVersions]:
    """Return the versions in one stream, of the registrations of each request."""
    after = min(request.after for request in requests)
    ids = sorted({id for request in requests for id in request.registrations.ids})
    owners = [one.registrations.owner for one in requests if one.registrations.owner is not None]
    read = await registrations_in_stream(connection, ids, owners, stream_id, after)
    written, suspensions, parents, strategy, owned = read
    by_registration: dict[int, list[StoredVersion]] = {}
    for version in written:
        by_registration.setdefault(version.registration, []).append(version)
    found = {}
    for request in requests:
        named, owner = request.registrations
        registrations = {*named, *(owned.get(owner, ()) if owner is not None else ())}
        own = [one for id in registrations for one in by_registration.get(id, ())]
        related = {group for one in own for group in (one.group, parents.get(one.group or 0))}
        spans = {id: suspensions.get(id, ()) for id in related if id is not None}
        found[request] = LoadedVersions(own, spans, strategy)
    return found
