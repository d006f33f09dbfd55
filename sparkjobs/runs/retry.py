"""Decides whether a run of the timetable that did not end well is repeated, and when.
Plain module.
"""

from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.archive.errors import ArchiveUnavailable
from eventhub.eventlog.errors import StorageFull
from sparkjobs.runs.errors import BadResult, JavaSlow, SparkFailed

INTERRUPTED = "interrupted"  # the reason of a run whose process has gone, or was told to end
# Reasons that may pass by themselves. The others stay until somebody acts, so a repeat would fail
# for the same one.
PASSING = frozenset(
    {
        INTERRUPTED,
        ArchiveUnavailable.code,
        BadResult.code,
        DatabaseUnavailable.code,
        JavaSlow.code,
        SparkFailed.code,
        StorageFull.code,
    }
)


def pause_before_repeat_s(reason: str, attempt: int) -> float | None:
    """Return how long to wait before the next attempt; None: there is none. `reason`: of the
    attempt's end, "" if it ended well; `attempt`: 1 for the first.
    """
    if reason not in PASSING or attempt >= limits.JOB_ATTEMPTS_MAX:
        return None
    return limits.JOB_REPEAT_PAUSE_S * float(limits.JOB_REPEAT_GROWTH ** (attempt - 1))


def longest_pause_s() -> float:
    return limits.JOB_REPEAT_PAUSE_S * float(
        limits.JOB_REPEAT_GROWTH ** (limits.JOB_ATTEMPTS_MAX - 2)
    )
