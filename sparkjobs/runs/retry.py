"""The retry policy of scheduled runs: whether a failed one is retried, and when. Plain module."""

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.errors import ArchiveUnavailable, StorageFull
from sparkjobs.runs.errors import BadResult, JavaSlow, LocalFailed, SparkFailed

INTERRUPTED = "interrupted"  # the reason of a run whose process died or was terminated
# Transient reasons. The others persist until somebody acts, so a retry would fail again.
TRANSIENT = frozenset(
    {
        INTERRUPTED,
        ArchiveUnavailable.code,
        BadResult.code,
        DatabaseUnavailable.code,
        JavaSlow.code,
        LocalFailed.code,
        SparkFailed.code,
        StorageFull.code,
    }
)


def backoff_s(reason: str, attempt: int) -> float | None:
    """Return the pause before the next attempt; None: there is none. `reason`: why this attempt
    failed, "" if it succeeded; `attempt`: 1 for the first.
    """
    if reason not in TRANSIENT or attempt >= limits.JOB_ATTEMPTS_MAX:
        return None
    return limits.JOB_BACKOFF_S * float(limits.JOB_BACKOFF_GROWTH ** (attempt - 1))


def longest_backoff_s() -> float:
    return limits.JOB_BACKOFF_S * float(limits.JOB_BACKOFF_GROWTH ** (limits.JOB_ATTEMPTS_MAX - 2))
