"""The engine of many patterns: shared filters, registration of elements, suspension, limits,
positions and times.
"""

import time
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.parser import parse_pattern
from registrations.patterns.pattern_engine import (
    Dropped,
    Ended,
    EventPosition,
    Match,
    Output,
    PatternEngine,
    Waiting,
)
from tests.unit.registrations.patterns.programs import SECOND, SEGMENT
from tests.unit.registrations.patterns.stream import Stream, bound, ends


def dropped(outputs: list[Output]) -> list[tuple[str, int]]:
    return [(one.reason, one.count) for one in outputs if isinstance(one, Dropped)]


def test_engine_has_the_interface_of_pattern_engines() -> None:
    engine: PatternEngine = ReadyEngine()
    assert engine.state()


# --- positions and times ---


def test_a_variable_is_bound_to_the_first_event_that_passes() -> None:
    """RDY-17."""
    stream = Stream("Ev1: MyAlarm | $Priority > 5")
    given = (("MyAlarm", 5), ("OtherAlarm", 9), ("MyAlarm", 6), ("MyAlarm", 8))
    outputs = [one for type, p in given for one in stream.emit(type, Priority=p)]
    assert bound(outputs)[0] == {"Ev1": [3]}


def test_the_right_side_has_the_events_since_its_start_though_it_is_evaluated_late() -> None:
    """RDY-45: nothing of the right side is evaluated before event 4."""
    stream = Stream("{a: A}; ({b: B} && {c: C})")
    assert bound(stream.emit_all("BABC")) == [{"a": [2], "b": [3], "c": [4]}]
    assert bound(Stream("{a: A}; ({b: B} && {c: C})").emit_all("BAC")) == []


def test_both_sides_of_a_butnot_on_the_right_start_late_too() -> None:
    text = "{a: A}; (({b: B}; {c: C}) butnot {d: D})"
    assert bound(Stream(text).emit_all("BDABC")) == [{"a": [3], "b": [4], "c": [5]}]
    assert bound(Stream(text).emit_all("ABDC")) == []


def test_equal_times_and_times_that_go_back_change_no_order() -> None:
    for step in (0, -3):
        stream = Stream("{a: A}; {b: B} within 5s")
        stream.emit("B")
        stream.emit("A", after=step)
        assert ends(stream.emit("B", after=step)) == [3]


def test_a_time_that_goes_back_does_not_prolong_the_window() -> None:
    stream = Stream("{a: A}; {b: B} within 5s")
    stream.emit("A")
    stream.emit("B", after=6)  # A has left the window, and does not come back
    assert stream.emit("B", after=-6) == []


def test_positions_must_ascend() -> None:
    stream = Stream("{a: A}")
    stream.emit("A")
    stream.order = 0
    with pytest.raises(ValueError, match="event 1 comes after event 1"):
        stream.emit("A")


def test_a_tick_of_a_timer_is_bound_as_any_event() -> None:
    """RDY-43."""
    engine = ReadyEngine()
    engine.add(1, parse_pattern("{a: A}; {t: Time::Tick | $handle == 'h'}"))
    ticks = [Event("Time", "Tick", {"handle": name}) for name in ("g", "h")]
    outputs: list[Output] = []
    for order, event in enumerate((Event("test", "A", {}), *ticks), 1):
        outputs += engine.feed(EventPosition(order, 1, SEGMENT, order, order), event)
    assert bound(outputs) == [{"a": [1], "t": [3]}]


# --- many patterns ---


def test_equal_elements_of_many_patterns_are_evaluated_once() -> None:
    """RDY-47."""
    engine = ReadyEngine()
    for number in range(100):
        text = "{a: A | $x + 1 > 2}; {b: B | $y > 1 and $z > 1}" if number % 2 else (
            "{v: A | ($x + 1 > 2)} && {w: B | $z > 1 and $y > 1}"
        )  # fmt: skip
        engine.add(number, parse_pattern(text))
    assert len(engine.leaves) == 2
    stream = Stream(engine=engine)
    before = engine.leaves.counters.evaluated
    stream.emit("A", x=5)
    assert engine.leaves.counters.evaluated - before == 1 + 1  # the sum, and the type
    assert len(ends(stream.emit("B", y=2, z=2))) == 100


