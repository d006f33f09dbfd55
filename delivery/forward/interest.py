"""What one stream's events are matched against for callbacks: versions of registrations in a
matcher, each within its bounds. Plain.

Versions come and go in place (SUN-11). One that has ended stays until the stream has passed its
end, so a forwarder that lags gives what a prompt one gives; and so it is with the suspensions of
groups, which are asked for each match.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping

from eventhub.event.envelope import Event
from registrations.catalog import Suspension, Version
from registrations.match.matching import Matching
from registrations.match.work import Work

GroupsOf = Callable[[str], frozenset[str]]  # a client's, by its name
_PIECE = 500  # versions taken into another matcher without a pause: about 5 ms


def _in_none(client: str) -> frozenset[str]:
    """Where no client is in a group."""
    return frozenset()


class Interest:
    """One stream's versions with an endpoint. One task uses it; nothing in it awaits. `index`: what
    is to be built anew beside it whenever it is due, if its strategy has one.
    """

    def __init__(
        self, passed: int, matching: Matching | None = None, groups_of: GroupsOf = _in_none
    ) -> None:
        self.passed = passed  # the stream is matched up to this sequence
        self.matching = matching or Matching()
        self._matcher, self.index = self.matching.owned()
        self._work = Work(self.matching.strategy)
        self._versions: dict[int, Version] = {}
        self._ending: list[tuple[int, int]] = []  # (until, id), the earliest first
        self._suspensions: dict[int, tuple[Suspension, ...]] = {}  # by group
        self._groups_of = groups_of
        self._reports: dict[int, set[int]] = {}  # versions with a report, by registration

    def __len__(self) -> int:
        return len(self._versions)

    def take(self, versions: Iterable[Version]) -> None:
        """Take in versions as they are now; what is known already gets its end, if it has one."""
        for version in versions:
            if version.endpoint_id is None or version.suspended:
                continue
            if version.until is not None and version.until <= max(self.passed, version.since):
                self._drop(version.id)
                continue
            if version.id not in self._versions:
                self._matcher.add(version.id, version.specs)
            self._versions[version.id] = version
            if version.report is not None:
                self._reports.setdefault(version.registration, set()).add(version.id)
            if version.until is not None:
                heapq.heappush(self._ending, (version.until, version.id))

    def suspend(self, suspensions: Mapping[int, tuple[Suspension, ...]]) -> None:
        """Know of some groups when they are suspended; what was known of them is forgotten."""
        for group, found in suspensions.items():
            if found:
                self._suspensions[group] = found
            else:
                self._suspensions.pop(group, None)

    def owed(self, event: Event, sequence: int) -> dict[int, list[int]]:
        """The endpoints that are owed an event, each with its registrations that match, ascending
        (SUN-15).
        """
        found: dict[int, list[int]] = {}
        versions = self._versions
        for number in self._matcher.match(event):
            version = versions[number]
            endpoint_id = version.endpoint_id
            held = version.holds(sequence) and version.may_tell(event, self._groups_of)
            if held and self._suspensions and self._covered(version, sequence):
                continue
            if held and endpoint_id is not None:
                found.setdefault(endpoint_id, []).append(version.registration)
        for registrations in found.values():
            if len(registrations) > 1:
                registrations.sort()
        return found

    def shapes(self, owed: Mapping[int, list[int]], sequence: int) -> dict[int, list[int]]:
        """Of an event's endpoints those that are told a derived event (OIF-06), each with the
        versions whose reports say which; an endpoint with a registration without a report gets the
        whole event.
        """
        if not self._reports:
            return {}
        found = {endpoint: self._reporting(each, sequence) for endpoint, each in owed.items()}
        return {endpoint: versions for endpoint, versions in found.items() if versions}

    def _reporting(self, registrations: list[int], sequence: int) -> list[int]:
        """The versions of the registrations at a sequence; empty unless all have a report."""
        versions: list[int] = []
        for registration in registrations:
            known = self._reports.get(registration, ())
            held = next((id for id in known if self._versions[id].holds(sequence)), None)
            if held is None:
                return []
            versions.append(held)
        return versions

    def advance(self, sequence: int) -> None:
        """The stream is matched up to here: what has ended leaves."""
        self.passed = max(self.passed, sequence)
        while self._ending and self._ending[0][0] <= self.passed:
            self._drop(heapq.heappop(self._ending)[1])

    def rebuild(self, matching: Matching) -> Iterator[None]:
        """Put all versions into another matcher, a piece at each step, while this one goes on;
        after the last step it stands in its place.
        """
        matcher, index = matching.owned()
        taken: set[int] = set()
        for at, (number, version) in enumerate(list(self._versions.items()), 1):
            matcher.add(number, version.specs)
            taken.add(number)
            if at % _PIECE == 0:
                yield
        for number in taken - self._versions.keys():
            matcher.remove(number)
        for number in self._versions.keys() - taken:
            matcher.add(number, self._versions[number].specs)
        self._matcher, self.index = matcher, index
        self.matching, self._work = matching, Work(matching.strategy)

    def tell_work(self, stream: str) -> None:
        """Add to the metrics what the matcher has done since the last time."""
        self._work.tell(stream, self._matcher.counters)

    def _covered(self, version: Version, sequence: int) -> bool:
        if version.group is None:
            return False
        suspensions = self._suspensions.get(version.group, ())
        return any(each.covers(sequence) for each in suspensions)

    def _drop(self, number: int) -> None:
        version = self._versions.pop(number, None)
        if version is None:
            return
        self._matcher.remove(number)
        if version.report is not None:
            known = self._reports[version.registration]
            known.discard(number)
            if not known:
                del self._reports[version.registration]
