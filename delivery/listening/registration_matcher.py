"""The matcher of some registrations in one stream, those that a listener names or those of a
session: which of them an event matches, exact to the sequence. They are a few of one client, so a
change of one reads all of them again; unchanged versions stay in the matcher. Plain module.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Protocol

from delivery.listening.protocol import MatchedRegistrations
from delivery.listening.version_loader import RegistrationSet, VersionLoader
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.event_loop import run_in_slices
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StoredEvent
from eventhub.postgresql.connections import reading
from eventhub.types.registry import ZoneHierarchy
from registrations.catalog import compiled, live_registrations
from registrations.errors import UnknownRegistration
from registrations.feed import CatalogChange, Confirmation, Feed
from registrations.filters.evaluate import no_supertypes
from registrations.filters.report import ReportTemplate, merged_report, stored_report
from registrations.matching.metrics import LISTENERS, ReportedWork
from registrations.matching.postings import SpecKeys, keys_of_specs
from registrations.matching.spec import Specs
from registrations.matching.strategies import AUTO, StreamStrategy
from registrations.matching.versions import StreamVersion, SuspensionSpan


class ListenerMatcher(Protocol):
    """The part of a matcher that a listener uses: RegistrationMatcher, or those of a session."""

    def confirm_ahead(self, through: int) -> None: ...
    async def catch_up(self, after: int, through: int) -> None: ...
    async def narrowed(self, page: list[StoredEvent]) -> list[StoredEvent]: ...
    async def learn(self, events: Sequence[Event], *, through: int) -> None: ...
    def matching(self, stored: StoredEvent) -> MatchedRegistrations: ...
    def shaped(self, stored: StoredEvent, registrations: Sequence[int]) -> StoredEvent: ...


class VersionObserver(Protocol):
    """What a matcher reports its versions to (sessions/event_routing.py)."""

    def outdated(self) -> None: ...
    def loaded(self, versions: Mapping[int, Specs], after: int) -> None: ...


class RegistrationMatcher:
    """The matcher of one listener. Call `catch_up` after reading a batch, then `matching` for each
    of its events.
    """

    def __init__(
        self,
        loader: VersionLoader,
        feed: Feed,
        registrations: RegistrationSet,
        stream_id: int,
        hierarchy: ZoneHierarchy | None = None,
    ) -> None:
        self._loader = loader
        self._confirmation = Confirmation(feed)
        self._registrations = registrations
        self._stream_id = stream_id
        self._hierarchy = hierarchy
        self._versions: dict[int, StreamVersion] = {}
        self._reporting: dict[int, list[StreamVersion]] = {}  # with a report, by registration
        self._binds = False  # whether a filter binds a variable
        self._suspensions: dict[int, tuple[SuspensionSpan, ...]] = {}  # by group
        self._matcher = StreamStrategy(AUTO, hierarchy or no_supertypes).new()
        self._matched: set[int] = set()  # ids of versions in the matcher
        self._work = ReportedWork(AUTO)
        self._stale = True
        self._loading = False
        self.observer: VersionObserver | None = None
        # the keys of all specs, if they are loaded and few; None: any event may match
        self.spec_keys: list[SpecKeys] | None = None
        self._after = 0  # versions that can apply to an event after it are loaded

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        loader: VersionLoader,
        feed: Feed,
        registrations: RegistrationSet,
        stream_id: int,
        hierarchy: ZoneHierarchy | None = None,
    ) -> AsyncIterator["RegistrationMatcher"]:
        """Keep a matcher current until the block ends. `hierarchy` has the types of the events that
        `matching` gets.
        """
        matcher = cls(loader, feed, registrations, stream_id, hierarchy)
        feed.policy_listeners.add(matcher._policy_changed)
        try:
            with registrations.subscription(feed, matcher._catalog_changed):
                yield matcher
        finally:
            feed.policy_listeners.discard(matcher._policy_changed)
            matcher._publish_work()

    def confirm_ahead(self, through: int) -> None:
        """Begin what `catch_up` waits for, for the events up to a sequence that the stream has."""
        self._confirmation.begin(through)

    async def catch_up(self, after: int, through: int) -> None:
        """Apply every change that concerns the events after a sequence, up to another one.

        Raises DatabaseUnavailable, and UnknownRegistration when all registrations ended before.
        """
        await self._confirmation.wait(through)
        await self.apply(after)
        ends = [version.until for version in self._versions.values()]
        if all(end is not None and end <= after for end in ends):
            raise UnknownRegistration("The registrations of this listener have ended.")

    async def apply(self, after: int) -> None:
        """Apply the changes that the feed has reported, for events after a sequence. Raises
        DatabaseUnavailable.
        """
        if not self.is_current(after):
            await self._load(after)

    def is_current(self, after: int) -> bool:
        """Return whether `apply` has nothing to do."""
        return not self._stale and after >= self._after

    async def narrowed(self, page: list[StoredEvent]) -> list[StoredEvent]:
        """Return the events of a page to evaluate: all."""
        return page

    async def learn(self, events: Sequence[Event], *, through: int) -> None:
        """Load the declared types of events (ZoneHierarchy.learn). Raises DatabaseUnavailable."""
        if self._hierarchy is not None:
            await self._hierarchy.learn(events, through=through)

    def matching(self, stored: StoredEvent) -> MatchedRegistrations:
        """Return the registrations that the event matches, and the variables that they bind. The
        listener checks before whether the client may see the event.
        """
        return self.holding(stored, self._matcher.match(stored.event))

    def holding(self, stored: StoredEvent, versions: Iterable[int]) -> MatchedRegistrations:
        """Return what `matching` does for an event that matches these versions, by id; those of
        other matchers do not count.
        """
        found = (self._versions[id] for id in versions if id in self._versions)
        held = [version for version in found if self._holds(version, stored.sequence)]
        ids = sorted({version.registration for version in held})
        if not self._binds:
            return MatchedRegistrations(ids)
        bound = {one.registration: one.variable for one in held if one.variable is not None}
        return MatchedRegistrations(ids, bound)

    def shaped(self, stored: StoredEvent, registrations: Sequence[int]) -> StoredEvent:
        """Return what is delivered of an event that matches these registrations: the event, or what
        their reports derive from it (OIF-06).
        """
        if not self._reporting:
            return stored
        return reported(stored, self.reports(stored, registrations))

    @property
    def has_reports(self) -> bool:
        """Whether a registration has a report."""
        return bool(self._reporting)

    def reports(
        self, stored: StoredEvent, registrations: Sequence[int]
    ) -> list[ReportTemplate | None]:
        """Return the report of each of these registrations for an event; None: the whole event."""
        return [self._report(id, stored.sequence) for id in registrations]

    def _report(self, registration: int, sequence: int) -> ReportTemplate | None:
        for version in self._reporting.get(registration, ()):
            if version.report is not None and version.holds(sequence):
                return stored_report(version.report)
        return None

    def _holds(self, version: StreamVersion, sequence: int) -> bool:
        if version.group is None or not version.holds(sequence):
            return version.holds(sequence)
        return not any(each.covers(sequence) for each in self._suspensions[version.group])

    def _catalog_changed(self, change: CatalogChange | None) -> None:
        if change is not None and change.group is not None:
            if self._loading or change.group in self._suspensions:
                self._set_stale()
        else:
            self._set_stale()

    def _policy_changed(self) -> None:
        self._set_stale()

    def _set_stale(self) -> None:
        self._stale = True
        if self.observer is not None:
            self.observer.outdated()

    def _switch(self, strategy: str) -> None:
        """Switch to an empty matcher of another strategy."""
        self._publish_work()
        self._matcher, self._work = (
            StreamStrategy(strategy, self._hierarchy or no_supertypes).new(),
            ReportedWork(strategy),
        )
        self._matched = set()

    def _update(self, versions: Mapping[int, StreamVersion]) -> Iterator[None]:
        """Bring the matcher to these versions, one per step. A version changes only by its end, so
        present ones stay; after an interruption the next call continues.
        """
        living = {id for id, version in versions.items() if not version.suspended}
        for id in self._matched - living:
            self._matcher.remove(id)
            self._matched.discard(id)
            yield
        for id in living - self._matched:
            self._matcher.add(id, versions[id].specs)
            self._matched.add(id)
            yield

    def _publish_work(self) -> None:
        self._work.report(LISTENERS, self._matcher.counters)

    async def _load(self, after: int) -> None:
        """Build apart, then swap; a change received meanwhile makes it stale again."""
        self._stale = False
        self._loading = True
        try:
            await self._build(after)
        except BaseException:
            self._set_stale()
            raise
        finally:
            self._loading = False
        if self.observer is not None and not self._stale:
            matched = {id: self._versions[id].specs for id in self._matched}
            self.observer.loaded(matched, after)

    async def _build(self, after: int) -> None:
        written, suspensions, strategy = await self._loader.load(
            self._registrations, self._stream_id, after
        )
        versions = await compiled(written, self._versions)
        if strategy != self._work.strategy:
            self._switch(strategy)
        by_id = {version.id: version for version in versions}
        await run_in_slices(self._update(by_id))
        self._suspensions, self._versions, self._after = suspensions, by_id, after
        self._binds = any(version.variable is not None for version in versions)
        specs = (spec for version in versions for spec in version.specs)
        some = list(islice(specs, limits.SPECS_NARROWING_MAX + 1))
        self.spec_keys = keys_of_specs(some) if len(some) <= limits.SPECS_NARROWING_MAX else None
        self._reporting = {}
        for version in versions:
            if version.report is not None:
                self._reporting.setdefault(version.registration, []).append(version)


def reported(stored: StoredEvent, reports: Iterable[ReportTemplate | None]) -> StoredEvent:
    """Return the event that these reports derive together; the event itself if one is whole."""
    report = merged_report(reports)
    return stored if report is None else stored.derived(report.derive(stored.event))


async def require_own(
    hub_log: Log, principal: Principal, ids: Sequence[int], stream_id: int
) -> None:
    """Raise UnknownRegistration unless all are live registrations of the client that name the
    stream.
    """
    async with reading(hub_log.pool) as connection:
        live = await live_registrations(connection, principal.client_id, ids)
    named = {found.id for found in live if stream_id in found.streams}
    for id in ids:
        if id not in named:
            raise UnknownRegistration(field="registrations", registration=id)