def test_engines_of_a_group_share_the_index() -> None:
    leaves = LeafIndex()
    engines = [ReadyEngine(leaves), ReadyEngine(leaves)]
    for engine in engines:
        engine.add(1, parse_pattern("{a: A}; {b: B}"))
    assert len(leaves) == 2
    for order, type in enumerate("AB", 1):
        event = Event("", type, {})
        position = EventPosition(order, 1, SEGMENT, order, order)
        found = [engine.feed(position, event) for engine in engines]
        assert [len(outputs) for outputs in found] == [2 * (order - 1)] * 2
    assert leaves.matched == 2


def test_leaves_are_removed_with_their_last_pattern() -> None:
    engine = ReadyEngine()
    engine.add(1, parse_pattern("{a: A}; {b: B}"))
    engine.add(2, parse_pattern("{b: B}; {c: C}"))
    engine.remove(1)
    assert len(engine.leaves) == 2
    engine.remove(2)
    engine.remove(2)
    assert (len(engine.leaves), len(engine), engine.bytes) == (0, 0, 0)
    assert LeafIndex().match(Event("", "A", {})) == []


def test_patterns_match_in_the_order_of_their_numbers() -> None:
    stream = Stream(*["{a: A}"] * 20)
    assert [one.pattern for one in stream.emit("A") if isinstance(one, Match)] == [*range(1, 21)]


def test_a_pattern_is_replaced_under_its_number() -> None:
    stream = Stream("{a: A}; {b: B}")
    stream.emit("A")
    stream.engine.add(1, parse_pattern("{a: A}; {c: C}"))
    assert stream.emit_all("BC") == []
    assert ends(stream.emit_all("AC")) == [5]


def test_events_cost_the_patterns_that_wait_for_them() -> None:
    """10,000 patterns wait for an A; a B, for which none waits, costs what the index costs."""
    engine = ReadyEngine()
    for number in range(10_000):
        engine.add(number, parse_pattern(f"{{a: A | $x == {number}}}; {{b: B}}"))
    assert len(engine.leaves) == 10_001
    stream = Stream(engine=engine)

    def took(type: str, **attributes: Any) -> float:
        begun = time.perf_counter()
        for _ in range(200):
            stream.emit(type, **attributes)
        return (time.perf_counter() - begun) / 200

    idle = took("B")
    waited = took("A", x=7)
    assert ends(stream.emit("B")) == [stream.order]
    assert idle < 0.002
    assert waited < 0.002


def test_an_event_that_its_owner_may_not_see_does_not_exist() -> None:
    engine = ReadyEngine()
    pattern = parse_pattern("{a: A}; {b: B}")
    engine.add(1, pattern, lambda position, event: "secret" not in event.attributes)
    stream = Stream(engine=engine)
    stream.emit("A")
    assert stream.emit("B", secret=True) == []
    assert ends(stream.emit("B")) == [3]


# --- once, suspension ---


def test_once_ends_with_the_first_match_of_any_key() -> None:
    stream = Stream("{a: A}; {b: B} per $u once")
    stream.emit("A", u=1)
    stream.emit("A", u=2)
    found = stream.emit("B", u=2)
    assert isinstance(found[-1], Ended)
    assert stream.emit("B", u=1) == []
    assert (len(stream.engine.leaves), stream.engine.bytes) == (0, 0)
    stream.engine.resume(1)
    assert not stream.engine.is_registered(1)


def test_a_suspended_pattern_has_no_leaf_and_no_partial_match() -> None:
    """RDY-05, RDY-46."""
    stream = Stream("({a: A} && {b: B}); {c: C}", "{a: A}; {c: C}")
    stream.emit_all("AB")
    assert len(stream.engine.leaves) == 3
    stream.engine.suspend(1)
    assert len(stream.engine.leaves) == 2
    assert not stream.engine.is_registered(1)
    assert stream.engine.waiting(1) is None
    assert [one.pattern for one in stream.emit("C") if isinstance(one, Match)] == [2]
    stream.engine.resume(1)
    stream.engine.resume(1)
    assert stream.emit("C") == []
    assert ends(stream.emit_all("ABC"))[-1] == 7


