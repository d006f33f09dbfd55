"""Events that retention removes before real forwarders match them, and the gap notices to
endpoints.
"""

from typing import Any

import pytest

from eventhub.event.protobuf_codec import decode
from tests.integration.forward_world import Start, World, eventually, forwarders, world_database

world = pytest.fixture(scope="module")(world_database)
start = pytest.fixture(forwarders)
GAPS = (
    "SELECT endpoint_id, registrations, gap_first, sequence, gap_reason, state FROM deliveries"
    " WHERE stream_id = %s AND gap_first IS NOT NULL ORDER BY endpoint_id"
)


def drop(world: World, stream_id: int, upto: int, why: str) -> None:
    """Drop events as retention does: the row first, the events later."""
    for group, segment in world.sql(
        "UPDATE segments SET tier = 'dropped', removed_at = now(), removal_reason = %s"
        " WHERE stream_id = %s AND last <= %s RETURNING partition_id, id",
        *(why, stream_id, upto),
    ):
        world.sql("DELETE FROM events WHERE partition_id = %s AND segment_id = %s", group, segment)


def announced(world: World, stream_id: int) -> list[dict[str, Any]]:
    """Return the attributes of the `forward.gap` events of a stream, in order."""
    [[name]] = world.sql("SELECT name FROM streams WHERE id = %s", stream_id)
    rows = world.sql(
        "SELECT e.payload FROM events e JOIN segments s ON s.id = e.segment_id"
        " WHERE s.stream_id = 1 ORDER BY e.sequence"
    )
    found = [decode(bytes(row[0])) for row in rows]
    return [
        event.attributes
        for event in found
        if event.type == "forward.gap" and event.attributes["stream"] == name
    ]


def test_each_endpoint_that_lost_events_gets_one_gap_notice(world: World, start: Start) -> None:
    """Two endpoints lost some of it; a third started later, a fourth ended before. No endpoint lost
    events of another stream, which is skipped without a notice.
    """
    stream_id = world.stream(segment_events_max=10)
    one, two, later, ended = world.endpoints(4)
    [past] = world.register(stream_id, [ended])
    world.change(past, stream_id, None)
    first = world.register(stream_id, [one, one], "a")
    [gone_by_now] = world.register(stream_id, [two], "a")
    silent = world.stream(segment_events_max=10)
    [registration] = world.register(silent, world.endpoints())
    running = start()
    world.emit(stream_id, "a")
    eventually(lambda: world.passed(stream_id) == 1, "the first event")
    eventually(lambda: world.passed(silent) == 0, "the checkpoint")
    running.stop()

    world.emit(stream_id, *["a"] * 14)
    world.change(gone_by_now, stream_id, None)
    world.emit(stream_id, *["a"] * 7)
    [late] = world.register(stream_id, [later])
    drop(world, stream_id, 20, "quota")
    world.emit(stream_id, "a")
    world.change(registration, silent, None)
    world.emit(silent, *["a"] * 12)
    drop(world, silent, 10, "age")
    start()
    eventually(lambda: world.passed(stream_id) == 23, "the last event")
    assert world.sql(GAPS, stream_id) == [
        (one, first, 2, 20, "quota", "pending"),
        (two, [gone_by_now], 2, 20, "quota", "pending"),
    ]
    notices = [row for row in world.deliveries(stream_id) if row[0] > 20]
    assert notices == [(21, one, first), (22, one, first), (23, one, first), (23, later, [late])]
    [[segment]] = world.sql("SELECT uuid::text FROM segments WHERE first = 21 AND stream_id = %s",
                            stream_id)  # fmt: skip
    resume = {"segment": segment, "sequence": 20}
    [gap] = announced(world, stream_id)
    expected = {"first": 2, "last": 20, "resume": resume, "why": "quota", "endpoints": 2}
    assert gap.items() >= expected.items()
    eventually(lambda: world.passed(silent) == 12, "the last event of the other")
    assert world.sql(GAPS, silent) == []
    assert announced(world, silent) == []


def test_a_forwarder_without_lag_writes_no_notice(world: World, start: Start) -> None:
    start()
    follows_through_a_gap(world)
    continues_after_a_crash_of_the_database(world)


def follows_through_a_gap(world: World) -> None:
    """Check that a forwarder follows through the removal of events that it has forwarded."""
    stream_id = world.stream(segment_events_max=10)
    [endpoint] = world.endpoints()
    world.register(stream_id, [endpoint])
    world.emit(stream_id, *["a"] * 25)
    eventually(lambda: len(world.deliveries(stream_id)) == 25, "all deliveries")
    drop(world, stream_id, 20, "count")
    world.emit(stream_id, "b")
    eventually(lambda: len(world.deliveries(stream_id)) == 26, "one more")
    assert world.sql(GAPS, stream_id) == []


def continues_after_a_crash_of_the_database(world: World) -> None:
    """Check that a forwarder continues in a new segment: an `async` stream may have lost
    sequences.
    """
    stream_id = world.stream(durability="async")
    [endpoint] = world.endpoints()
    world.register(stream_id, [endpoint])
    world.emit(stream_id, "a", "a")
    eventually(lambda: len(world.deliveries(stream_id)) == 2, "the first deliveries")
    [[before]] = world.sql("SELECT segment FROM heads WHERE stream_id = %s", stream_id)
    world.sql("TRUNCATE incarnation")  # as every crash recovery does
    world.sql("SELECT prove_continuity(life, NULL, NULL, 0) FROM log_state")
    world.emit(stream_id, "b")
    [[after]] = world.sql("SELECT segment FROM heads WHERE stream_id = %s", stream_id)
    assert after != before
    eventually(lambda: len(world.deliveries(stream_id)) == 3, "a delivery of the new segment")
    assert world.sql(GAPS, stream_id) == []
