"""Pattern groups that are expensive, large or full: what they do to themselves and to others."""

import asyncio
import threading

import psycopg
import pytest

from delivery.patterns.group_tables import GroupLease
from delivery.patterns.restoring import StoredGroup, load_group
from eventhub.base import limits
from eventhub.postgresql.arrays import adapt
from registrations.pattern_groups.ending import EndingGroup, end_groups
from registrations.statements import new_barrier
from tests.integration.delivery.test_pattern_groups import typed
from tests.integration.forward_world import Start, eventually, forwarders
from tests.integration.patterns_world import PatternWorld, patterns_database

world = pytest.fixture(patterns_database)
start = pytest.fixture(forwarders)

# nearly as many steps as a run may take: legal, and expensive
BUSY = "(on (= @type 'A)) (define n 0) (while (< n 1000) (set! n (+ n 1)))"


def test_a_group_whose_patterns_are_expensive_delays_no_other_group(
    world: PatternWorld, start: Start
) -> None:
    """One event of a group with many agents took seconds, in which the forwarder did nothing
    else.
    """
    start()
    busy, stream, out = world.stream(), world.stream(), world.stream()
    expensive = world.pattern_group([busy])
    group = world.pattern_group([stream], out)
    world.patterns(expensive, [BUSY] * 600, "agent")
    world.patterns(group, ["{a: A}"])
    for one, other in ((busy, expensive), (stream, group)):
        world.emit_all(one, [typed("X")])
        eventually(lambda other=other: world.consumed(other)[1] == [1], "all versions added")
    world.emit_all(busy, [typed("A")])
    world.emit_all(stream, [typed("A")])
    eventually(lambda: len(world.matches(out)) == 1, "the match of the other group")
    assert world.consumed(expensive)[1] == [1]
    eventually(lambda: world.consumed(expensive)[1] == [2], "the expensive event")
    assert world.system_events("pattern.suspended") == []


def test_the_outputs_of_one_event_are_bounded_in_bytes(world: PatternWorld, start: Start) -> None:
    """Many patterns that copy a large attribute: a forwarder kept and wrote all copies at once."""
    start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    world.patterns(group, ["{a: A} do announce(d::B, {x = a.x})"] * 400)
    world.emit_all(stream, [typed("A", x="x" * 60_000)])
    eventually(lambda: world.consumed(group)[1] == [1], "consumed")
    found = [one.event for one in world.events(out)]
    size = sum(len(one.attributes["x"]) for one in found)
    assert 0.9 < size / limits.PATTERN_OUTPUT_BYTES_PER_EVENT_MAX <= 1
    [[lost]] = world.sql("SELECT sum((dropped->>'outputs_max')::int) FROM pattern_statuses")
    assert lost == 400 - len(found)


def test_an_output_is_an_event_that_could_be_emitted(world: PatternWorld, start: Start) -> None:
    """An agent announced more values than an event may have, each of which is work for filters."""
    start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    text = "(announce 'many (object 'list (range {})))"
    world.patterns(group, [text.format(limits.ATTRIBUTES_VALUES_MAX)], "agent")
    world.patterns(group, [text.format(limits.ATTRIBUTES_VALUES_MAX - 1)], "agent")
    world.emit_all(stream, [typed("A")])
    eventually(lambda: world.consumed(group)[1] == [1], "consumed")
    [found] = world.events(out)
    assert len(found.event.attributes["list"]) == limits.ATTRIBUTES_VALUES_MAX - 1
    assert [one["reason"] for one in world.system_events("pattern.dropped")] == ["event_too_large"]


def test_outputs_do_not_exceed_the_stored_bytes_of_a_zone(
    world: PatternWorld, start: Start
) -> None:
    start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    [pattern] = world.patterns(group, ["{a: A}"])
    world.sql(
        "INSERT INTO quotas (zone_id, kind, value, reached_at)"
        " VALUES (%s, 'stored_bytes', 1, now())",
        world.zone,
    )
    world.emit_all(stream, [typed("A")])
    eventually(lambda: world.consumed(group)[1] == [1], "consumed")
    assert world.events(out) == []
    [dropped] = world.system_events("pattern.dropped")
    assert (dropped["pattern"], dropped["reason"]) == (pattern, "zone_storage_full")
    world.sql("UPDATE quotas SET reached_at = NULL")
    world.emit_all(stream, [typed("A")])
    eventually(lambda: len(world.events(out)) == 1, "the second match")


def test_outputs_count_as_events_per_second_and_wait(world: PatternWorld, start: Start) -> None:
    start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    world.patterns(group, ["{a: A}"])
    world.sql(
        "INSERT INTO quotas (zone_id, client_id, kind, value) VALUES (%s, %s, 'events_per_s', 10)",
        *(world.zone, world.client),
    )
    world.emit_all(stream, [typed("A")] * 30)
    eventually(lambda: len(world.events(out)) == 30, "the first outputs")
    world.emit_all(stream, [typed("A")])
    eventually(lambda: len(world.events(out)) == 31, "the output that waited")
    [[waited]] = world.sql(
        "SELECT max(e.appended_at) - min(e.appended_at) FROM segments g"
        " JOIN events e ON e.segment_id = g.id WHERE g.stream_id = %s",
        out,
    )
    assert waited.total_seconds() > 1.5  # 20 events too many, 10 in a second


