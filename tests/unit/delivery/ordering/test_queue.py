"""Windows, acknowledgements, positions and bounds of the queue of a session."""

from delivery.ordering.queue import DeliveryQueue, QueueLimits, QueueMemory
from eventhub.eventlog.stored import Cursor
from tests.unit.delivery.ordering.held_events import (
    MS,
    NOW_US,
    SEGMENT,
    START,
    drain,
    queue_of,
    settings,
    stored,
)


def test_the_window_bounds_what_is_unacknowledged() -> None:
    queue = queue_of("fifo", 2)
    for number in (1, 2, 3, 4):
        queue.put("s", stored(number), NOW_US)
    assert drain(queue) == [1, 2]
    assert queue.wake_at_us() is None
    queue.acknowledge_each("s", [2, 2, 9])
    assert drain(queue) == [3]
    queue.window = 3
    assert drain(queue) == [4]
    queue.acknowledge("s", 3)
    assert queue.unacknowledged == 1


def test_an_acknowledgement_up_to_a_sequence_counts_what_was_delivered_only() -> None:
    queue = queue_of("priority", 2)
    for number, priority in ((1, 0), (2, 5), (3, 9)):
        queue.put("s", stored(number, priority=priority), NOW_US)
    assert drain(queue) == [3, 2]
    queue.acknowledge("s", 3)
    assert queue.position("s") == (START, [2, 3]), "the first is held still"
    assert drain(queue) == [1]
    queue.acknowledge("s", 1)
    assert queue.position("s") == (Cursor(SEGMENT, 3), [])


def test_the_cursor_passes_events_that_do_not_match() -> None:
    queue = queue_of("fifo")
    queue.skip("s", Cursor(SEGMENT, 4))
    assert queue.take_changes() == {"s": (Cursor(SEGMENT, 4), [])}
    queue.put("s", stored(5), NOW_US)
    queue.skip("s", Cursor(SEGMENT, 9))
    assert queue.cursor("s") == (SEGMENT, 4)
    drain(queue)
    queue.acknowledge("s", 5)
    assert queue.take_changes() == {"s": (Cursor(SEGMENT, 9), [])}
    assert queue.take_changes() == {}


def test_what_was_not_acknowledged_comes_again_once() -> None:
    queue = queue_of("fifo")
    for number in (1, 2, 3, 4):
        queue.put("s", stored(number), NOW_US)
    drain(queue)
    queue.acknowledge_each("s", [1, 3])
    cursor, acknowledged = queue.position("s")
    assert (cursor, acknowledged) == ((SEGMENT, 1), [3])
    again = DeliveryQueue(settings("fifo"), 10)
    again.add_stream("s", cursor, acknowledged)
    for number in (2, 3, 4):
        again.put("s", stored(number), NOW_US)
    assert drain(again) == [2, 4]
    again.acknowledge("s", 2)
    assert again.position("s") == (Cursor(SEGMENT, 3), [])
    again.acknowledge("s", 4)
    assert again.position("s") == (Cursor(SEGMENT, 4), [])


def test_what_others_acknowledged_before_it_was_read_is_passed_when_it_is() -> None:
    queue = queue_of("fifo")
    queue.acknowledge_elsewhere("s", Cursor(SEGMENT, 2), [4])
    assert queue.position("s") == (Cursor(SEGMENT, 2), [4])
    for number in (1, 2, 3, 4, 5):
        queue.put("s", stored(number), NOW_US)
    assert drain(queue) == [3, 5]
    queue.acknowledge("s", 3)
    assert queue.position("s") == (Cursor(SEGMENT, 4), [])
    queue.acknowledge("s", 5)
    assert queue.position("s") == (Cursor(SEGMENT, 5), [])


def test_acknowledgements_of_an_earlier_connection_are_kept_until_their_events_are_read() -> None:
    queue = DeliveryQueue(settings("fifo"), 10)
    queue.add_stream("s", START, [3, 5])
    queue.put("s", stored(1), NOW_US)
    assert queue.position("s") == (START, [3, 5])


