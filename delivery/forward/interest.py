"""What one stream's events are matched against for callbacks: versions of registrations, each
within its bounds. Plain module.

Most may be in an epoch of the stream's match index (`based.py`); what it does not have is in a
matcher. Versions come and go in place (SUN-11). One that has ended stays until the stream has
passed its end, so a forwarder that lags gives what a prompt one gives; and so it is with the
suspensions of groups, which are asked for each match.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from delivery.forward.indexed import Based
from eventhub.event.envelope import Event
from registrations.match_index.format.errors import IndexDamaged
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.matcher import Counters, summed
from registrations.matching.metrics import ReportedWork
from registrations.matching.stream_matcher import Matching
from registrations.matching.versions import (
    GroupsOf,
    HoldRules,
    Recipients,
    StreamVersion,
    SuspensionSpan,
    add_versions,
)

_PIECE = 20  # versions taken into another matcher, or out of one, at a step: about 0.5 ms


class Sizes(NamedTuple):
    """How many versions an interest has, and where."""

    base: int  # in the epoch
    delta: int  # in memory
    ended: int  # of those in the epoch, since it was built


def _in_none(client: str) -> frozenset[str]:
    """Where no client is in a group."""
    return frozenset()


class Interest:
    """One stream's versions with an endpoint. One task uses it; nothing in it awaits.

    A version never changes but by getting its end, so it may come from the epoch or from memory;
    what is in the epoch is not in memory. `damaged`: the epoch turned out to be, and the interest
    is of no use any more.
    """

    def __init__(
        self, passed: int, matching: Matching | None = None, groups_of: GroupsOf = _in_none
    ) -> None:
        self.passed = passed  # the stream is matched up to this sequence
        self.matching = matching or Matching()
        self.based: Based | None = None  # set while it is empty, and by `swap`
        self.damaged = False
        self._matcher = self.matching.new()
        self._spent = Counters()
        self._work = ReportedWork(self.matching.strategy)
        self._versions: dict[int, StreamVersion] = {}  # in memory
        self._ends: dict[int, int] = {}  # of versions in the epoch that got one since: inclusive
        self._ending: list[tuple[int, int]] = []  # (until, id) in memory, the earliest first
        self._suspensions: dict[int, tuple[SuspensionSpan, ...]] = {}  # by group
        self._groups_of = groups_of
        self._watched: dict[int, int | None] | None = None  # what changes; by version, its end

    def __len__(self) -> int:
        return len(self._versions) + (0 if self.based is None else len(self.based))

    @property
    def sizes(self) -> Sizes:
        base = 0 if self.based is None else len(self.based)
        return Sizes(base, len(self._versions), len(self._ends))

    @property
    def counters(self) -> Counters:
        """All work so far."""
        engines = () if self.based is None else self.based.engines
        parts = [self._spent, self._matcher.counters, *(engine.counters for engine in engines)]
        return summed(parts)

    def take(self, versions: Iterable[StreamVersion]) -> None:
        """Take in versions as they are now; what is known already gets its end, if it has one.
        Raises IndexDamaged.
        """
        for version in versions:
            if version.endpoint_id is None or version.suspended:
                continue
            if self._watched is not None:
                self._watched[version.id] = version.until
            if self.based is not None and self._is_in(self.based, version.id):
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
        """Know of some groups when they are suspended; what was known of them is forgotten."""
        for group, found in suspensions.items():
            if found:
                self._suspensions[group] = found
            else:
                self._suspensions.pop(group, None)

    def owed(self, event: Event, sequence: int) -> Recipients:
        """The endpoints that are owed an event, each with its registrations that match, ascending
        (SUN-15); and whose reports shape what they are told (OIF-06). Raises IndexDamaged.
        """
        owed = Recipients({}, {})
        if self._versions:
            self._find(event, sequence, owed)
        if self.based is not None:
            try:
                self.based.find(event, sequence, self._rules, owed)
            except IndexDamaged:
                self.damaged = True
                raise
        owed.sort()
        return owed

    def advance(self, sequence: int) -> None:
        """The stream is matched up to here: what has ended leaves the memory. In an epoch its
        bounds keep it from being found, until the next one comes without it.
        """
        self.passed = max(self.passed, sequence)
        while self._ending and self._ending[0][0] <= self.passed:
            self._drop(heapq.heappop(self._ending)[1])

    def rebuild(self, matching: Matching) -> Iterator[None]:
        """Put all versions into a matcher of another strategy, a piece at each step, while this one
        goes on; after the last step it stands in its place. Over an epoch only another strategy
        that takes one.
        """
        if self.based is None:
            self.watch()
            yield from self._remake(_Made(matching.new(), None), {})
        self.matching, self._work = matching, ReportedWork(matching.strategy, self.counters)

    def watch(self) -> None:
        """Note what changes from here on, for the `swap` that comes; `unwatch` if none does."""
        self._watched = {}

    def unwatch(self) -> None:
        self._watched = None

    def swap(self, based: Based, ended: Mapping[int, int]) -> Iterator[None]:
        """Take a newer epoch, a piece of the work at each step. Since `watch` was called, `ended`
        was read: the versions that ended since the epoch was built. Who has passed such an end does
        not know of it any more.
        """
        yield from self._remake(_Made(self.matching.new(), based), ended)

    def tell_work(self, stream: str) -> None:
        """Add to the metrics what the matcher has done since the last time."""
        self._work.report(stream, self.counters)

    @property
    def _rules(self) -> HoldRules:
        return HoldRules(self._ends, self._suspensions, self._groups_of)

    def _find(self, event: Event, sequence: int, owed: Recipients) -> None:
        """The versions in memory that match and hold."""
        versions = self._versions
        found = [versions[number] for number in self._matcher.match(event)]
        add_versions(found, event, sequence, self._rules, owed)

    def _remake(self, made: "_Made", ended: Mapping[int, int]) -> Iterator[None]:
        """Another matcher for what an epoch does not have, made beside; both are taken at once,
        between two steps; then the old one is emptied in pieces, because to let go of a million
        versions takes long.
        """
        try:
            for piece in _pieces(ended):
                for number in piece:
                    made.end(number, ended[number])
                yield
            for piece in _pieces(self._versions):
                for number in piece:
                    made.follow(number, self._versions.get(number))
                yield
            while len(self._watched or ()) > _PIECE:
                watched, self._watched = self._watched or {}, {}
                for piece in _pieces(watched):
                    made.note({number: watched[number] for number in piece}, self._versions)
                    yield
            made.note(self._watched or {}, self._versions)
        finally:
            self.unwatch()
        before, versions = self._matcher, self._versions
        self._spent = self.counters
        self._spent.rebuilds += 1
        self._matcher, self._versions = made.matcher, made.kept
        self.based, self._ends = made.based, made.ends
        self.damaged = False
        for piece in _pieces(versions):
            for number in piece:
                before.remove(number)
                del versions[number]
            yield

    def _is_in(self, based: Based, version: int) -> bool:
        try:
            return version in based
        except IndexDamaged:
            self.damaged = True
            raise

    def _drop(self, number: int) -> None:
        version = self._versions.pop(number, None)
        if version is not None:
            self._matcher.remove(number)
            if self._watched is not None:
                self._watched.setdefault(number, version.until)


class _Made:
    """A matcher that is made beside the present one, for what an epoch does not have. `ends`: of
    versions that it has, and that ended since.
    """

    def __init__(self, matcher: FilterMatcher, based: Based | None) -> None:
        self.matcher = matcher
        self.based = based
        self.kept: dict[int, StreamVersion] = {}
        self.ends: dict[int, int] = {}

    def follow(self, number: int, version: StreamVersion | None) -> None:
        """A version as it is now; None: it is gone."""
        if version is not None and not self._is_based(number):
            if number not in self.kept:
                self.matcher.add(number, version.specs)
            self.kept[number] = version
        elif self.kept.pop(number, None) is not None:
            self.matcher.remove(number)

    def note(
        self, watched: Mapping[int, int | None], versions: Mapping[int, StreamVersion]
    ) -> None:
        """What has changed of some versions, and their ends."""
        for number, until in watched.items():
            self.follow(number, versions.get(number))
            self.end(number, until)

    def end(self, number: int, until: int | None) -> None:
        """What a version was told to have as its end."""
        if until is not None and self._is_based(number):
            self.ends[number] = until

    def _is_based(self, number: int) -> bool:
        return self.based is not None and number in self.based


def _pieces(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Of those that are there now."""
    there = list(numbers)
    return (there[at : at + _PIECE] for at in range(0, len(there), _PIECE))