# --- limits ---


def test_events_that_the_default_pushes_out_of_the_window_are_reported() -> None:
    stream = Stream("{a: A}; {b: B}", "{a: A}; {b: B} last 5")
    outputs = stream.emit_all("A" * (limits.PATTERN_LAST_DEFAULT + 4))
    assert dropped(outputs) == [("last", 1), ("last", 1), ("last", 2)]
    assert {one.pattern for one in outputs} == {1}
    assert bound(stream.emit("B")) == [{"a": [6], "b": [105]}, {"a": [101], "b": [105]}]


def test_the_partitions_without_an_event_for_longest_are_discarded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PATTERN_KEYS_MAX", 3)
    stream = Stream("{a: A}; {b: B} per $u")
    for u in (1, 2, 3, 1):
        assert stream.emit("A", u=u) == []
    (report,) = stream.emit("A", u=4)
    assert isinstance(report, Dropped)
    assert (report.reason, report.key, report.count) == ("keys_max", 2, 1)
    assert [*stream.engine.keys(1)] == [3, 1, 4]
    assert stream.emit("B", u=2) == []


def test_idle_partitions_expire_with_the_events_of_others() -> None:
    stream = Stream("{a: A}; {b: B} per $u within 5s")
    for u in range(50):
        stream.emit("A", u=u)
    stream.emit("A", after=6, u=99)
    assert [*stream.engine.keys(1)] == [99]
    before = stream.engine.bytes
    stream.emit("C", after=6)
    stream.engine.state()
    assert [*stream.engine.keys(1)] == []
    assert (before > 0, stream.engine.bytes) == (True, 0)


def test_the_bytes_of_a_pattern_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_BYTES_MAX", 20_000)
    stream = Stream("({a: A}; {b: B}) where a.x == b.x per $u last 100")
    outputs = [one for u in range(6) for one in stream.emit("A", u=u, x="x" * 4_000)]
    assert dropped(outputs) == [("bytes_max", 1), ("bytes_max", 1)]
    assert stream.engine.bytes <= 20_000
    single = Stream("({a: A}; {b: B}) where a.x == b.x last 100")
    outputs = [one for _ in range(9) for one in single.emit("A", x="x" * 4_000)]
    assert sum(count for _, count in dropped(outputs)) >= 4
    assert single.engine.bytes <= 20_000
    assert ends(single.emit("B", x="x" * 4_000)) == [10]
    assert single.engine.bytes == 0


def test_the_bytes_of_a_group_are_limited_at_the_largest_patterns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PATTERN_GROUP_BYTES_MAX", 30_000)
    stream = Stream("({a: A}; {b: B}) where a.x == b.x per $u", "{c: C}; {d: D}")
    stream.emit("C")
    outputs = [one for u in range(9) for one in stream.emit("A", u=u, x="x" * 4_000)]
    assert {reason for reason, _ in dropped(outputs)} == {"group_bytes_max"}
    assert stream.engine.bytes <= 30_000
    assert ends(stream.emit("D")) == [11]


def test_a_search_has_a_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_STEPS_MAX", 300)
    stream = Stream("({a: A} && {b: B} && {c: C}) where a.x + b.x + c.x > 100")
    outputs = [one for type in "A" * 9 + "B" * 9 for one in stream.emit(type, x=1)]
    assert outputs == []
    assert dropped(stream.emit("C", x=1)) == [("steps_max", 1)]
    assert dropped(stream.emit("C", x=99)) == [("steps_max", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "({a: A}; {b: A}; {c: A}) butnot {d: D}; {e: E}",
        "({a: A} && {b: A} && {c: A}); ({e: E} butnot {d: D})",
        "(({a: A} || {b: A}); ({c: A} && {f: A})) where a.x == c.x",
        "({v[2..99]: A}; {w[2..99]: A}) where sum(v.x) > sum(w.x)",
    ],
)
def test_an_event_takes_a_bounded_time(text: str) -> None:
    """However the pattern is built, an event costs at most the steps of its limit."""
    stream = Stream(f"{text} last 1000")
    for number in range(300):
        stream.emit("A", x=number)
    begun = time.perf_counter()
    for type in "DEADE":
        stream.emit(type, x=-1)
    assert time.perf_counter() - begun < 5


