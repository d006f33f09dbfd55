"""Failing endpoints as this worker knows them: from its scans, and from attempts whose results are
not written yet. Plain module.

The rows of `circuits` are authoritative for all workers. This module covers the time until they are
written, and saves reading them for endpoints that answer well.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from delivery.callbacks.claims import FailureState
from delivery.callbacks.retry import AttemptOutcome
from eventhub.base import limits

# Outcomes that say nothing about the endpoint: the event could not be read.
INCONCLUSIVE = frozenset({"unreadable"})


def weight(status: int | None, retry_after_s: float | None) -> int:
    """Return how many failures in a row a failed attempt counts as: a 429 with a Retry-After asks
    for a pause of the whole endpoint, and opens its circuit at once.
    """
    return limits.CALLBACK_CIRCUIT_FAILURES if status == 429 and retry_after_s else 1


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

    def record_attempt(self, endpoint_id: int, outcome: AttemptOutcome) -> None:
        """Record the outcome of an attempt whose result is not written yet."""
        if outcome.code == "delivered":
            self._unwritten.pop(endpoint_id, None)
        elif outcome.code not in INCONCLUSIVE:
            self._unwritten[endpoint_id] += weight(outcome.status, outcome.retry_after_s)

    def record_written(self, failures: Mapping[int, int], answering: Iterable[int]) -> None:
        """Record that failures were written, and which endpoints have recovered."""
        for endpoint_id, count in failures.items():
            remaining = self._unwritten.get(endpoint_id, 0) - count
            if remaining > 0:
                self._unwritten[endpoint_id] = remaining
            else:
                self._unwritten.pop(endpoint_id, None)
            before = self._failing.get(endpoint_id, FailureState(0, False))
            self._failing[endpoint_id] = before._replace(failures=before.failures + count)
        for endpoint_id in answering:
            self._failing.pop(endpoint_id, None)

    def is_known_to_fail(self, endpoint_id: int) -> bool:
        """Return True if the endpoint may have failures in a row of `circuits`."""
        return endpoint_id in self._failing

    def is_open(self, endpoint_id: int) -> bool:
        """Return True if the endpoint may only be called with one request, a probe."""
        failing = self._failing.get(endpoint_id)
        return failing is not None and failing.is_open

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
            if failing.is_open:
                return 1 if not failures else 0
            failures += failing.failures
        return count if failures < limits.CALLBACK_CIRCUIT_FAILURES else 0
