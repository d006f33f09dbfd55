"""Real forwarders: takeover after a kill, fencing after a suspension, version bounds under lag."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import pytest

from eventhub.base import limits
from tests.integration.forward_world import (
    ForwardProcess,
    Start,
    World,
    eventually,
    forwarders,
    world_database,
)

world = pytest.fixture(
    world_database
)  # one each: a forwarder loads the registrations of all its streams
start = pytest.fixture(forwarders)
TAKEOVER_S = 3.0  # what the documentation promises, on a machine that is not busy with tests
BUSY = 3
HISTORY = 9  # events of `history`


def owners(world: World, stream_id: int) -> str:
    rows = world.sql(
        "SELECT owner::text FROM forwarding WHERE stream_id = %s AND expires_at > now()", stream_id
    )
    return str(rows[0][0]) if rows else ""


def sequences(world: World, stream_id: int) -> list[int]:
    return [row[0] for row in world.deliveries(stream_id)]


def test_deliveries_are_the_same_whether_a_forwarder_is_prompt_stopped_or_late(
    world: World, start: Start
) -> None:
    """Registrations are created, changed and deleted between events: late or prompt, the deliveries
    are the same. A forwarder that is stopped releases its streams at once.
    """
    running = start()
    delivers_as_events_arrive(world)
    prompt, late = world.stream(), world.stream()
    expected = {prompt: history(world, prompt)}
    eventually(lambda: world.deliveries(prompt) == expected[prompt], "the prompt one")
    eventually(lambda: world.passed(prompt) == HISTORY, "its last event")
    running.stop()
    assert world.sql("SELECT count(*) FROM forwarding WHERE expires_at > now()") == [(0,)]
    assert world.passed(prompt) == HISTORY
    expected[late] = history(world, late)
    start()
    eventually(lambda: world.deliveries(late) == expected[late], "the late one")
    assert [row[0] for row in expected[late]] == [row[0] for row in expected[prompt]]


def delivers_as_events_arrive(world: World) -> None:
    """Check that events become deliveries for the registrations in force, unless they
    have expired.
    """
    stream_id = world.stream()
    one, two = world.endpoints(2)
    world.emit(stream_id, "a")  # before any registration
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


def history(world: World, stream_id: int) -> list[tuple[int, int, list[int]]]:
    """Emit events and change registrations in turn; return the expected deliveries."""
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


SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_sleep(2.4); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION slow();
"""


class Pair(NamedTuple):
    """Two forwarders, and a stream that one of them has leased."""

    world: World
    both: list[ForwardProcess]
    stream_id: int = 0

    def leader_first(self) -> list[ForwardProcess]:
        owner = owners(self.world, self.stream_id)
        assert owner
        return sorted(self.both, key=lambda process: owner not in process.log())

    def lost(self) -> int:
        return sum(process.log().count("lease_lost") for process in self.both)


@pytest.fixture(scope="module")
def _pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    logs = tmp_path_factory.mktemp("pair")
    with (
        contextmanager(world_database)() as world,
        contextmanager(forwarders)(world, logs) as start,
    ):
        yield Pair(world, [start(), start()])


@pytest.fixture
def pair(_pair: Pair) -> Pair:
    """Yield two forwarders of one database, shared by the tests that need two, with a new stream of
    which one event was delivered.
    """
    world = _pair.world
    stream_id = world.stream()
    world.register(stream_id, world.endpoints())
    world.emit(stream_id, "a")
    eventually(lambda: sequences(world, stream_id) == [1], "the first event")
    return _pair._replace(stream_id=stream_id)


def test_a_write_longer_than_the_lease_does_not_lose_the_stream(pair: Pair) -> None:
    """The lease ran from the start of the statement: on a busy machine every long one lost the
    stream to another forwarder, which had to load all registrations first. A process without any
    CPU time for as long as a lease may still lose it, but not every time.
    """
    world, stream_id = pair.world, pair.stream_id
    assert limits.FORWARD_LEASE_S < 2.4
    lost = pair.lost()
    world.sql(SLOW)
    try:
        [(before,)] = world.sql("SELECT epoch FROM forwarding WHERE stream_id = %s", stream_id)
        for number in range(2, 5):
            world.emit(stream_id, "a")
            eventually(lambda n=number: len(sequences(world, stream_id)) == n, "a delivery")
    finally:
        world.sql("DROP FUNCTION slow() CASCADE")
    [(after,)] = world.sql("SELECT epoch FROM forwarding WHERE stream_id = %s", stream_id)
    assert after - before <= 1
    assert pair.lost() - lost <= 1


