"""When timers fire: intervals, cron expressions over changes of clocks, missed times."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.base.errors import InvalidField, MissingField
from registrations.timers.schedule import (
    Fire,
    Schedule,
    fire,
    first_time,
    next_time,
    schedule_of,
    upcoming,
)

T = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T + timedelta(seconds=seconds)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(text: str, timezone: str = "UTC", **more: Any) -> Schedule:
    return Schedule(cron=text, timezone=timezone, **more)


def fires_of(schedule: Schedule, now: datetime = T) -> list[datetime]:
    first = first_time(schedule, now)
    return [] if first is None else upcoming(schedule, first, 5)


@pytest.mark.req("RDY-41")
def test_every_two_seconds_from_one_to_six_is_at_one_three_and_five() -> None:
    found = schedule_of({"every_s": 2, "start": at(1), "end": at(6)}, T)
    assert fires_of(found) == [at(1), at(3), at(5)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"at": at(5)}, [5]),
        ({"at": at(-5)}, [-5]),
        ({"after_s": 5}, [5]),
        ({"after_s": 5, "from": at(60)}, [65]),
        ({"every_s": 10}, [10, 20, 30, 40, 50]),
        ({"every_s": 10, "end": at(25)}, [10, 20]),
        ({"every_s": 10, "start": at(-3)}, [7, 17, 27, 37, 47]),
        ({"every_s": 10, "start": at(0), "end": at(10)}, [0, 10]),
        ({"cron": "*/2 * * * *"}, [0, 120, 240, 360, 480]),
        ({"cron": "*/2 * * * *", "start": at(120), "end": at(240)}, [120, 240]),
        ({"every_s": 10, "end": at(5)}, []),
    ],
)
def test_the_times_of_a_request(fields: dict[str, Any], expected: list[float]) -> None:
    assert fires_of(schedule_of(fields, T)) == [at(one) for one in expected]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "at"),
        ({"at": T, "every_s": 5}, "every_s"),
        ({"after_s": 1, "cron": "* * * * *"}, "cron"),
        ({"at": T, "from": T}, "from"),
        ({"at": T, "end": T}, "end"),
        ({"every_s": 5, "timezone": "UTC"}, "timezone"),
        ({"after_s": 5, "start": T}, "start"),
        ({"at": at(limits.TIMER_AHEAD_S_MAX + 1)}, "at"),
        ({"every_s": 1, "start": at(-limits.TIMER_AHEAD_S_MAX - 1)}, "start"),
        ({"cron": "* * * *"}, "cron"),
        ({"cron": "0 * * * * *"}, "cron"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "@hourly"}, "cron"),
        ({"cron": "* * * * *", "timezone": "Europe/Nowhere"}, "timezone"),
        ({"cron": "* * * * *", "timezone": "Europe"}, "timezone"),
        ({"cron": "* * * * *", "timezone": "localtime"}, "timezone"),
        ({"cron": "* * * * *", "timezone": "right/UTC"}, "timezone"),
        ({"cron": "* * * * *", "timezone": "../../etc/passwd"}, "timezone"),
    ],
)
def test_a_wrong_schedule_is_refused_with_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises((InvalidField, MissingField)) as refusal:
        schedule_of(fields, T)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        # clocks go from 02:00 to 03:00: the skipped time is the first moment after the gap
        ("30 2 * * *", "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("0 * * * *", "2026-03-29T00:30", ["2026-03-29T01:00", "2026-03-29T02:00"]),
        # clocks go from 03:00 back to 02:00: a time that occurs twice counts once ...
        ("30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 2 * * *", "2026-10-25T01:00", ["2026-10-26T01:30", "2026-10-27T01:30"]),
        # ... but every hour is every hour
        ("30 * * * *", "2026-10-25T00:00", ["2026-10-25T00:30", "2026-10-25T01:30"]),
        ("0 8 * * MON-FRI", "2026-10-23T12:00", ["2026-10-26T07:00", "2026-10-27T07:00"]),
    ],
)
def test_a_cron_expression_follows_the_clocks_of_its_zone(
    text: str, after: str, expected: list[str]
) -> None:
    found = cron(text, "Europe/Berlin")
    first = next_time(found, utc(after))
    assert first is not None
    assert upcoming(found, first, 2) == [utc(one) for one in expected]


@pytest.mark.parametrize(
    ("schedule", "due", "now", "expected"),
    [
        (Schedule(at=T), 0, 3600, Fire(T, 0, None)),
        (Schedule(every_s=2, start=at(1)), 3, 3.5, Fire(at(3), 0, at(5))),
        (Schedule(every_s=2, start=at(1)), 3, 9, Fire(at(9), 3, at(11))),
        (Schedule(every_s=2, start=at(1), end=at(6)), 3, 60, Fire(at(5), 1, None)),
        (Schedule(every_s=2, start=at(1), end=at(6)), 5, 5, Fire(at(5), 0, None)),
        (cron("* * * * *"), 60, 61, Fire(at(60), 0, at(120))),
        (cron("* * * * *"), 60, 300, Fire(at(300), 4, at(360))),
        (cron("* * * * *", end=at(130)), 60, 300, Fire(at(120), 1, None)),
    ],
)
def test_missed_times_are_one_fire_for_the_latest(
    schedule: Schedule, due: float, now: float, expected: Fire
) -> None:
    assert fire(schedule, at(due), at(now)) == expected


def test_missed_times_of_a_cron_expression_are_counted_up_to_a_bound() -> None:
    found = fire(cron("* * * * *"), at(60), at(60 * 10_000 + 1))
    assert found.missed == limits.TIMER_MISSED_COUNTED_MAX
    assert found.next_at == at(60 * 10_001)


@given(
    every_s=st.integers(1, 100_000),
    start=st.integers(-(10**9), 10**9),
    after=st.integers(-(10**9), 10**9),
)
def test_the_next_time_of_an_interval_is_the_first_after_a_time(
    every_s: int, start: int, after: int
) -> None:
    schedule = Schedule(every_s=every_s, start=at(start))
    found = next_time(schedule, at(after))
    assert found is not None and found > at(after) and found >= at(start)
    passed = (found - at(start)).total_seconds()
    assert passed % every_s == 0
    assert passed == 0 or (found - at(after)).total_seconds() <= every_s
