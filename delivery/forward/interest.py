"""What one stream's events are matched against for callbacks: versions of registrations in a
matcher, each within its bounds. Plain.

Versions come and go in place (SUN-11). One that has ended stays until the stream has passed its
end, so a forwarder that lags gives what a prompt one gives.
"""

import heapq
from collections.abc import Iterable

from eventhub.event.envelope import Event
from registrations.catalog import Version
from registrations.match.alternatives import FilterMatcher
from registrations.match.strategies import new_matcher


class Interest:
    """One stream's versions with an endpoint. One task uses it; nothing in it awaits."""

    def __init__(self, passed: int) -> None:
        self.passed = passed  # the stream is matched up to this sequence
        self._matcher = FilterMatcher(new_matcher())
        self._versions: dict[int, Version] = {}
        self._ending: list[tuple[int, int]] = []  # (until, id), the earliest first

    def __len__(self) -> int:
        return len(self._versions)

    def take(self, versions: Iterable[Version]) -> None:
        """Take in versions as they are now; what is known already gets its end, if it has one."""
        for version in versions:
            if version.endpoint_id is None:
                continue
            if version.until is not None and version.until <= max(self.passed, version.since):
                self._drop(version.id)
                continue
            if version.id not in self._versions:
                self._matcher.add(version.id, version.specs)
            self._versions[version.id] = version
            if version.until is not None:
                heapq.heappush(self._ending, (version.until, version.id))

    def owed(self, event: Event, sequence: int) -> dict[int, list[int]]:
        """The endpoints that are owed an event, each with its registrations that match, ascending
        (SUN-15).
        """
        found: dict[int, list[int]] = {}
        versions = self._versions
        for number in self._matcher.match(event):
            version = versions[number]
            endpoint_id = version.endpoint_id
            held = version.holds(sequence) and version.may_tell(event)
            if held and endpoint_id is not None:
                found.setdefault(endpoint_id, []).append(version.registration)
        for registrations in found.values():
            if len(registrations) > 1:
                registrations.sort()
        return found

    def advance(self, sequence: int) -> None:
        """The stream is matched up to here: what has ended leaves."""
        self.passed = max(self.passed, sequence)
        while self._ending and self._ending[0][0] <= self.passed:
            self._drop(heapq.heappop(self._ending)[1])

    def _drop(self, number: int) -> None:
        if self._versions.pop(number, None) is not None:
            self._matcher.remove(number)
