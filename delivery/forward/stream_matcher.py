"""The callback interest of one stream: the versions of registrations that its events are matched
with, each within its bounds. Plain module.

Most versions may be in an epoch of the stream's match index (`indexed.py`); the others are in a
matcher in memory. Versions are added and removed in place (SUN-11). A version that has ended stays
until the stream has passed its end, so a lagging forwarder gives the same result as a prompt one.
The same holds for suspensions of groups, which are checked at every match.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from delivery.forward.indexed import IndexedVersions
from eventhub.event.envelope import Event
from registrations.match_index.format.errors import IndexDamaged
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.matcher import Counters, summed
from registrations.matching.metrics import ReportedWork
from registrations.matching.strategies import StreamStrategy
from registrations.matching.versions import (
    EffectRules,
    GroupsOf,
    Recipients,
    StreamVersion,
    SuspensionSpan,
    add_versions,
)

_STEP_VERSIONS = 20  # versions added to a matcher, or removed, in one step: about 0.5 ms


class Sizes(NamedTuple):
    """The number of versions of an interest, by location."""

    base: int  # in the epoch
    delta: int  # in memory
    ended: int  # of those in the epoch: ended since it was built


def _no_groups(client: str) -> frozenset[str]:
    """Return no groups, for a hub in which no client has any."""
    return frozenset()


class CallbackMatcher:
    """The versions of one stream that have an endpoint. Used by one task; nothing in it awaits.

    The only change of a version is that it gets an end, so it may be read from the epoch or from
    memory; a version in the epoch is not in memory. `damaged`: the epoch is damaged, and the
    interest must be loaded again.
    """

    def __init__(
        self, passed: int, matching: StreamStrategy | None = None, groups_of: GroupsOf = _no_groups
    ) -> None:
        self.passed = passed  # the stream is matched up to this sequence
        self.matching = matching or StreamStrategy()
        self.indexed: IndexedVersions | None = None  # set while it is empty, and by `swap`
        self.damaged = False
        self._matcher = self.matching.new()
        self._past_work = Counters()
        self._work = ReportedWork(self.matching.strategy)
        self._versions: dict[int, StreamVersion] = {}  # in memory
        self._ends: dict[int, int] = {}  # inclusive ends of versions in the epoch that ended since
        self._ending: list[tuple[int, int]] = []  # (until, id) in memory, the earliest first
        self._suspensions: dict[int, tuple[SuspensionSpan, ...]] = {}  # by group
        self._groups_of = groups_of
        self._changed_versions: dict[int, int | None] | None = (
            None  # recorded changes: version -> its end
        )

    def __len__(self) -> int:
        return len(self._versions) + (0 if self.indexed is None else len(self.indexed))

    @property
    def sizes(self) -> Sizes:
        base = 0 if self.indexed is None else len(self.indexed)
        return Sizes(base, len(self._versions), len(self._ends))

    @property
    def counters(self) -> Counters:
        """The work done so far."""
        engines = () if self.indexed is None else self.indexed.engines
        parts = [self._past_work, self._matcher.counters, *(engine.counters for engine in engines)]
        return summed(parts)

    def take(self, versions: Iterable[StreamVersion]) -> None:
        """Add versions; a known version gets its end, if it has one. Raises IndexDamaged."""
        for version in versions:
            if version.endpoint_id is None or version.suspended:
                continue
            if self._changed_versions is not None:
                self._changed_versions[version.id] = version.until
            if self.indexed is not None and self._is_in(self.indexed, version.id):
                if version.until is not None:
                    self._ends[version.id] = version.until
                continue
            if version.until is not None and version.until <= max(self.passed, version.since):
                self._drop(version.id)
                continue
            if version.id not in self._versions:
                self._matcher.add(version.id, version.specs)
            self._versions[version.id] = version
            if version.until is not None:
                heapq.heappush(self._ending, (version.until, version.id))

    def suspend(self, suspensions: Mapping[int, tuple[SuspensionSpan, ...]]) -> None:
        """Replace the suspensions of some groups."""
        for group, found in suspensions.items():
            if found:
                self._suspensions[group] = found
            else:
                self._suspensions.pop(group, None)

    def match(self, event: Event, sequence: int) -> Recipients:
        """Return the endpoints that an event is delivered to, each with its matching registrations,
        ascending (SUN-15), and the versions whose reports and variables count. Raises IndexDamaged.
        """
        match = Recipients({}, {}, set())
        if self._versions:
            self._find(event, sequence, match)
        if self.indexed is not None:
            try:
                self.indexed.find(event, sequence, self._rules, match)
            except IndexDamaged:
                self.damaged = True
                raise
        match.sort()
        return match

    def advance(self, sequence: int) -> None:
        """Record that the stream is matched up to a sequence: versions that ended before it leave
        the memory. In an epoch their bounds exclude them until the next epoch comes without them.
        """
        self.passed = max(self.passed, sequence)
        while self._ending and self._ending[0][0] <= self.passed:
            self._drop(heapq.heappop(self._ending)[1])

    def rebuild(self, matching: StreamStrategy) -> Iterator[None]:
        """Move all versions into a matcher of another strategy, some at each step, while the
        present one stays in use; the last step swaps them. With an epoch only a strategy that
        supports an index is allowed.
        """
        if self.indexed is None:
            self.record_changes()
            yield from self._replace_matcher(_NextMatcher(matching.new(), None), {})
        self.matching, self._work = matching, ReportedWork(matching.strategy, self.counters)

    def record_changes(self) -> None:
        """Record changes from now on, for a following `swap` or `discard_changes`."""
        self._changed_versions = {}

    def discard_changes(self) -> None:
        self._changed_versions = None

    def swap(self, indexed: IndexedVersions, ended: Mapping[int, int]) -> Iterator[None]:
        """Switch to a newer epoch, with some of the work at each step. `ended` are the versions
        that ended since the epoch was built, read after `record_changes`. An interest that has
        passed such an end no longer knows of it.
        """
        yield from self._replace_matcher(_NextMatcher(self.matching.new(), indexed), ended)

    def report_work(self, stream: str) -> None:
        """Add the work since the last call to the metrics."""
        self._work.report(stream, self.counters)

    @property
    def _rules(self) -> EffectRules:
        return EffectRules(self._ends, self._suspensions, self._groups_of)

    def _find(self, event: Event, sequence: int, match: Recipients) -> None:
        """Add the versions in memory that match and are in force."""
        versions = self._versions
        found = [versions[number] for number in self._matcher.match(event)]
        add_versions(found, event, sequence, self._rules, match)

    def _replace_matcher(
        self, upcoming: "_NextMatcher", ended: Mapping[int, int]
    ) -> Iterator[None]:
        """Build a second matcher for the versions that an epoch does not have, and swap both
        between two steps. Then empty the old one step by step, because releasing a million versions
        takes long.
        """
        try:
            for step in _steps(ended):
                for number in step:
                    upcoming.end(number, ended[number])
                yield
            for step in _steps(self._versions):
                for number in step:
                    upcoming.follow(number, self._versions.get(number))
                yield
            while len(self._changed_versions or ()) > _STEP_VERSIONS:
                changed, self._changed_versions = self._changed_versions or {}, {}
                for step in _steps(changed):
                    upcoming.note({number: changed[number] for number in step}, self._versions)
                    yield
            upcoming.note(self._changed_versions or {}, self._versions)
        finally:
            self.discard_changes()
        before, versions = self._matcher, self._versions
        self._past_work = self.counters
        self._past_work.rebuilds += 1
        self._matcher, self._versions = upcoming.matcher, upcoming.versions
        self.indexed, self._ends = upcoming.indexed, upcoming.ends
        self.damaged = False
        for step in _steps(versions):
            for number in step:
                before.remove(number)
                del versions[number]
            yield

    def _is_in(self, indexed: IndexedVersions, version: int) -> bool:
        try:
            return version in indexed
        except IndexDamaged:
            self.damaged = True
            raise

    def _drop(self, number: int) -> None:
        version = self._versions.pop(number, None)
        if version is not None:
            self._matcher.remove(number)
            if self._changed_versions is not None:
                self._changed_versions.setdefault(number, version.until)


class _NextMatcher:
    """A matcher under construction, for the versions that an epoch does not have. `ends`: the ends
    of versions in the epoch that ended since it was built.
    """

    def __init__(self, matcher: FilterMatcher, indexed: IndexedVersions | None) -> None:
        self.matcher = matcher
        self.indexed = indexed
        self.versions: dict[int, StreamVersion] = {}
        self.ends: dict[int, int] = {}

    def follow(self, number: int, version: StreamVersion | None) -> None:
        """Apply the present form of a version; None: it was removed."""
        if version is not None and not self._is_indexed(number):
            if number not in self.versions:
                self.matcher.add(number, version.specs)
            self.versions[number] = version
        elif self.versions.pop(number, None) is not None:
            self.matcher.remove(number)

    def note(
        self, changed: Mapping[int, int | None], versions: Mapping[int, StreamVersion]
    ) -> None:
        """Apply the recorded changes of versions and their ends."""
        for number, until in changed.items():
            self.follow(number, versions.get(number))
            self.end(number, until)

    def end(self, number: int, until: int | None) -> None:
        """Record the end of a version that is in the epoch."""
        if until is not None and self._is_indexed(number):
            self.ends[number] = until

    def _is_indexed(self, number: int) -> bool:
        return self.indexed is not None and number in self.indexed


def _steps(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Return the numbers in groups, one for each step."""
    there = list(numbers)
    return (there[at : at + _STEP_VERSIONS] for at in range(0, len(there), _STEP_VERSIONS))
