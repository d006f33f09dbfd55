"""The registrations that one listen names: which of them an event matches, exact to the sequence.

Plain but for asking the catalogue through the log's pool. A few registrations of one client: every
change loads them anew.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from eventhub.access.principal import Principal
from eventhub.eventlog.database import reading
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Stored
from registrations.catalog import Version, live_registrations, versions_of_registrations
from registrations.errors import UnknownRegistration
from registrations.feed import Change, Feed
from registrations.match.alternatives import FilterMatcher
from registrations.match.strategies import new_matcher


class Interest:
    """Call `catch_up` after reading a batch, and then `matching` for each of its events."""

    def __init__(self, hub_log: Log, feed: Feed, ids: Sequence[int], stream_id: int) -> None:
        self._log = hub_log
        self._feed = feed
        self._ids = frozenset(ids)
        self._stream_id = stream_id
        self._versions: dict[int, Version] = {}
        self._matcher = FilterMatcher(new_matcher())
        self._stale = True

    @classmethod
    @asynccontextmanager
    async def open(
        cls, hub_log: Log, feed: Feed, ids: Sequence[int], stream_id: int
    ) -> AsyncIterator["Interest"]:
        """Kept current until the block is left."""
        interest = cls(hub_log, feed, ids, stream_id)
        feed.listeners.add(interest._heard)
        try:
            yield interest
        finally:
            feed.listeners.discard(interest._heard)

    async def catch_up(self, after: int) -> None:
        """Know every change up to now, for events after a sequence.

        Raises DatabaseUnavailable, and UnknownRegistration when all of them have ended before.
        """
        await self._feed.confirm()
        if self._stale:
            await self._load(after)
        ends = [version.until for version in self._versions.values()]
        if all(end is not None and end <= after for end in ends):
            raise UnknownRegistration("The registrations of this listen have ended.")

    def matching(self, stored: Stored) -> list[int]:
        """The registrations that the event matches, ascending."""
        found = (self._versions[id] for id in self._matcher.match(stored.event))
        held = (v for v in found if v.holds(stored.sequence) and v.may_tell(stored.event))
        return sorted({version.registration for version in held})

    def _heard(self, change: Change | None) -> None:
        if change is None or change.registration is None or change.registration in self._ids:
            self._stale = True

    async def _load(self, after: int) -> None:
        """Build aside, then swap: a change that is heard meanwhile makes it stale again."""
        self._stale = False
        try:
            async with reading(self._log.pool) as connection:
                versions = await versions_of_registrations(
                    connection, list(self._ids), self._stream_id, after
                )
        except BaseException:
            self._stale = True
            raise
        matcher = FilterMatcher(new_matcher())
        for version in versions:
            matcher.add(version.id, version.specs)
        self._versions, self._matcher = {version.id: version for version in versions}, matcher


async def require_own(
    hub_log: Log, principal: Principal, ids: Sequence[int], stream_id: int
) -> None:
    """UnknownRegistration unless all are live registrations of the caller's client that name the
    stream.
    """
    async with reading(hub_log.pool) as connection:
        live = await live_registrations(connection, principal.client_id, ids)
    named = {found.id for found in live if stream_id in found.streams}
    for id in ids:
        if id not in named:
            raise UnknownRegistration(field="registrations", registration=id)
