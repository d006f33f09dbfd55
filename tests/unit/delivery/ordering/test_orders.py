"""Each order of a session, with the events of one held queue."""

from typing import Any

import pytest

from delivery.ordering.queue import DeliveryQueue, QueueLimits
from eventhub.base import metrics
from eventhub.eventlog.stored import StoredEvent
from tests.unit.delivery.ordering.held_events import (
    MS,
    NOW_US,
    SEGMENT,
    START,
    drain,
    numbered,
    queue_of,
    settings,
    stored,
)

LATER_US = NOW_US + 60_000_000
# the fields of six events, in the order of their arrival
SIX: dict[str, dict[str, Any]] = {
    "a": {"source": "web", "id": numbered("web", 2), "type": "order.placed", "time_us": 30},
    "b": {
        **{"source": "app", "id": numbered("app", 1), "type": "alarm", "time_us": 10},
        **{"priority": 5, "expires_at_us": NOW_US + 300},
    },
    "c": {
        **{"source": "web", "id": numbered("web", 1), "type": "order.paid", "time_us": 60},
        **{"expires_at_us": NOW_US + 100},
    },
    "d": {
        **{"source": "app", "id": numbered("app", 2), "type": "alarm.fire", "time_us": 20},
        **{"priority": 9, "expires_at_us": NOW_US + 200},
    },
    "e": {
        **{"source": "web", "id": numbered("web", 3), "type": "order.placed", "time_us": 50},
        **{"priority": 5},
    },
    "f": {
        **{"source": "app", "id": numbered("app", 3), "type": "report", "time_us": 40},
        **{"priority": -1, "expires_at_us": NOW_US + 400},
    },
}


def six() -> list[StoredEvent]:
    return [stored(number, **fields) for number, fields in enumerate(SIX.values(), 1)]


def letters(sequences: list[int]) -> str:
    return "".join(chr(ord("a") + sequence - 1) for sequence in sequences)


@pytest.mark.parametrize(
    ("order", "options", "expected"),
    [
        ("none", {}, "abcdef"),
        ("fifo", {}, "abcdef"),
        ("priority", {}, "dbeacf"),
        ("validity", {}, "cdbfae"),
        ("supplier", {}, "bdfcae"),
        ("supplier", {"suppliers": ["web"]}, "caebdf"),
        ("type", {}, "bdcaef"),
        ("type", {"types": ["alarm.*", "report"]}, "dfbcae"),
        ("type", {"types": [{"domain": "d", "type": "report"}, "*"]}, "fbdcae"),
        ("timestamp", {"occur_delay_ms": 0}, "bdafec"),
    ],
)
def test_six_held_events_come_in_the_order_of_the_session(
    order: str, options: dict[str, Any], expected: str
) -> None:
    queue = queue_of(order, **options)
    for event in six():
        queue.put("s", event, NOW_US)
    assert letters(drain(queue)) == expected


def test_an_event_with_priority_is_next_behind_a_thousand() -> None:
    queue = queue_of("priority", 10)
    for number in range(1, 1_001):
        queue.put("s", stored(number), NOW_US)
    assert drain(queue) == [*range(1, 11)], "the window"
    queue.put("s", stored(1_001, priority=1), NOW_US)
    queue.acknowledge("s", 1)
    assert drain(queue) == [1_001]


def test_an_event_that_expired_while_it_was_held_is_counted_and_not_delivered() -> None:
    queue = queue_of("fifo", 1)
    queue.put("s", stored(1), NOW_US)
    queue.put("s", stored(2, expires_at_us=NOW_US + 1_000_000), NOW_US)
    queue.put("s", stored(3), NOW_US)
    assert drain(queue) == [1]
    before = metrics.EXPIRED._value.get()
    queue.acknowledge("s", 1)
    assert drain(queue, NOW_US + 2_000_000) == [3]
    assert metrics.EXPIRED._value.get() == before + 1
    queue.acknowledge("s", 3)
    assert queue.position("s") == ((SEGMENT, 3), [])