# --- introspection ---


def test_the_tree_shows_what_a_pattern_waits_for() -> None:
    """RDY-46."""
    stream = Stream("({a: A} && {b: B}); {c: C} within 60s")
    assert stream.engine.waiting(1) is None
    stream.emit("B")
    root = stream.engine.waiting(1)
    assert root is not None
    assert shown(root) == [
        ("({a: A} && {b: B}); {c: C}", "waiting", ["b"]),
        ("{a: A} && {b: B}", "waiting", ["b"]),
        ("{a: A}", "waiting", []),
        ("{b: B}", "matched", ["b"]),
        ("{c: C}", "inactive", []),
    ]
    assert root.expires_us == (stream.time + 60) * SECOND
    stream.emit("A", after=10)
    root = stream.engine.waiting(1)
    assert root is not None
    assert [status for _, status, _ in shown(root)] == [
        *("waiting", "matched", "matched", "matched", "waiting"),
    ]
    assert root.children[1].since is not None
    assert root.children[1].since.order == 2  # the right side starts where the left matched


def test_the_tree_shows_a_failed_butnot_until_it_counts_again() -> None:
    stream = Stream("{a: A} butnot {b: B} within 5s per $u")
    stream.emit("B", u="x")
    root = stream.engine.waiting(1, "x")
    assert root is not None
    assert root.status == "failed"
    assert stream.engine.waiting(1, "y") is None
    stream.emit("C", after=6)
    root = stream.engine.waiting(1, "x")
    assert root is not None
    assert root.status == "waiting"


def shown(root: Waiting) -> list[tuple[str, str, list[str]]]:
    own = (root.element, root.status, [*root.bound])
    return [own, *(line for child in root.children for line in shown(child))]


# --- state ---


def test_a_restored_engine_continues_where_the_other_was() -> None:
    text = "(({a: A} do increment n, notify(a)); {b: B}) where a.x == b.x per $u once"
    stream = Stream(text)
    stream.emit("A", u=1, x=[1, "a", None, {"y": 1.5}])
    other = Stream(text)
    other.engine.restore(stream.engine.state())
    other.order, other.time = stream.order, stream.time
    assert other.engine.bytes == stream.engine.bytes
    assert other.engine.counter_values(1) == {"n": 1}
    assert other.emit("A", u=1) == []  # the action has run
    assert ends(other.emit("B", u=1, x="a")) == [3]
    last = Stream(text)
    last.engine.restore(other.engine.state())
    last.order = 3
    assert last.emit_all("AB") == []
    assert not last.engine.is_registered(1)


def test_a_state_replaces_what_was_there() -> None:
    stream = Stream("{a: A}; {b: B}")
    empty = stream.engine.state()
    stream.emit("A")
    stream.engine.restore(empty)
    assert stream.engine.bytes == 0
    assert stream.emit("B") == []


def test_the_state_of_a_changed_pattern_is_discarded() -> None:
    stream = Stream("{a: A}; {b: B}", "{c: C}; {d: D}")
    stream.emit_all("AC")
    state = stream.engine.state()
    other = Stream("{a: A}; {b: B} last 9", "{c: C};   {d: D}")
    other.engine.restore(state)
    other.order = 2
    assert [one.pattern for one in other.emit_all("BD") if isinstance(one, Match)] == [2]


@pytest.mark.parametrize("state", [b"", b"\x00", b"\x02abc", b"\x01abc"])
def test_an_unknown_state_is_refused(state: bytes) -> None:
    with pytest.raises(ValueError, match="the state of the patterns"):
        ReadyEngine().restore(state)


def test_a_state_is_compact() -> None:
    """It has positions, and the values that are read, not the events."""
    stream = Stream("({a: A}; {b: B}) where a.x == b.x per $u")
    for u in range(1_000):
        stream.emit("A", u=u, x=u, more="m" * 1_000)
    assert len(stream.engine.state()) < 40_000
