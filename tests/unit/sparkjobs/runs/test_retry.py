"""Which runs of the timetable are repeated, and after what pause."""

import pytest

from eventhub.base import limits
from sparkjobs.runs.retry import PASSING, longest_pause_s, pause_before_repeat_s

PAUSES = [300.0, 900.0, 2_700.0, 8_100.0, None]


@pytest.mark.parametrize("reason", sorted(PASSING))
def test_what_may_pass_is_repeated_a_few_times_with_growing_pauses(reason: str) -> None:
    assert [pause_before_repeat_s(reason, attempt) for attempt in range(1, 6)] == PAUSES
    assert longest_pause_s() == PAUSES[-2]
    assert sum(pause for pause in PAUSES if pause) < limits.JOB_REPEAT_WITHIN_S


@pytest.mark.parametrize(
    "reason",
    ["", "no_java", "spark_conf", "result_too_large", "too_long", "cancelled", "internal"],
)
def test_what_ended_well_or_stays_until_somebody_acts_is_not_repeated(reason: str) -> None:
    assert pause_before_repeat_s(reason, 1) is None
