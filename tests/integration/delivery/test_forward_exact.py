"""Exactness under change: the deliveries that forwarders write equal those expected from the
tables, event by event, under any race, kill or disconnection.
"""

import random
import threading

import pytest

from eventhub.event.protobuf_codec import decode
from tests.integration.forward_world import Start, World, eventually, forwarders, world_database

world = pytest.fixture(scope="module")(world_database)
start = pytest.fixture(forwarders)
TYPES = ("a", "b", "c", None)
ExpectedDeliveries = list[tuple[int, int, list[int]]]
CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'eventhub%%'
       AND pid <> pg_backend_pid()
"""


def expected_deliveries(world: World, stream_id: int) -> ExpectedDeliveries:
    """Return the expected deliveries by a scan of all versions for every event, from the tables
    alone.
    """
    versions = world.sql(
        "SELECT v.registration_id, v.endpoint_id, v.filter->>'type',"
        " f.sequences[array_position(f.streams, %s)], u.sequences[array_position(u.streams, %s)]"
        " FROM registration_versions v JOIN barriers f ON f.id = v.from_barrier"
        " LEFT JOIN barriers u ON u.id = v.until_barrier WHERE %s = ANY (v.streams)",
        *(stream_id, stream_id, stream_id),
    )
    events = world.sql(
        "SELECT e.sequence, e.payload FROM events e JOIN segments s ON s.id = e.segment_id"
        " WHERE s.stream_id = %s",
        stream_id,
    )
    found: dict[tuple[int, int], list[int]] = {}
    for sequence, payload in events:
        its_type = decode(payload).type
        for registration, endpoint, type, since, until in versions:
            inside = since < sequence and (until is None or sequence <= until)
            if inside and type in (None, its_type):
                found.setdefault((sequence, endpoint), []).append(registration)
    return [(*key, sorted(registrations)) for key, registrations in sorted(found.items())]


def change_at_random(world: World, stream_id: int, done: threading.Event) -> None:
    """Create, change and end registrations until stopped."""
    chance = random.Random(7)
    endpoints = world.endpoints(5)
    live: list[int] = []
    while not done.is_set():
        if len(live) < 3 or chance.random() < 0.3:
            live += world.register(stream_id, [chance.choice(endpoints)], chance.choice(TYPES))
        elif chance.random() < 0.5:
            world.change(chance.choice(live), stream_id, chance.choice(TYPES[:3]))
        else:
            world.change(live.pop(chance.randrange(len(live))), stream_id, None)


def emit_at_random(world: World, stream_id: int, events: int) -> None:
    chance = random.Random(11)
    while events > 0:
        batch = [chance.choice("abc") for _ in range(min(events, chance.randint(1, 5)))]
        world.emit(stream_id, *batch)
        events -= len(batch)


def test_changes_that_race_with_events_while_forwarders_die(world: World, start: Start) -> None:
    stream_id = world.stream(segment_events_max=100)
    first, _ = start(), start()
    done = threading.Event()
    changes = threading.Thread(target=change_at_random, args=(world, stream_id, done))
    changes.start()
    try:
        emit_at_random(world, stream_id, 400)
        first.kill()
        emit_at_random(world, stream_id, 200)
        world.sql(CUT)
        start()
        emit_at_random(world, stream_id, 200)
        world.sql(CUT)
        emit_at_random(world, stream_id, 200)
    finally:
        done.set()
        changes.join()
    eventually(lambda: world.passed(stream_id) == 1_000, "all is matched")
    expected = expected_deliveries(world, stream_id)
    assert len({row[0] for row in expected}) > 500
    assert world.deliveries(stream_id) == expected


def test_registrations_are_added_without_a_rebuild(world: World, start: Start) -> None:
    """The matcher is built once, when the lease is taken; later registrations are added
    in place.
    """
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    registrations = world.register(stream_id, [endpoint])
    running = start()
    loaded = f"reason=lease strategy=auto stream={stream_id} "
    eventually(lambda: loaded in running.log(), "the matcher is there")
    expected: ExpectedDeliveries = []
    for sequence in range(1, 21):
        world.emit(stream_id, "a")
        expected.append((sequence, endpoint, registrations[:]))
        registrations += world.register(stream_id, [endpoint])
    eventually(lambda: world.deliveries(stream_id) == expected, "each from the next event on")
    fields = (f" stream={stream_id} ", f" stream_id={stream_id} ")  # of a load, and of a lease
    lines = [
        line for line in running.log().splitlines() if any(field in f"{line} " for field in fields)
    ]
    loads = [line for line in lines if "interest_loaded" in line]
    assert len(loads) == sum("lease_taken" in line for line in lines)
    assert not [line for line in loads if "reason=lease" not in line]