def test_a_journal_that_is_long_after_a_restart_is_replaced_by_a_snapshot(
    world: PatternWorld, start: Start
) -> None:
    """Forwarders that were killed every few seconds never wrote a snapshot."""
    first = start()
    stream = world.stream()
    group = world.pattern_group([stream])
    world.patterns(group, ["{a: A}; {b: B}"])
    world.emit_all(stream, [typed("A")])
    eventually(lambda: world.consumed(group)[1] == [1], "consumed")
    first.kill()
    last = limits.PATTERN_SNAPSHOT_EVENTS_MAX + 1
    world.sql("DELETE FROM pattern_journal")
    world.sql(
        "WITH moved AS (UPDATE pattern_leases SET position = %s RETURNING group_id)"
        " INSERT INTO pattern_journal (group_id, first, last, streams, segments, firsts, lasts,"
        " added, removed) SELECT group_id, 2, %s, '{}', '{}', '{}', '{}', '{}', '{}' FROM moved",
        last,
        last,
    )
    start()
    world.emit_all(stream, [typed("A")])
    eventually(lambda: world.consumed(group) == (last + 1, [2]), "consumed again")
    assert world.sql("SELECT position FROM pattern_states") == [(last + 1,)]
    assert world.sql("SELECT first FROM pattern_journal") == []


def test_a_change_without_visible_events_is_not_lost_by_a_kill(
    world: PatternWorld, start: Start
) -> None:
    """A change is written with the events after it, not with a snapshot of its own."""
    forwarder = start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    world.patterns(group, ["{z: Z}"])
    world.emit_all(stream, [typed("A")])
    eventually(lambda: world.consumed(group)[1] == [1], "consumed")
    [pattern] = world.patterns(group, ["{a: A}; {b: B}; {c: C}"])
    kinds = ("hidden", "A"), ("hidden", "B"), ("hidden", "C")
    hidden = typed("A")._replace(destinations=("nobody",))
    at = 1
    for kind in kinds:
        for one in kind:
            world.emit_all(stream, [hidden if one == "hidden" else typed(one)])
            at += 1
            eventually(lambda at=at: world.consumed(group)[1] == [at], "consumed")
            forwarder.kill()
            forwarder = start()
    eventually(lambda: len(world.matches(out)) == 1, "the match")
    assert world.matches(out) == [(pattern, {"a": [3], "b": [5], "c": [7]})]


def test_a_restart_reads_no_version_that_the_group_has_passed(
    world: PatternWorld, start: Start
) -> None:
    """A group that was suspended and resumed often had thousands, each with its text."""
    forwarder = start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    for number in range(1, 4):
        [pattern] = world.patterns(group, ["{a: A}"])
        world.emit_all(stream, [typed("A")])
        eventually(lambda number=number: world.consumed(group)[1] == [number], "consumed")
        world.end_pattern(pattern)
    [last] = world.patterns(group, ["{a: A}"])
    world.emit_all(stream, [typed("A")])
    eventually(lambda: world.consumed(group)[1] == [4], "consumed")
    forwarder.kill()
    world.sql("DELETE FROM pattern_journal")
    world.sql("UPDATE pattern_states SET versions = '{}'")
    [lease] = world.sql("SELECT group_id, epoch FROM pattern_leases")

    async def load() -> StoredGroup | None:
        connection = await psycopg.AsyncConnection.connect(world.url, autocommit=True)
        async with connection:
            adapt(connection)
            return await load_group(connection, GroupLease(*lease), 0.0)

    found = asyncio.run(load())
    assert found is not None
    assert [one.pattern for one in found.versions.values()] == [last]


def test_a_group_that_ends_during_a_checkpoint_leaves_nothing(
    world: PatternWorld, start: Start
) -> None:
    """What the checkpoint stored was not seen by the statement that deleted it."""
    stream = world.stream()
    group = world.pattern_group([stream])
    world.patterns(group, ["{a: A}"])
    ended = EndingGroup(group, "g", [stream], 1)

    def end() -> None:
        with psycopg.connect(world.url) as connection:
            barrier = new_barrier(connection)
            end_groups(connection, [ended], barrier)

    ending = threading.Thread(target=end)
    with psycopg.connect(world.url) as checkpoint:
        checkpoint.execute("UPDATE pattern_leases SET position = 1 WHERE group_id = %s", (group,))
        ending.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        eventually(lambda: bool(world.sql(waiting)), "the end waits for the checkpoint")
        checkpoint.execute(
            "INSERT INTO pattern_journal (group_id, first, last, streams, segments, firsts, lasts,"
            " added, removed) VALUES (%s, 1, 1, '{}', '{}', '{}', '{}', '{}', '{}')",
            (group,),
        )
    ending.join()
    for table in ("pattern_leases", "pattern_journal", "pattern_states", "pattern_statuses"):
        assert world.sql(f"SELECT 1 FROM {table} WHERE group_id = %s", group) == [], table


def test_outputs_have_the_new_name_of_a_renamed_group(world: PatternWorld, start: Start) -> None:
    start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    world.patterns(group, ["{a: A}"])
    world.emit_all(stream, [typed("A")])
    eventually(lambda: len(world.events(out)) == 1, "the first match")
    world.sql("UPDATE pattern_groups SET name = 'renamed' WHERE id = %s", group)
    world.patterns(group, ["{a: Z}"])  # announced, like a new name
    world.emit_all(stream, [typed("A")])
    eventually(lambda: len(world.events(out)) == 2, "the second match")
    assert world.events(out)[1].event.attributes["group"] == "renamed"
