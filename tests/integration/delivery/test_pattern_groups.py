"""Pattern groups in real forwarders: the outputs are those of one uninterrupted run, in any
process, and however often it is killed.
"""

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.patterns.pattern_engine import EventPosition
from tests.integration.forward_world import Start, eventually, forwarders
from tests.integration.patterns_world import PatternWorld, patterns_database, uninterrupted

world = pytest.fixture(patterns_database)
start = pytest.fixture(forwarders)


def typed(type: str, number: int = 0, **attributes: object) -> Event:
    return Event("d", type, {"n": number, **attributes})


def test_a_match_is_an_event_for_its_owner(world: PatternWorld, start: Start) -> None:
    start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    [pattern] = world.patterns(group, ["{a: A}; {b: B | $n > 1}"])
    world.emit_all(stream, [typed("A", 1), typed("B", 1), typed("B", 2), typed("B", 3)])
    eventually(lambda: world.consumed(group) == (4, [4]), "all events consumed")
    [output] = world.events(out)
    event = output.event
    assert (event.domain, event.type, event.destinations) == ("eventhub", "pattern.matched", ("c",))
    assert event.attributes["pattern"] == pattern
    assert [one["sequence"] for one in event.attributes["bindings"]["a"]] == [1]
    assert [one["sequence"] for one in event.attributes["bindings"]["b"]] == [3]
    assert event.cause.endswith(":3")
    [[matches]] = world.sql("SELECT matches FROM pattern_statuses WHERE pattern_id = %s", pattern)
    assert matches == 1


def test_a_version_gets_the_events_between_its_barriers(world: PatternWorld, start: Start) -> None:
    """Also if the forwarder comes much later, and with two streams."""
    one, two, out = world.stream(), world.stream(), world.stream()
    group = world.pattern_group([one, two], out)
    world.patterns(group, ["{z: Z}"])  # a group without patterns does not write at once
    world.emit_all(one, [typed("A", 1)])
    world.emit_all(two, [typed("A", 1), typed("A", 2)])
    [pattern] = world.patterns(group, ["{a: A}"])
    world.emit_all(two, [typed("A", 3)])
    world.emit_all(one, [typed("A", 2)])
    world.end_pattern(pattern)
    world.emit_all(one, [typed("A", 3)])
    world.emit_all(two, [typed("A", 4)])
    start()
    eventually(lambda: world.consumed(group) == (7, [3, 4]), "all events consumed")
    assert world.matches(out) == [(pattern, {"a": [3]}), (pattern, {"a": [2]})]


TEXTS = (
    ("ready", "{{a: A | $k == {n}}}; {{b: B | $k == {n}}} per $u"),
    ("ready", "{{v[3..3]: A | $k == {n}}} where sum(v.n) > 0"),
    (
        "temporal",
        "(event (u ?u) (where (= k {n})) (where (= @type 'A)))"
        " (event (u ?v) (where (= k {n})) (where (= @type 'B))) (test (eq ?u ?v))",
    ),
)


def test_outputs_after_kills_are_those_of_an_uninterrupted_run(
    world: PatternWorld, start: Start
) -> None:
    world.keep_journal()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    texts: dict[int, tuple[str, str]] = {}
    for number in range(4):
        for language, text in TEXTS:
            written = text.format(n=number)
            [pattern] = world.patterns(group, [written], language)
            texts[pattern] = (language, written)
    processes = [start(), start()]
    sent: list[Event] = []
    for round_ in range(6):
        for _ in range(4):
            batch = [
                typed("AB"[(len(sent) + at) % 2], at, k=at % 4, u=(at * 7 + round_) % 5)
                for at in range(100)
            ]
            world.emit_all(stream, batch)
            sent += batch
        [[owner]] = world.sql("SELECT owner::text FROM pattern_leases")
        victim = next((one for one in processes if owner and owner in one.log()), None)
        if victim is not None:
            victim.kill()
            processes.remove(victim)
            processes.append(start())
    eventually(lambda: world.consumed(group)[1] == [len(sent)], "all events consumed")
    order = [(EventPosition(at, stream, "s", at, at), event) for at, event in enumerate(sent, 1)]
    expected = uninterrupted(texts, order)
    assert len(expected) > 100
    assert world.matches(out) == expected