def test_a_forwarder_suspended_past_its_lease_writes_nothing(pair: Pair) -> None:
    world, stream_id = pair.world, pair.stream_id
    leader, other = pair.leader_first()
    lost = leader.log().count("lease_lost")
    os.kill(leader.pid, signal.SIGSTOP)
    try:
        for _ in range(50):
            world.emit(stream_id, "b")
        eventually(lambda: len(sequences(world, stream_id)) == 51, "the other took over")
    finally:
        os.kill(leader.pid, signal.SIGCONT)
    eventually(lambda: leader.log().count("lease_lost") > lost, "the first knows that it lost")
    world.emit(stream_id, "c")
    eventually(lambda: 52 in sequences(world, stream_id), "an event after it")
    assert sequences(world, stream_id) == list(range(1, 53))
    assert owners(world, stream_id) in other.log()


def test_a_forwarder_that_is_killed_is_replaced_within_the_lease(pair: Pair) -> None:
    """The last of the pair's tests: one of the two is gone afterwards."""
    world, stream_id = pair.world, pair.stream_id
    leader, _ = pair.leader_first()
    leader.kill()
    world.emit(stream_id, "b")
    killed_s = time.monotonic()
    eventually(lambda: len(sequences(world, stream_id)) > 1, "the next event")
    assert time.monotonic() - killed_s < BUSY * TAKEOVER_S
    assert sequences(world, stream_id) == [1, 2]


# the fan-out waits for the test
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
    [registration] = world.register(wide, [narrow], "narrow")
    [beside] = world.register(other, [narrow])
    world.sql(HELD.format(endpoint=everybody[-1]))
    world.sql("SELECT pg_advisory_lock(1)")
    start()
    world.emit(wide, "wide", "narrow")
    world.emit(other, "a")
    next_one = "SELECT endpoint_id, registrations FROM deliveries WHERE stream_id = %s" \
               " AND sequence = 2 AND endpoint_id = %s"  # fmt: skip
    eventually(
        lambda: world.sql(next_one, wide, narrow) == [(narrow, [registration])],
        "the stream's next event",
        timeout_s=60,
    )
    eventually(lambda: world.deliveries(other) == [(1, narrow, [beside])], "the other stream")
    assert world.sql("SELECT count(*) FROM fanouts") == [(1,)]
    world.sql("SELECT pg_advisory_unlock(1)")
    query = "SELECT count(*), count(DISTINCT endpoint_id) FROM deliveries" \
           " WHERE stream_id = %s AND sequence = 1"  # fmt: skip
    eventually(lambda: world.sql(query, wide) == [(count, count)], "all", timeout_s=60)
    assert world.sql("SELECT count(*) FROM fanouts") == [(0,)]


def test_25_000_registrations_of_an_endpoint_give_one_delivery_and_do_not_stop_the_stream(
    world: World, start: Start
) -> None:
    """A batch is also cut by the registrations that its deliveries name: no statement is refused
    for its length.
    """
    stream_id, other = world.stream(), world.stream()
    many, one = world.endpoints(2)
    count = limits.REGISTRATIONS_PER_STATEMENT_MAX + 5_000
    registrations = world.register(stream_id, [many] * count, "a")
    [registration] = world.register(stream_id, [one], "a")
    world.register(other, [one])
    world.emit(stream_id, *["a"] * 60)
    start()
    world.emit(other, "b")
    eventually(lambda: world.deliveries(other) != [], "the other stream")
    query = "SELECT count(*), count(DISTINCT sequence) FROM deliveries" \
           " WHERE stream_id = %s AND endpoint_id = %s"  # fmt: skip
    for endpoint in (many, one):
        eventually(lambda e=endpoint: world.sql(query, stream_id, e) == [(60, 60)], "all", 90.0)
    named = (
        "SELECT DISTINCT registrations FROM deliveries WHERE stream_id = %s AND endpoint_id = %s"
    )
    assert world.sql(named, stream_id, one) == [([registration],)]
    assert world.sql(named, stream_id, many) == [(registrations,)]


def test_kill_between_the_batches_of_an_event(world: World, start: Start) -> None:
    """A kill -9 may leave any part of 8,000 deliveries; in the end each exists once."""
    stream_id = world.stream()
    count = limits.DELIVERIES_PER_STATEMENT_MAX + 3_000
    world.register(stream_id, world.endpoints(count))
    some = "SELECT 1 FROM deliveries WHERE stream_id = %s AND sequence = %s LIMIT 1"
    for round in (1, 2):
        running = start()
        world.emit(stream_id, "a")
        eventually(partial(world.sql, some, stream_id, round), "the first piece")
        running.kill()
    start()
    query = "SELECT sequence, count(*), count(DISTINCT endpoint_id) FROM deliveries" \
           " WHERE stream_id = %s GROUP BY 1 ORDER BY 1"  # fmt: skip
    expected = [(round, count, count) for round in (1, 2)]
    eventually(lambda: world.sql(query, stream_id) == expected, "all of them")
