"""The hub's problem documents as exceptions, one class for each reaction. Plain module.

All derive from HubProblem; a code without a class of its own gets the class of its status.
"""

from typing import Any

from eventhub_client.types import Cursor, HubProblem, Range, Start


class InvalidRequest(HubProblem):
    """The request or an event in it is wrong (400, 413, 415, 422): correct it; see `position`."""


class NotAllowed(HubProblem):
    """The credential is missing, wrong, expired (401) or has no grant for this (403)."""


class Missing(HubProblem):
    """There is no such stream, event, type or resource (404)."""


class ConflictError(HubProblem):
    """The request conflicts with what is stored (409)."""


class Changed(HubProblem):
    """The resource has changed since the sequence in `If-Match` (412); `current` is the new one."""

    @property
    def current(self) -> Any:
        return self.problem.get("current")


class ProducerWindow(ConflictError):
    """A producer's number is below its window, so it is unknown whether the event was stored."""


class GapError(HubProblem):
    """The next events are no longer stored (410): `missing` says which; continue at `resume`."""

    @property
    def resume(self) -> Cursor:
        """The cursor before the first event that is still stored."""
        return _cursor(self.problem.get("resume")) or self._before_first()

    @property
    def missing(self) -> Range | None:
        """The missing sequences after the cursor; None if the listener started by time or name."""
        known = self.problem.get("known")
        last = self.resume.sequence
        if known is None or known >= last:
            return None
        return Range(self.resume.segment, known + 1, last)

    def _before_first(self) -> Cursor:
        first = self.problem["first_available"]
        return Cursor(first["segment"], first["sequence"] - 1)


class SegmentMismatchError(HubProblem):
    """The cursor belongs to another log: the hub's was wiped or restored, or lost its continuity.
    `current` is the segment being written now.
    """

    @property
    def current(self) -> dict[str, Any]:
        """The segment being written: segment, first, last."""
        found: dict[str, Any] = self.problem.get("current", {})
        return found

    @property
    def resume(self) -> Start:
        """The start of the new log, of which nothing was received."""
        return "oldest"


class Unavailable(HubProblem):
    """The hub cannot do this right now (408, 429, 5xx); nothing was stored: try again."""


class OutcomeUnknown(Unavailable):
    """It is unknown whether the events were stored; repeating is safe with a producer id only."""


class StorageFull(Unavailable):
    """The hub's disk is full (507); nothing was stored. It recovers without intervention."""


RETRY = (408, 429, 502, 503, 504, 507)  # the hub, or a proxy before it, may succeed later

_BY_CODE: dict[str, type[HubProblem]] = {
    "gap": GapError,
    "segment_mismatch": SegmentMismatchError,
    "producer_window": ProducerWindow,
    "outcome_unknown": OutcomeUnknown,
    "storage_full": StorageFull,
    "changed": Changed,
}
_BY_STATUS: dict[int, type[HubProblem]] = {
    400: InvalidRequest,
    401: NotAllowed,
    403: NotAllowed,
    404: Missing,
    409: ConflictError,
    410: Missing,
    412: Changed,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
}


def refusal(problem: dict[str, Any], *, retry_after_s: float | None = None) -> HubProblem:
    """Return the exception for a problem document."""
    status = int(problem.get("status", 500))
    kind = _BY_CODE.get(str(problem.get("code"))) or _BY_STATUS.get(status, HubProblem)
    if kind is HubProblem and (status in RETRY or status >= 500):
        kind = Unavailable
    return kind(problem, retry_after_s=retry_after_s)


def _cursor(found: Any) -> Cursor | None:
    return Cursor(found["segment"], found["sequence"]) if found else None
