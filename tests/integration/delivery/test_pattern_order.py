"""The order of a pattern group over several streams: outputs are those of one run of the engines in
the order of its journal, while patterns change, leases move and clocks are set back.
"""

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.event.envelope import Event
from registrations.purge import VersionPurge
from tests.integration.delivery.test_pattern_groups import TEXTS, typed
from tests.integration.forward_world import POLL_S, Start, eventually, forwarders
from tests.integration.patterns_world import PatternWorld, expected_matches, patterns_database

world = pytest.fixture(patterns_database)
start = pytest.fixture(forwarders)
EVENTS_MAX = 10_000  # of a load
BEHIND_MAX = 1_000  # events of all groups; then a load waits


def some_events(dice: random.Random, count: int) -> list[Event]:
    return [
        typed(dice.choice("AB"), number, k=dice.randrange(4), u=dice.randrange(5))
        for number in range(count)
    ]


def behind(world: PatternWorld) -> int:
    """Return how many events the groups have not consumed."""
    [[count]] = world.sql(
        "SELECT COALESCE(sum(h.sequence - c.s), 0) FROM heads h"
        " JOIN (SELECT unnest(streams), unnest(sequences) FROM pattern_leases) AS c (stream_id, s)"
        " USING (stream_id)"
    )
    return int(count)


@contextmanager
def load(world: PatternWorld, streams: Sequence[int]) -> Iterator[None]:
    """Append events to the streams, chosen at random, during the block, and some after it."""
    done, dice = threading.Event(), random.Random(11)

    def emit() -> None:
        sent = 0
        while not done.wait(POLL_S):
            if sent < EVENTS_MAX and behind(world) < BEHIND_MAX:
                world.emit_all(dice.choice(streams), some_events(dice, 20))
                sent += 20

    thread = threading.Thread(target=emit)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    for stream in streams:
        world.emit_all(stream, some_events(dice, 100))


def filled(world: PatternWorld, group: int, dice: random.Random, of_each: int = 4) -> list[int]:
    """Create patterns of each text in a group; return their ids."""
    made: list[int] = []
    for language, text in TEXTS:
        texts = [text.format(n=number) for number in range(of_each)]
        made += world.patterns(group, texts, language)
    dice.shuffle(made)
    return made


def test_patterns_change_under_load_exactly_between_two_events(
    world: PatternWorld, start: Start
) -> None:
    world.keep_journal()
    streams, out = [world.stream(), world.stream()], world.stream()
    group, dice = world.pattern_group(streams, out), random.Random(7)
    start()
    start()
    live, suspended = filled(world, group, dice), list[int]()
    with load(world, streams):
        for number in range(20):
            change = ("add", "change", "suspend", "resume", "end")[number % 5]
            language, text = dice.choice(TEXTS)
            for stream in streams:  # the change is known before these are consumed
                world.emit_all(stream, some_events(dice, 40))
            if change == "add":
                live += world.patterns(group, [text.format(n=dice.randrange(4))], language)
            elif change == "change":
                ready = [one for one in TEXTS if one[0] == "ready"]
                [[pattern]] = world.sql(
                    "SELECT max(pattern_id) FROM pattern_versions WHERE language = 'ready'"
                    " AND pattern_id = ANY (%s)",
                    live,
                )
                world.change_pattern(pattern, dice.choice(ready)[1].format(n=dice.randrange(4)))
            elif change == "suspend":
                suspended.append(live.pop(0))
                world.change_pattern(suspended[-1], suspended=True)
            elif change == "resume":
                live.append(suspended.pop(0))
                world.change_pattern(live[-1])
            else:
                world.end_pattern(live.pop(0))
    eventually(lambda: behind(world) == 0, "all events consumed")
    expected = expected_matches(world, group)
    assert len(expected) > 100
    assert world.placed_matches(out) == expected
    [[ended]] = world.sql("SELECT count(*) FROM pattern_versions WHERE until_barrier IS NOT NULL")
    assert ended == 16


def owners(world: PatternWorld) -> set[str]:
    """Return the forwarders that hold leases of groups."""
    rows = world.sql("SELECT owner::text FROM pattern_leases WHERE expires_at > clock_timestamp()")
    return {owner for (owner,) in rows}