def test_a_sorting_order_waits_until_all_that_is_stored_was_read() -> None:
    queue = queue_of("priority")
    queue.set_behind("s", True)
    queue.put("s", stored(1), NOW_US)
    assert drain(queue) == []
    assert queue.wake_at_us() is None
    queue.put("s", stored(2, priority=1), NOW_US)
    queue.set_behind("s", False)
    assert drain(queue) == [2, 1]


def test_a_full_queue_delivers_though_more_is_stored() -> None:
    queue = DeliveryQueue(settings("priority"), 100, QueueLimits(events=2))
    queue.add_stream("s", START, behind=True)
    queue.put("s", stored(1), NOW_US)
    assert queue.wants_events
    queue.put("s", stored(2, priority=1), NOW_US)
    assert queue.full
    assert drain(queue) == [2, 1]


# --- timestamp ---


def test_events_go_by_timestamp_once_it_is_older_than_the_delay() -> None:
    """RDY-51: 10.0 and 9.9 arrive in that order; the delay is 200 ms."""
    second = 1_000_000
    queue = queue_of("timestamp", occur_delay_ms=200)
    at_us = 10 * second
    queue.put("s", stored(1, time_us=10 * second, appended_at_us=at_us), at_us)
    queue.put("s", stored(2, time_us=99 * second // 10, appended_at_us=at_us), at_us)
    assert queue.wake_at_us() == 10_100_001
    assert drain(queue, 10_100_000) == []
    assert drain(queue, 10_200_001) == [2, 1]


def test_an_event_that_comes_too_late_goes_at_once_and_counts() -> None:
    queue = queue_of("timestamp", occur_delay_ms=1)
    queue.put("s", stored(1, time_us=NOW_US), NOW_US)
    assert drain(queue, NOW_US + 2 * MS) == [1]
    queue.put("s", stored(2, time_us=NOW_US - 5 * MS), NOW_US + 2 * MS)
    held = queue.pop(NOW_US + 2 * MS)
    assert held is not None
    assert held.disorder == "late"


def test_a_clock_that_is_ahead_holds_its_event_for_a_bounded_time() -> None:
    queue = queue_of("timestamp", occur_delay_ms=0, hold_ms=100)
    queue.put("s", stored(1, time_us=NOW_US + 3_600_000_000), NOW_US)
    queue.put("s", stored(2, time_us=NOW_US), NOW_US)
    assert drain(queue, NOW_US + 1) == [2]
    assert queue.wake_at_us() == NOW_US + 100 * MS
    held = queue.pop(NOW_US + 100 * MS)
    assert held is not None
    assert (held.stored.sequence, held.disorder) == (1, "hold")
    queue.put("s", stored(3, time_us=NOW_US + 200 * MS), NOW_US + 200 * MS)
    held = queue.pop(NOW_US + 201 * MS)
    assert held is not None
    assert held.disorder == "", "it is not compared with the clock that is ahead"


def test_an_event_without_a_time_has_that_of_its_append() -> None:
    queue = queue_of("timestamp", occur_delay_ms=0)
    queue.put("s", stored(1, appended_at_us=NOW_US + 5), NOW_US)
    queue.put("s", stored(2, time_us=NOW_US + 3), NOW_US)
    assert drain(queue, LATER_US) == [2, 1]


def test_a_full_queue_gives_the_earliest_timestamp() -> None:
    queue = DeliveryQueue(settings("timestamp", occur_delay_ms=60_000), 100, QueueLimits(events=2))
    queue.add_stream("s", START)
    queue.put("s", stored(1, time_us=NOW_US), NOW_US)
    queue.put("s", stored(2, time_us=NOW_US - 1), NOW_US)
    held = queue.pop(NOW_US)
    assert held is not None
    assert (held.stored.sequence, held.disorder) == (2, "full")


# --- supplier ---


def test_the_events_of_a_producer_are_sorted_over_its_incarnations() -> None:
    """FOX table 8.3: the issuer roams, and e4 and e5 arrive before e1 to e3."""
    queue = queue_of("supplier", hold_ms=100)
    for sequence, (number, incarnation) in enumerate([(1, 2), (2, 2), (1, 1), (2, 1), (3, 1)], 1):
        id = numbered("a", number, incarnation)
        queue.put("s", stored(sequence, source="a", id=id), NOW_US)
    assert drain(queue, NOW_US + 99 * MS) == []
    assert queue.wake_at_us() == NOW_US + 100 * MS
    assert drain(queue, NOW_US + 100 * MS) == [3, 4, 5, 1, 2]


def test_the_next_number_of_a_producer_does_not_wait() -> None:
    queue = queue_of("supplier", hold_ms=100)
    queue.put("s", stored(1, source="a", id=numbered("a", 1)), NOW_US)
    queue.put("s", stored(2, source="a", id=numbered("a", 3)), NOW_US)
    assert drain(queue, NOW_US + 100 * MS) == [1, 2]
    later_us = NOW_US + 200 * MS
    queue.put("s", stored(3, source="a", id=numbered("a", 5), appended_at_us=later_us), later_us)
    queue.put("s", stored(4, source="b", id=numbered("b", 1), appended_at_us=later_us), later_us)
    assert drain(queue, later_us) == []
    queue.put("s", stored(5, source="a", id=numbered("a", 4), appended_at_us=later_us), later_us)
    assert drain(queue, later_us) == [5, 3], "the hole is filled; the other producer waits"
    assert drain(queue, later_us + 100 * MS) == [4]


def test_a_number_after_a_later_one_counts_as_late() -> None:
    queue = queue_of("supplier")
    queue.put("s", stored(1, source="a", id=numbered("a", 2)), NOW_US)
    assert drain(queue) == [1]
    queue.put("s", stored(2, source="a", id=numbered("a", 1)), NOW_US)
    held = queue.pop(NOW_US)
    assert held is not None
    assert held.disorder == "late"


# --- causal ---


@pytest.mark.parametrize(
    "link",
    [
        {"cause": "request-1"},
        {"correlation": "request-1"},
        {"depends": ("other", "bundle:b", "s", "request-1")},
        {"cause": f"{SEGMENT}:3"},
        {"cause": f"s:{SEGMENT}:3"},
    ],
)
def test_a_reply_is_held_until_its_request_is_delivered(link: dict[str, Any]) -> None:
    queue = queue_of("causal")
    queue.add_stream("replies", START)
    queue.put("s", stored(1, id="other"), NOW_US)
    queue.put("replies", stored(1, **link), NOW_US)
    queue.put("s", stored(2), NOW_US)
    assert drain(queue) == [1, 2]
    assert queue.wake_at_us() == NOW_US + 1_000 * MS
    queue.put("s", stored(3, id="request-1"), NOW_US)
    first, second = queue.pop(NOW_US), queue.pop(NOW_US)
    assert first is not None and second is not None
    assert [first.stream, second.stream] == ["s", "replies"]
    assert second.disorder == ""


def test_causes_are_transitive_and_need_no_interest_in_what_is_between() -> None:
    queue = queue_of("causal")
    queue.put("s", stored(1, id="e2", cause="e1"), NOW_US)
    queue.put("s", stored(2, id="e1", cause="e0"), NOW_US, matches=False)
    assert drain(queue) == []
    queue.put("s", stored(3, id="e0"), NOW_US)
    assert drain(queue) == [3, 1]
    queue.acknowledge("s", 3)
    assert queue.cursor("s") == (SEGMENT, 3)


def test_an_event_whose_cause_never_comes_goes_when_its_time_is_over() -> None:
    queue = queue_of("causal", hold_ms=50)
    queue.put("s", stored(1, cause="lost"), NOW_US)
    assert drain(queue, NOW_US + 49 * MS) == []
    held = queue.pop(NOW_US + 50 * MS)
    assert held is not None
    assert held.disorder == "hold"
    queue.put("s", stored(2, cause="lost"), NOW_US + 50 * MS)
    assert drain(queue, NOW_US + 50 * MS) == [2], "appended as long ago: it need not wait"


def test_a_cause_that_was_read_before_is_not_waited_for() -> None:
    queue = queue_of("causal")
    queue.add_stream("t", START._replace(sequence=7))
    queue.put("s", stored(1, cause=f"t:{SEGMENT}:7"), NOW_US)
    queue.put("s", stored(2, cause=f"unknown:{SEGMENT}:9"), NOW_US)
    queue.put("s", stored(3, cause=f"t:{SEGMENT}:8"), NOW_US)
    assert drain(queue) == [1, 2]
    queue.put("t", stored(8), NOW_US, matches=False)
    assert drain(queue) == [3]


def test_events_that_name_each_other_are_delivered() -> None:
    queue = queue_of("causal", hold_ms=50)
    queue.put("s", stored(1, id="a", cause="b"), NOW_US)
    queue.put("s", stored(2, id="b", cause="a"), NOW_US)
    queue.put("s", stored(3, id="c", cause="c"), NOW_US)
    assert drain(queue) == [3], "its own cause does not count"
    assert drain(queue, NOW_US + 100 * MS) == [1, 2]


def test_one_event_of_a_conversation_waits_for_its_beginning() -> None:
    """A correlation that no event has as its id delays the first event of the conversation only."""
    queue = queue_of("causal", hold_ms=50)
    queue.put("s", stored(1, correlation="talk"), NOW_US)
    assert drain(queue, NOW_US + 50 * MS) == [1]
    later_us = NOW_US + 60 * MS
    queue.put("s", stored(2, correlation="talk", appended_at_us=later_us), later_us)
    assert drain(queue, later_us) == [2]


def test_an_effect_waits_longer_while_its_cause_waits_itself() -> None:
    queue = queue_of("causal", hold_ms=50)
    queue.put("s", stored(1, id="e2", cause="e1"), NOW_US)
    later_us = NOW_US + 30 * MS
    queue.put("s", stored(2, id="e1", cause="lost", appended_at_us=later_us), later_us)
    assert drain(queue, NOW_US + 79 * MS) == []
    first, second = queue.pop(NOW_US + 80 * MS), queue.pop(NOW_US + 80 * MS)
    assert first is not None and second is not None
    assert [first.stored.sequence, second.stored.sequence] == [2, 1]
    assert [first.disorder, second.disorder] == ["hold", ""]


def test_a_conversation_that_has_begun_waits_for_its_request_all_the_same() -> None:
    """Once the request is held, which waits itself, no other event of the conversation passes."""
    queue = queue_of("causal", hold_ms=50)
    queue.put("s", stored(1, correlation="r"), NOW_US)
    assert drain(queue, NOW_US + 50 * MS) == [1], "the request had not come"
    later_us = NOW_US + 60 * MS
    queue.put("s", stored(2, id="r", cause="c", appended_at_us=later_us), later_us)
    queue.put("s", stored(3, correlation="r", appended_at_us=later_us), later_us)
    assert drain(queue, later_us) == []
    queue.put(
        "s", stored(4, id="x", correlation="r", appended_at_us=NOW_US, order="none"), later_us
    )
    assert drain(queue, later_us) == [4], "it states that it waits for nothing, and frees no other"
    queue.put("s", stored(5, id="c", appended_at_us=later_us), later_us)
    assert drain(queue, later_us) == [5, 2, 3]


def test_a_full_queue_gives_the_cause_before_the_effect() -> None:
    queue = DeliveryQueue(settings("causal"), 100, QueueLimits(events=2))
    queue.add_stream("s", START)
    queue.put("s", stored(1, id="e2", cause="e1"), NOW_US)
    queue.put("s", stored(2, id="e1", cause="lost"), NOW_US)
    assert drain(queue) == [2, 1]


def test_an_event_after_an_expired_cause_is_delivered() -> None:
    queue = queue_of("causal")
    queue.put("s", stored(1, cause="gone"), NOW_US)
    queue.put("s", stored(2, id="gone", expires_at_us=NOW_US - 1), NOW_US)
    assert drain(queue) == [1]


def test_a_chain_of_thousands_is_released_by_its_first_event() -> None:
    queue = queue_of("causal", 10_000)
    for number in range(1, 9_000):
        queue.put("s", stored(number, id=f"e{number}", cause=f"e{number + 1}"), NOW_US)
    assert drain(queue) == []
    queue.put("s", stored(9_000, id="e9000"), NOW_US)
    assert drain(queue) == [*range(9_000, 0, -1)]
