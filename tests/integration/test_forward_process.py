"""Real forwarders: takeover after a kill, fencing after a stop, bounds of versions under lag."""

import os
import signal
import time
from functools import partial

import pytest

from eventhub import limits
from tests.integration.forward_world import (
    Start,
    World,
    eventually,
    forwarders,
    world_database,
)

world = pytest.fixture(world_database)  # one each: a forwarder loads what all streams have
start = pytest.fixture(forwarders)
TAKEOVER_S = 3.0  # what the documentation promises, on a machine that is not busy with tests
BUSY = 3


def owners(world: World, stream_id: int) -> str:
    rows = world.sql(
        "SELECT owner::text FROM forwarding WHERE stream_id = %s AND expires_at > now()", stream_id
    )
    return str(rows[0][0]) if rows else ""


def sequences(world: World, stream_id: int) -> list[int]:
    return [row[0] for row in world.deliveries(stream_id)]


def test_events_become_deliveries(world: World, start: Start) -> None:
    stream_id = world.stream()
    one, two = world.endpoints(2)
    start()
    world.emit(stream_id, "a")  # before anybody is interested
    [first] = world.register(stream_id, [one], "a")
    [second] = world.register(stream_id, [one], "a")
    [third] = world.register(stream_id, [two])
    world.emit(stream_id, "a", "b")
    expected = [(2, one, [first, second]), (2, two, [third]), (3, two, [third])]
    eventually(lambda: world.deliveries(stream_id) == expected, "three deliveries")
    world.emit(stream_id, "a", expires_at_us=1)
    world.emit(stream_id, "c")
    expected.append((5, two, [third]))
    eventually(lambda: world.deliveries(stream_id) == expected, "the expired one left out")


def test_a_forwarder_that_is_killed_is_replaced_within_the_lease(
    world: World, start: Start
) -> None:
    stream_id = world.stream()
    world.register(stream_id, world.endpoints())
    both = [start(), start()]
    world.emit(stream_id, "a")
    eventually(lambda: sequences(world, stream_id) == [1], "the first event")
    [leader] = [process for process in both if owners(world, stream_id) in process.log()]
    leader.kill()
    world.emit(stream_id, "b")
    killed_s = time.monotonic()
    eventually(lambda: len(sequences(world, stream_id)) > 1, "the next event")
    assert time.monotonic() - killed_s < BUSY * TAKEOVER_S
    assert sequences(world, stream_id) == [1, 2]


def test_a_forwarder_that_was_stopped_past_its_lease_writes_nothing(
    world: World, start: Start
) -> None:
    stream_id = world.stream()
    world.register(stream_id, world.endpoints())
    leader = start()
    world.emit(stream_id, "a")
    eventually(lambda: sequences(world, stream_id) == [1], "the first event")
    other = start()
    os.kill(leader.pid, signal.SIGSTOP)
    try:
        for _ in range(50):
            world.emit(stream_id, "b")
        eventually(lambda: len(sequences(world, stream_id)) == 51, "the other took over")
    finally:
        os.kill(leader.pid, signal.SIGCONT)
    eventually(lambda: "lease_lost" in leader.log(), "the first knows that it lost")
    world.emit(stream_id, "c")
    eventually(lambda: 52 in sequences(world, stream_id), "an event after it")
    assert sequences(world, stream_id) == list(range(1, 53))
    assert owners(world, stream_id) in other.log()


def test_a_forwarder_that_is_told_to_stop_frees_its_streams_at_once(
    world: World, start: Start
) -> None:
    stream_id = world.stream()
    world.register(stream_id, world.endpoints())
    first = start()
    world.emit(stream_id, "a")
    eventually(lambda: sequences(world, stream_id) == [1], "the first event")
    first.stop()
    assert world.sql("SELECT count(*) FROM forwarding WHERE expires_at > now()") == [(0,)]
    assert world.passed(stream_id) == 1


def test_bounds_hold_for_a_forwarder_that_was_not_there(world: World, start: Start) -> None:
    """Created, changed and deleted between events: late or prompt, the same is owed."""
    prompt, late = world.stream(), world.stream()
    expected = {}
    running = start()
    expected[prompt] = history(world, prompt)
    eventually(lambda: world.deliveries(prompt) == expected[prompt], "the prompt one")
    running.stop()
    expected[late] = history(world, late)
    start()
    eventually(lambda: world.deliveries(late) == expected[late], "the late one")
    assert [row[0] for row in expected[late]] == [row[0] for row in expected[prompt]]


def history(world: World, stream_id: int) -> list[tuple[int, int, list[int]]]:
    """Events and changes of registrations in turn; what is owed."""
    one, two = world.endpoints(2)
    world.emit(stream_id, "a")
    [first] = world.register(stream_id, [one], "a")
    world.emit(stream_id, "a", "b")  # 2 to one
    [second] = world.register(stream_id, [two], "b")
    world.emit(stream_id, "b")  # 4 to two
    world.change(first, stream_id, "b")
    world.emit(stream_id, "a", "b")  # 6 to both
    world.change(second, stream_id, None)
    world.emit(stream_id, "b")  # 7 to one
    world.change(first, stream_id, None)
    world.emit(stream_id, "a", "b")
    return [(2, one, [first]), (4, two, [second]), (6, one, [first]), (6, two, [second]),
            (7, one, [first])]  # fmt: skip


# the end of a fan-out waits until the test lets it go on
HELD = """
CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$;
CREATE TRIGGER held BEFORE INSERT ON deliveries FOR EACH ROW
    WHEN (NEW.endpoint_id = {endpoint}) EXECUTE FUNCTION held();
"""