def test_groups_move_between_forwarders_without_loss_or_repetition(
    world: PatternWorld, start: Start
) -> None:
    world.keep_journal()
    streams, dice = [world.stream(), world.stream()], random.Random(3)
    groups = {world.pattern_group(streams, out): out for out in [world.stream() for _ in range(4)]}
    for group in groups:
        filled(world, group, dice, of_each=2)
    processes = [start(), start()]
    with load(world, streams):
        for _ in range(2):  # each of the first two ends
            eventually(lambda: len(owners(world)) == 2, "both forwarders to run groups")
            stopped = processes.pop(0)
            [owner] = [one for one in owners(world) if one in stopped.log()]
            stopped.stop()
            assert owner not in owners(world)  # it released them; they need not expire
            processes.append(start())
    eventually(lambda: behind(world) == 0, "all events consumed")
    for group, out in groups.items():
        expected = expected_matches(world, group)
        assert len(expected) > 100
        assert world.placed_matches(out) == expected


def test_a_clock_that_is_set_back_neither_stops_a_group_nor_changes_the_order_of_a_stream(
    world: PatternWorld, start: Start
) -> None:
    """A page of one stream ends with earlier times than it begins, and more pages follow."""
    world.keep_journal()
    one, two, out = world.stream(), world.stream(), world.stream()
    group = world.pattern_group([one, two], out)
    world.patterns(group, ["{v[3..3]: A} where sum(v.n) >= 0", "{a: A}; {b: B}"])
    page = limits.PATTERN_READ_EVENTS_MAX
    for _ in range(3):
        world.emit_all(one, some_events(random.Random(5), page))
        world.emit_all(two, some_events(random.Random(6), page // 2))
    world.sql(
        "UPDATE events e"
        "   SET appended_at = appended_at - make_interval(hours => (sequence / %s)::int)"
        "  FROM segments s WHERE s.id = e.segment_id AND s.stream_id = %s",
        page // 2,
        one,
    )
    start()
    eventually(lambda: behind(world) == 0, "all events consumed")
    expected = expected_matches(world, group)
    assert len(expected) > 100
    assert world.placed_matches(out) == expected


def purge_old(world: PatternWorld, tmp_path: Path) -> int:
    """Backdate all changes so far, and purge; return the number of deleted versions."""
    world.sql(
        "UPDATE barriers SET created_at = now() - make_interval(secs => %s)",
        limits.VERSIONS_RETAINED_S + 60,
    )
    world.sql("UPDATE patterns SET deleted_at = deleted_at - interval '1 month'")
    return VersionPurge(SystemClock()).run(world.url, tmp_path).versions


def version_count(world: PatternWorld, pattern: int) -> int:
    [[count]] = world.sql("SELECT count(*) FROM pattern_versions WHERE pattern_id = %s", pattern)
    return int(count)


def test_versions_are_purged_when_no_forwarder_needs_them(
    world: PatternWorld, start: Start, tmp_path: Path
) -> None:
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    [pattern] = world.patterns(group, ["{a: A}; {b: B}"])
    [other] = world.patterns(group, ["{a: A} do announce(d::X, {n = a.n})"])
    last_hop = {"eventhub.hop_limit": "1"}
    world.emit_all(stream, [typed("A", 1)._replace(environment=last_hop)])
    world.change_pattern(pattern, "{a: A}; {c: C}")
    world.end_pattern(other)
    assert purge_old(world, tmp_path) == 0  # no forwarder has passed their end
    first = start()
    eventually(lambda: behind(world) == 0, "all events consumed")
    assert world.sql("SELECT pattern_id FROM pattern_statuses") == [(other,)]
    assert purge_old(world, tmp_path) == 0  # the snapshot or the journal names them

    def is_purged() -> bool:
        world.emit_all(stream, [typed("X")])  # with which a snapshot is written
        return purge_old(world, tmp_path) == 2

    eventually(is_purged, "the next snapshot")
    assert (version_count(world, pattern), version_count(world, other)) == (1, 0)
    assert world.sql("SELECT pattern_id FROM pattern_statuses") == []
    world.emit_all(stream, [typed("A", 3)])
    eventually(lambda: behind(world) == 0, "all events consumed")
    first.kill()
    start()
    world.emit_all(stream, [typed("C", 4)])
    eventually(lambda: len(world.matches(out)) == 1, "the match across the purge and the restart")
    [(matched, bound)] = world.matches(out)
    assert matched == pattern
    assert bound["c"] == [bound["a"][0] + 1]
