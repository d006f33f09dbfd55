"""The hub's problem documents as exceptions one can catch by what has to be done. Plain module.

All are HubProblem; a code without a class of its own is told by its status.
"""

from typing import Any

from eventhub_client.types import Cursor, HubProblem, Range, Start


class InvalidRequest(HubProblem):
    """The request or an event in it is wrong (400, 413, 415, 422): mend it; see `position`."""


class NotAllowed(HubProblem):
    """The credential is missing, wrong, expired (401) or has no grant for this (403)."""


class NotThere(HubProblem):
    """There is no such stream, event, type or resource (404)."""


class Conflicting(HubProblem):
    """The request conflicts with what is stored (409)."""


class Changed(HubProblem):
    """The resource has changed since the sequence given as `If-Match` (412): `current`."""

    @property
    def current(self) -> Any:
        return self.problem.get("current")


class ProducerWindow(Conflicting):
    """A producer's number is below its window: nobody can tell whether it was stored."""


class GapError(HubProblem):
    """What comes next is no longer held (410): `missing` is known to be gone; go on at `resume`."""

    @property
    def resume(self) -> Cursor:
        """The cursor after which the first event that is still held comes."""
        return _cursor(self.problem.get("resume")) or self._before_first()

    @property
    def missing(self) -> Range | None:
        """The numbers that are gone, from the cursor's next one on; None if the cursor is not
        known (a listen by time or name).
        """
        known = self.problem.get("known")
        last = self.resume.sequence
        if known is None or known >= last:
            return None
        return Range(self.resume.segment, known + 1, last)

    def _before_first(self) -> Cursor:
        first = self.problem["first_available"]
        return Cursor(first["segment"], first["sequence"] - 1)


class SegmentMismatchError(HubProblem):
    """The log behind the cursor is another one (wiped, restored, or continuity was lost): numbers
    mean something else now. `current` says what is there.
    """

    @property
    def current(self) -> dict[str, Any]:
        """The segment being written: segment, first, last."""
        found: dict[str, Any] = self.problem.get("current", {})
        return found

    @property
    def resume(self) -> Start:
        """The new log from its beginning: nothing of it was seen."""
        return "oldest"


class Unavailable(HubProblem):
    """The hub cannot do this right now (408, 429, 5xx); nothing was stored: try again."""


class OutcomeUnknown(Unavailable):
    """Stored or not, nobody knows: repeating is safe with a producer id alone."""


class StorageFull(Unavailable):
    """The hub's disk is full (507); nothing was stored. It takes events again by itself."""


RETRY = (408, 429, 502, 503, 504, 507)  # the hub, or what stands before it, may do it later

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
    404: NotThere,
    409: Conflicting,
    410: NotThere,
    412: Changed,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
}


def refusal(problem: dict[str, Any], *, retry_after_s: float | None = None) -> HubProblem:
    """The exception for a problem document."""
    status = int(problem.get("status", 500))
    kind = _BY_CODE.get(str(problem.get("code"))) or _BY_STATUS.get(status, HubProblem)
    if kind is HubProblem and (status in RETRY or status >= 500):
        kind = Unavailable
    return kind(problem, retry_after_s=retry_after_s)


def _cursor(found: Any) -> Cursor | None:
    return Cursor(found["segment"], found["sequence"]) if found else None