def test_a_fan_out_delays_neither_its_own_stream_nor_another(world: World, start: Start) -> None:
    wide, other = world.stream(), world.stream()
    count = limits.FANOUT_ENDPOINTS_MIN + limits.DELIVERIES_PER_STATEMENT_MAX
    everybody = world.endpoints(count)
    world.register(wide, everybody, "wide")
    [narrow] = world.endpoints()
    [ticket] = world.register(wide, [narrow], "narrow")
    [beside] = world.register(other, [narrow])
    world.sql(HELD.format(endpoint=everybody[-1]))
    world.sql("SELECT pg_advisory_lock(1)")
    start()
    world.emit(wide, "wide", "narrow")
    world.emit(other, "a")
    next_one = "SELECT endpoint_id, registrations FROM deliveries WHERE stream_id = %s" \
               " AND sequence = 2 AND endpoint_id = %s"  # fmt: skip
    eventually(
        lambda: world.sql(next_one, wide, narrow) == [(narrow, [ticket])],
        "the stream's next event",
        timeout_s=60,
    )
    eventually(lambda: world.deliveries(other) == [(1, narrow, [beside])], "the other stream")
    assert world.sql("SELECT count(*) FROM fanouts") == [(1,)]
    world.sql("SELECT pg_advisory_unlock(1)")
    owed = "SELECT count(*), count(DISTINCT endpoint_id) FROM deliveries" \
           " WHERE stream_id = %s AND sequence = 1"  # fmt: skip
    eventually(lambda: world.sql(owed, wide) == [(count, count)], "all", timeout_s=60)
    assert world.sql("SELECT count(*) FROM fanouts") == [(0,)]


def test_many_registrations_of_one_endpoint_are_one_delivery(world: World, start: Start) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    count = limits.REGISTRATIONS_PER_STATEMENT_MAX + 5_000
    tickets = world.register(stream_id, [endpoint] * count)
    start()
    world.emit(stream_id, "a")
    eventually(lambda: world.deliveries(stream_id) != [], "the delivery", timeout_s=60)
    assert world.deliveries(stream_id) == [(1, endpoint, tickets)]


def test_one_who_registers_twenty_thousand_times_does_not_stop_the_stream(
    world: World, start: Start
) -> None:
    """A batch is cut by what its deliveries name too: no statement is refused for its length."""
    stream_id, other = world.stream(), world.stream()
    many, one = world.endpoints(2)
    world.register(stream_id, [many] * 20_000, "a")
    [ticket] = world.register(stream_id, [one], "a")
    world.register(other, [one])
    world.emit(stream_id, *["a"] * 60)
    start()
    world.emit(other, "b")
    eventually(lambda: world.deliveries(other) != [], "the other stream")
    count = "SELECT count(*), sum(cardinality(registrations)) FROM deliveries WHERE stream_id = %s"
    expected = [(120, 60 * 20_001)]
    eventually(lambda: world.sql(count, stream_id) == expected, "all deliveries", timeout_s=90)
    named = (
        "SELECT DISTINCT registrations FROM deliveries WHERE stream_id = %s AND endpoint_id = %s"
    )
    assert world.sql(named, stream_id, one) == [([ticket],)]


def test_kill_between_the_pieces_of_an_event(world: World, start: Start) -> None:
    """Whatever a kill -9 leaves of 8,000 deliveries, each is there once in the end."""
    stream_id = world.stream()
    count = limits.DELIVERIES_PER_STATEMENT_MAX + 3_000
    world.register(stream_id, world.endpoints(count))
    some = "SELECT 1 FROM deliveries WHERE stream_id = %s AND sequence = %s LIMIT 1"
    for round in range(1, 4):
        running = start()
        world.emit(stream_id, "a")
        eventually(partial(world.sql, some, stream_id, round), "the first piece")
        running.kill()
    start()
    owed = "SELECT sequence, count(*), count(DISTINCT endpoint_id) FROM deliveries" \
           " WHERE stream_id = %s GROUP BY 1 ORDER BY 1"  # fmt: skip
    expected = [(round, count, count) for round in range(1, 4)]
    eventually(lambda: world.sql(owed, stream_id) == expected, "all of them")


SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_sleep(2.4); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION slow();
"""


def test_a_write_longer_than_the_lease_does_not_lose_the_stream(world: World, start: Start) -> None:
    """The lease ran from the beginning of the statement: on a busy machine every long one ended
    with the stream in other hands, which had to load all registrations first. A process that gets
    no time at all for as long as a lease may still lose it, but not every time.
    """
    stream_id = world.stream()
    world.register(stream_id, world.endpoints())
    both = [start(), start()]
    eventually(lambda: owners(world, stream_id), "the lease")
    assert limits.FORWARD_LEASE_S < 2.4
    world.sql(SLOW)
    try:
        [(before,)] = world.sql("SELECT epoch FROM forwarding WHERE stream_id = %s", stream_id)
        for number in range(1, 4):
            world.emit(stream_id, "a")
            eventually(lambda n=number: len(sequences(world, stream_id)) == n, "a delivery")
    finally:
        world.sql("DROP FUNCTION slow() CASCADE")
    [(after,)] = world.sql("SELECT epoch FROM forwarding WHERE stream_id = %s", stream_id)
    assert after - before <= 1
    assert (both[0].log() + both[1].log()).count("lease_lost") <= 1
