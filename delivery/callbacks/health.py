"""Which endpoints fail, as far as this worker knows: from its scans, and from tries whose results
are not written yet. Plain module.

The rows of `backoffs` decide for all workers; this bridges the moment until they are written, and
spares endpoints that answer well any look at them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from delivery.callbacks.claims import Failing
from eventhub.base import limits

# A try that says nothing of the endpoint: the event cannot be read just now.
SILENT = frozenset({"unreadable"})


class Health:
    """The endpoints of one drain."""

    def __init__(self) -> None:
        self._failing: dict[int, Failing] = {}
        self._unwritten: Counter[int] = Counter()  # failures since the last delivery was taken

    def saw(self, found: Mapping[int, Failing | None]) -> None:
        """What a scan found of all endpoints that it met."""
        if len(self._failing) > limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
            self._failing.clear()
        for endpoint_id, failing in found.items():
            if failing is not None:
                self._failing[endpoint_id] = failing
            else:
                self._failing.pop(endpoint_id, None)

    def ended(self, endpoint_id: int, outcome: str) -> None:
        """A try is over; its result is still to be written."""
        if outcome == "delivered":
            self._unwritten.pop(endpoint_id, None)
        elif outcome not in SILENT:
            self._unwritten[endpoint_id] += 1

    def noted(self, failures: Mapping[int, int], answering: Iterable[int]) -> None:
        """So many failures are written, and that these endpoints answer: theirs do not count."""
        for endpoint_id, count in failures.items():
            left = self._unwritten.get(endpoint_id, 0) - count
            if left > 0:
                self._unwritten[endpoint_id] = left
            else:
                self._unwritten.pop(endpoint_id, None)
            before = self._failing.get(endpoint_id, Failing(0, False, False))
            self._failing[endpoint_id] = before._replace(failures=before.failures + count)
        for endpoint_id in answering:
            self._failing.pop(endpoint_id, None)

    def is_known_to_fail(self, endpoint_id: int) -> bool:
        """True if there may be a row of it."""
        return endpoint_id in self._failing

    def backs_off(self, endpoint_id: int) -> bool:
        """True if it may be called with one request, which is to be taken before."""
        failing = self._failing.get(endpoint_id)
        return failing is not None and failing.backs_off

    def spares(self, endpoint_id: int) -> bool:
        """True if a try that fails does not count."""
        failing = self._failing.get(endpoint_id)
        return failing is not None and failing.spares

    def bounded(self, granted: Mapping[int, int]) -> dict[int, int]:
        """What was granted to endpoints, as far as they may be called now."""
        return {each: room for each, count in granted.items() if (room := self._room(each, count))}

    def _room(self, endpoint_id: int, count: int) -> int:
        failing = self._failing.get(endpoint_id)
        failures = self._unwritten.get(endpoint_id, 0)
        if failing is not None:
            if failing.backs_off:
                return 1 if not failures else 0
            failures += failing.failures
        return count if failures < limits.CALLBACK_FAILURES_MIN else 0
