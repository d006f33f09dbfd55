"""The retries of scheduled runs, and the backoff before them."""

import pytest

from eventhub.base import limits
from sparkjobs.runs.retry import TRANSIENT, backoff_s, longest_backoff_s

PAUSES = [300.0, 900.0, 2_700.0, 8_100.0, None]


@pytest.mark.parametrize("reason", sorted(TRANSIENT))
def test_transient_failures_are_retried_a_few_times_with_growing_backoff(reason: str) -> None:
    assert [backoff_s(reason, attempt) for attempt in range(1, 6)] == PAUSES
    assert longest_backoff_s() == PAUSES[-2]
    assert sum(pause for pause in PAUSES if pause) < limits.JOB_RETRY_WITHIN_S


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "no_java",
        "spark_conf",
        "result_too_large",
        "history_too_large",
        "too_long",
        "cancelled",
        "internal",
    ],
)
def test_success_and_persistent_failures_are_not_retried(reason: str) -> None:
    assert backoff_s(reason, 1) is None