def test_a_pattern_that_feeds_itself_stops(world: PatternWorld, start: Start) -> None:
    start()
    stream = world.stream()
    group = world.pattern_group([stream])
    [pattern] = world.patterns(group, ["{a: A} do announce(d::A, {n = a.n})"])
    world.emit_all(stream, [typed("A", 7)])
    chain = limits.PATTERN_HOPS_MAX
    eventually(lambda: world.consumed(group)[0] == chain, "the chain")
    found = [one.event for one in world.events(stream)]
    assert [one.attributes["n"] for one in found] == [7] * chain
    hops = [(one.environment or {}).get("eventhub.hop_limit") for one in found]
    assert hops == [None, *(str(left) for left in range(chain - 1, 0, -1))]
    [dropped] = world.system_events("pattern.dropped")
    assert (dropped["pattern"], dropped["reason"]) == (pattern, "hop_limit")


def test_a_temporal_pattern_recognises_events_before_it(world: PatternWorld, start: Start) -> None:
    stream, out = world.stream(), world.stream()
    world.emit_all(stream, [typed("A", n, u=u) for n, u in ((1, "u"), (2, "v"), (3, "u"))])
    group = world.pattern_group([stream], out)
    text = (
        "(event (n ?t1) (u ?u1)) (event (n ?t2) (u ?u2))"
        " (test (< ?t1 ?t2)) (test (eq ?u1 ?u2)) (memory {})"
    )
    start()
    [late] = world.patterns(group, [text.format(10)], "temporal", recent=True)
    eventually(lambda: len(world.matches(out)) == 1, "the match of old events")
    [short] = world.patterns(group, [text.format(2)], "temporal", recent=True)
    world.emit_all(stream, [typed("A", 4, u="v")])
    eventually(lambda: world.consumed(group)[1] == [4], "consumed")
    found = world.matches(out)
    assert found == [(late, {"$1": [1], "$2": [3]}), (late, {"$1": [2], "$2": [4]})]
    assert short not in {pattern for pattern, _ in found}


def test_a_hostile_agent_is_suspended_and_others_run(world: PatternWorld, start: Start) -> None:
    start()
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    hostile = [
        "(define (loop) (loop)) (loop)",
        "(define (deep n) (+ 1 (deep n))) (deep 1)",
        "(map (i (range 10000)) (range 1000))",
        "(map (i (range 100)) (notify))",
    ]
    bad = world.patterns(group, hostile, "agent")
    [good] = world.patterns(group, ["{a: A}"])
    world.emit_all(stream, [typed("A", 1), typed("A", 2)])
    eventually(lambda: world.consumed(group)[1] == [2], "consumed")
    assert [pattern for pattern, _ in world.matches(out)] == [good, good]
    suspended = world.system_events("pattern.suspended")
    assert {one["pattern"] for one in suspended} == set(bad)
    rows = world.sql(
        "SELECT pattern_id, state, fault->>'code' FROM pattern_statuses"
        " WHERE pattern_id = ANY (%s) ORDER BY 1",
        bad,
    )
    assert [(id, state) for id, state, _ in rows] == [(id, "suspended") for id in bad]
    assert all(code for _, _, code in rows)


def test_removed_events_are_a_gap(world: PatternWorld, start: Start) -> None:
    stream, out = world.stream(segment_events_max=2), world.stream()
    group = world.pattern_group([stream], out)
    [pattern] = world.patterns(group, ["{a: A | $n == 5}"])
    for number in range(1, 6):
        world.emit_all(stream, [typed("A", number)])
    world.sql(
        "UPDATE segments SET tier = 'dropped', removal_reason = 'quota'"
        " WHERE stream_id = %s AND last <= 4",
        stream,
    )
    start()
    eventually(lambda: world.consumed(group)[1] == [5], "consumed")
    assert world.matches(out) == [(pattern, {"a": [5]})]
    [gap] = world.system_events("pattern_group.gap")
    assert (gap["pattern_group"], gap["first"], gap["last"]) == (group, 1, 4)
