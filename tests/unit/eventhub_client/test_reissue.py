"""When an event is sent again, on a clock that the test moves."""

import pytest
from eventhub_client.reissue_timers import ReissueTimers

from eventhub.base.clock import ManualClock


def timers(
    clock: ManualClock, *, interval_s: float = 1.0, timeout_s: float = 3.0
) -> ReissueTimers[str]:
    return ReissueTimers(clock, interval_s=interval_s, timeout_s=timeout_s)


@pytest.mark.req("FOX-84")
def test_silence_sends_again_at_3_and_6_and_the_notification_at_7_ends_it() -> None:
    clock = ManualClock()
    made = timers(clock)
    made.issued(["e"])
    sent_again = []
    for second in range(1, 13):
        clock.advance_s(1)
        if second == 7:
            made.stored(["e"])
        if made.due():
            sent_again.append(second)
    assert sent_again == [3, 6]


def test_timers_move_in_whole_intervals_only() -> None:
    clock = ManualClock()
    made = timers(clock)
    made.issued(["e"])
    clock.advance_s(2.999)
    assert made.due() == []
    clock.advance_s(0.001)
    assert made.due() == ["e"]


def test_a_caller_that_looks_late_finds_each_event_once() -> None:
    clock = ManualClock()
    made = timers(clock)
    made.issued(["a", "b"])
    clock.advance_s(100)
    assert made.due() == ["a", "b"]
    assert made.due() == []
    clock.advance_s(3)
    assert made.due() == ["a", "b"]


def test_a_refusal_with_a_time_is_obeyed_shorter_or_longer() -> None:
    clock = ManualClock()
    made = timers(clock)
    made.issued(["soon", "late"])
    made.wait(["soon"], 0.5)
    made.wait(["late"], 5)
    found = []
    for _ in range(6):
        clock.advance_s(1)
        found.append(made.due())
    assert found == [["soon"], [], [], ["soon"], ["late"], []]


@pytest.mark.parametrize("interval_s", [0.1, 0.3, 1.0])
def test_fractions_add_up(interval_s: float) -> None:
    clock = ManualClock()
    made = timers(clock, interval_s=interval_s)
    made.issued(["e"])
    ticks = 0
    while not made.due():
        clock.advance_s(interval_s)
        ticks += 1
    assert ticks == round(3.0 / interval_s)
