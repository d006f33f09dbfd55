"""The registrations that one listen names: which of them an event matches, exact to the sequence.

Plain but for asking the catalogue through the log's pool. A few registrations of one client: every
change of one of them loads them anew, but for the filters that are known.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from eventhub.access.principal import Principal
from eventhub.eventlog.database import reading
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Stored
from registrations.catalog import (
    compiled,
    live_registrations,
    strategy_of,
    suspensions_of,
    versions_of_registrations,
)
from registrations.errors import UnknownRegistration
from registrations.feed import Change, Feed
from registrations.lang.evaluate import Kin, only_itself
from registrations.lang.report import Report, stored_report, together
from registrations.match.alternatives import FilterMatcher
from registrations.match.matching import AUTO, Matching
from registrations.match.versions import Suspension, Version
from registrations.match.work import Work
from registrations.turns import in_turns

_LISTENS = "listens"  # all of them: one stream of the metrics


class Interest:
    """Call `catch_up` after reading a batch, and then `matching` for each of its events."""

    def __init__(
        self, hub_log: Log, feed: Feed, ids: Sequence[int], stream_id: int, kin: Kin = only_itself
    ) -> None:
        self._log = hub_log
        self._feed = feed
        self._ids = frozenset(ids)
        self._stream_id = stream_id
        self._kin = kin
        self._versions: dict[int, Version] = {}
        self._reporting: dict[int, list[Version]] = {}  # those with a report, by registration
        self._suspensions: dict[int, tuple[Suspension, ...]] = {}  # by group
        self._matcher = Matching(AUTO, self._kin).new()
        self._work = Work(AUTO)
        self._stale = True
        self._loading = False

    @classmethod
    @asynccontextmanager
    async def open(
        cls, hub_log: Log, feed: Feed, ids: Sequence[int], stream_id: int, kin: Kin = only_itself
    ) -> AsyncIterator["Interest"]:
        """Kept current until the block is left. `kin` knows the types of what `matching` gets."""
        interest = cls(hub_log, feed, ids, stream_id, kin)
        feed.policies.add(interest._heard_policy)
        try:
            with feed.told_of(ids, interest._heard):
                yield interest
        finally:
            feed.policies.discard(interest._heard_policy)
            interest._tell_work()

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
        """The registrations that the event matches, ascending. Whether the client may see it is the
        listen's to say, before.
        """
        found = (self._versions[id] for id in self._matcher.match(stored.event))
        held = (version for version in found if self._holds(version, stored.sequence))
        return sorted({version.registration for version in held})

    def shaped(self, stored: Stored, registrations: Sequence[int]) -> Stored:
        """What is told of an event that matches those: it, or what their reports derive from it
        (OIF-06).
        """
        if not self._reporting:
            return stored
        report = together(self._report(id, stored.sequence) for id in registrations)
        return stored if report is None else stored.derived(report.derive(stored.event))

    def _report(self, registration: int, sequence: int) -> Report | None:
        for version in self._reporting.get(registration, ()):
            if version.report is not None and version.holds(sequence):
                return stored_report(version.report)
        return None

    def _holds(self, version: Version, sequence: int) -> bool:
        if version.group is None or not version.holds(sequence):
            return version.holds(sequence)
        return not any(each.covers(sequence) for each in self._suspensions[version.group])

    def _heard(self, change: Change | None) -> None:
        if change is not None and change.group is not None:
            self._stale |= self._loading or change.group in self._suspensions
        else:
            self._stale = True

    def _heard_policy(self) -> None:
        self._stale = True

    def _tell_work(self) -> None:
        self._work.tell(_LISTENS, self._matcher.counters)

    async def _load(self, after: int) -> None:
        """Build aside, then swap: a change that is heard meanwhile makes it stale again."""
        self._stale = False
        self._loading = True
        try:
            await self._build(after)
        except BaseException:
            self._stale = True
            raise
        finally:
            self._loading = False

    async def _build(self, after: int) -> None:
        async with reading(self._log.pool) as connection:
            written = await versions_of_registrations(
                connection, list(self._ids), self._stream_id, after
            )
            groups = (one.group for one in written)
            suspensions = await suspensions_of(connection, groups, self._stream_id, after)
            strategy = await strategy_of(connection, self._stream_id)
        versions = await compiled(written, self._versions)
        matcher = Matching(strategy, self._kin).new()
        await in_turns(_fill(matcher, versions))
        self._tell_work()
        self._suspensions, self._work = suspensions, Work(strategy)
        self._versions, self._matcher = {version.id: version for version in versions}, matcher
        self._reporting = {}
        for version in versions:
            if version.report is not None:
                self._reporting.setdefault(version.registration, []).append(version)


def _fill(matcher: FilterMatcher, versions: Sequence[Version]) -> Iterator[None]:
    """One at each step."""
    for version in versions:
        if not version.suspended:
            matcher.add(version.id, version.specs)
        yield


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
