"""Failing endpoints as this worker knows them: from its scans, and from attempts whose results are
not written yet. Plain module.

The rows of `backoffs` are authoritative for all workers. This module covers the time until they are
written, and saves reading them for endpoints that answer well.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from delivery.callbacks.claims import FailureState
from eventhub.base import limits

# Outcomes that say nothing about the endpoint: the event could not be read.
INCONCLUSIVE = frozenset({"unreadable"})


class EndpointFailures:
    """The failing endpoints of one dispatcher."""

    def __init__(self) -> None:
        self._failing: dict[int, FailureState] = {}
        self._unwritten: Counter[int] = Counter()  # failures since the last success

    def record_scan(self, scanned: Mapping[int, FailureState | None]) -> None:
        """Record what a scan found of the endpoints that it passed."""
        if len(self._failing) > limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
            self._failing.clear()
        for endpoint_id, failing in scanned.items():
            if failing is not None:
                self._failing[endpoint_id] = failing
            else:
                self._failing.pop(endpoint_id, None)

    def record_attempt(self, endpoint_id: int, outcome: str) -> None:
        """Record the outcome of an attempt whose result is not written yet."""
        if outcome == "delivered":
            self._unwritten.pop(endpoint_id, None)
        elif outcome not in INCONCLUSIVE:
            self._unwritten[endpoint_id] += 1

    def record_written(self, failures: Mapping[int, int], answering: Iterable[int]) -> None:
        """Record that failures were written, and which endpoints have recovered."""
        for endpoint_id, count in failures.items():
            remaining = self._unwritten.get(endpoint_id, 0) - count
            if remaining > 0:
                self._unwritten[endpoint_id] = remaining
            else:
                self._unwritten.pop(endpoint_id, None)
            before = self._failing.get(endpoint_id, FailureState(0, False, False))
            self._failing[endpoint_id] = before._replace(failures=before.failures + count)
        for endpoint_id in answering:
            self._failing.pop(endpoint_id, None)

    def is_known_to_fail(self, endpoint_id: int) -> bool:
        """Return True if `backoffs` may have a row of the endpoint."""
        return endpoint_id in self._failing

    def backs_off(self, endpoint_id: int) -> bool:
        """Return True if the endpoint may only be called with one request, a probe."""
        failing = self._failing.get(endpoint_id)
        return failing is not None and failing.backs_off

    def spares(self, endpoint_id: int) -> bool:
        """Return True if a failed attempt does not count."""
        failing = self._failing.get(endpoint_id)
        return failing is not None and failing.spares

    def limit_to_callable(self, granted: Mapping[int, int]) -> dict[int, int]:
        """Return the granted slots, limited to what may be called now."""
        return {
            each: allowed
            for each, count in granted.items()
            if (allowed := self._allowed(each, count))
        }

    def _allowed(self, endpoint_id: int, count: int) -> int:
        failing = self._failing.get(endpoint_id)
        failures = self._unwritten.get(endpoint_id, 0)
        if failing is not None:
            if failing.backs_off:
                return 1 if not failures else 0
            failures += failing.failures
        return count if failures < limits.CALLBACK_FAILURES_MIN else 0
