"""Pattern groups that cannot run, and those that have nothing to run."""

from pathlib import Path

import psycopg
import pytest

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from registrations.pattern_groups.ending import EndingGroup, end_groups
from registrations.purge import VersionPurge
from registrations.statements import fill_barrier, new_barrier
from tests.integration.delivery.test_pattern_groups import typed
from tests.integration.forward_world import Start, eventually, forwarders
from tests.integration.patterns_world import PatternWorld, patterns_database

world = pytest.fixture(patterns_database)
start = pytest.fixture(forwarders)


def fault(world: PatternWorld, group: int) -> str | None:
    [[found]] = world.sql("SELECT fault->>'code' FROM pattern_leases WHERE group_id = %s", group)
    return None if found is None else str(found)


def test_a_group_whose_state_cannot_be_read_says_so_until_it_begins_again(
    world: PatternWorld, start: Start
) -> None:
    """It was tried again every 3 s, and only a forwarder's log said so."""
    first = start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    [pattern] = world.patterns(group, ["{a: A}; {b: B}"])
    world.emit_all(stream, [typed("A")])
    eventually(lambda: world.consumed(group)[1] == [1], "consumed")
    first.kill()
    world.sql("UPDATE pattern_states SET state = 'damaged'")
    start()
    world.emit_all(stream, [typed("B")])
    eventually(lambda: fault(world, group) == "state_unreadable", "the fault")
    [stopped] = world.system_events("pattern_group.stopped")
    assert (stopped["pattern_group"], stopped["client"]) == (group, "c")
    assert "Suspend the group and resume it" in stopped["message"]
    world.change_pattern(pattern, suspended=True)
    world.change_pattern(pattern)
    world.emit_all(stream, [typed("B"), typed("A"), typed("B")])
    eventually(lambda: len(world.matches(out)) == 1, "the match of the version that began")
    assert world.matches(out) == [(pattern, {"a": [4], "b": [5]})]
    assert fault(world, group) is None
    [started] = world.system_events("pattern_group.started")
    assert started["pattern_group"] == group
    assert len(world.system_events("pattern_group.stopped")) == 1


def test_a_group_without_patterns_writes_nothing_while_events_flow(
    world: PatternWorld, start: Start
) -> None:
    """It wrote a row of its journal each second."""
    start()
    world.keep_journal()
    stream, out = world.stream(), world.stream()
    other, group = world.pattern_group([stream], out), world.pattern_group([stream], out)
    world.patterns(other, ["{z: Z}"])
    for number in range(1, 4):  # the other one writes once a second
        world.emit_all(stream, [typed("A")])
        eventually(lambda number=number: world.consumed(other)[1] == [number], "the other's write")
    assert world.consumed(group)[1] == [0]
    assert world.sql("SELECT 1 FROM kept_journal WHERE group_id = %s", group) == []
    recalling = "(event (@type 'A) (n ?n)) (event (@type 'B) (n ?m)) (test (= ?n ?m))"
    [pattern] = world.patterns(group, [recalling], "temporal", recent=True)
    world.emit_all(stream, [typed("B")])
    eventually(lambda: world.consumed(group) == (4, [4]), "consumed")
    assert {found for found, _ in world.matches(out)} == {pattern}
    assert world.order(group) == [(stream, number) for number in range(1, 5)]


def test_deleted_patterns_and_groups_are_purged(
    world: PatternWorld, start: Start, tmp_path: Path
) -> None:
    """Their rows stayed for ever."""
    stream = world.stream()
    group, kept = world.pattern_group([stream]), world.pattern_group([stream])
    deleted, live = world.patterns(kept, ["{a: A}", "{b: B}"])
    world.patterns(group, ["{a: A}"])
    world.emit_all(stream, [typed("A")])
    world.end_pattern(deleted)
    with psycopg.connect(world.url) as connection:
        barrier = new_barrier(connection)
        end_groups(connection, [EndingGroup(group, "g", [stream], 1)], barrier)
        fill_barrier(connection, barrier, [stream])
    purge = VersionPurge(SystemClock())
    purge.run(world.url, tmp_path)
    assert len(world.sql("SELECT 1 FROM patterns")) == 3  # they ended just now
    ago = limits.VERSIONS_RETAINED_S + 60
    world.sql("UPDATE barriers SET created_at = now() - make_interval(secs => %s)", ago)
    for table in ("patterns", "pattern_groups"):
        query = f"UPDATE {table} SET deleted_at = deleted_at - make_interval(secs => %s)"
        world.sql(query, ago)
    purge.run(world.url, tmp_path)
    assert world.sql("SELECT id FROM pattern_groups") == [(kept,)]
    # a forwarder has not passed the end of the other one
    assert world.sql("SELECT id FROM patterns ORDER BY id") == [(deleted,), (live,)]
    start()

    def is_purged() -> bool:
        world.emit_all(stream, [typed("A")])  # with which a snapshot is written
        purge.run(world.url, tmp_path)
        return world.sql("SELECT id FROM patterns") == [(live,)]

    eventually(is_purged, "the next snapshot")