def test_a_removed_stream_delivers_no_more_and_frees_the_window_and_the_memory() -> None:
    before = QueueMemory.bytes
    queue = queue_of("fifo", 2)
    queue.add_stream("t", START)
    for number in (1, 2, 3):
        queue.put("t", stored(number), NOW_US)
    queue.put("s", stored(1), NOW_US)
    assert drain(queue) == [1, 2]
    queue.remove_stream("t")
    assert (queue.unacknowledged, drain(queue)) == (0, [1])
    assert (queue.held, QueueMemory.bytes) == (0, before)


def test_the_memory_of_all_queues_is_accounted_for() -> None:
    before = QueueMemory.bytes
    queue = DeliveryQueue(settings("priority"), 10, QueueLimits(bytes=5_000))
    queue.add_stream("s", START)
    queue.put("s", stored(1, body=b"x" * 5_000, content_type="a/b"), NOW_US)
    assert queue.full
    assert QueueMemory.bytes - before == queue.held_bytes > 5_000
    queue.remove_stream("s")
    assert QueueMemory.bytes == before


def test_fifo_asks_for_events_only_when_none_is_held() -> None:
    queue = queue_of("fifo", 1)
    assert queue.wants_events
    queue.put("s", stored(1), NOW_US)
    queue.put("s", stored(2), NOW_US)
    drain(queue)
    assert not queue.wants_events


def test_a_changed_order_applies_to_what_is_held() -> None:
    queue = queue_of("fifo", 1)
    for number, priority in ((1, 0), (2, 0), (3, 9)):
        queue.put("s", stored(number, priority=priority), NOW_US)
    assert drain(queue) == [1]
    queue.set_order(settings("priority"), NOW_US)
    queue.window = 10
    assert drain(queue) == [3, 2]


def test_how_an_event_has_waited_in_another_order_does_not_count() -> None:
    """The first event had its time extended, because its cause waits; so it has in the new order.
    The fourth was ready out of order, in the order before.
    """
    queue = queue_of("causal", hold_ms=50)
    queue.put("s", stored(1, id="effect", cause="cause"), NOW_US)
    later_us = NOW_US + 40 * MS
    queue.put("s", stored(2, id="cause", cause="lost", appended_at_us=later_us), later_us)
    assert drain(queue, NOW_US + 50 * MS) == []
    queue.set_order(settings("causal", hold_ms=200), NOW_US + 60 * MS)
    assert drain(queue, NOW_US + 200 * MS) == []
    assert drain(queue, NOW_US + 240 * MS) == [2, 1]
    for number in (3, 4):
        queue.put("s", stored(number, cause="gone"), NOW_US + 200 * MS)
    forced = queue.pop(NOW_US + 200 * MS)
    queue.set_order(settings("fifo"), NOW_US + 200 * MS)
    due = queue.pop(NOW_US + 200 * MS)
    assert forced is not None and due is not None
    assert (forced.disorder, due.disorder) == ("hold", "")


def test_an_event_that_may_not_be_sent_after_all_is_settled() -> None:
    queue = queue_of("fifo")
    queue.put("s", stored(1), NOW_US)
    held = queue.pop(NOW_US)
    assert held is not None
    queue.discard(held)
    assert (queue.unacknowledged, queue.cursor("s")) == (0, (SEGMENT, 1))


def test_only_delivered_events_that_are_not_acknowledged_are_unsettled() -> None:
    """One that cannot be delivered again is settled, and frees its place in the window."""
    queue = queue_of("fifo", 3)
    for number in (1, 2, 3, 4):
        queue.put("s", stored(number), NOW_US)
    assert drain(queue) == [1, 2, 3]
    queue.acknowledge_each("s", [2])
    assert [each.sequence for each in queue.unsettled("s", [4, 3, 2, 1, 9])] == [3, 1]
    [first] = queue.unsettled("s", [1])
    queue.settle(first)
    queue.settle(first)
    assert (queue.cursor("s").sequence, queue.unacknowledged) == (2, 1)
    assert drain(queue) == [4]
