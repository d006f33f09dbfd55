"""The engine of many patterns: shared filters, registration of elements, limits, positions and
times.
"""

import time
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.agents.compiler import compile_program
from registrations.agents.engine import AgentEngine
from registrations.filters.ast import And, Compare, Const, OfType, Path
from registrations.patterns.ast import Combined, Element, Pattern
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.parser import parse_pattern
from registrations.patterns.pattern_engine import (
    Ended,
    EventPosition,
    Match,
    Notify,
    Output,
    PatternEngine,
    Waiting,
)
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.language import parse_temporal
from tests.unit.registrations.patterns.programs import SECOND, SEGMENT
from tests.unit.registrations.patterns.stream import Stream, bound, ends


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
    stream = Stream("{a: A}; {b: B} within 5s")
    stream.emit("A")
    stream.emit("C", after=6)  # the pattern does not take it
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
    assert (len(engine.leaves), engine.memory_bytes) == (0, 0)
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
    last = Element(OfType(None, "B"), "b")
    for number in range(10_000):
        node = And((OfType(None, "A"), Compare("=", Path("x"), Const(number))))
        engine.add(number, Pattern(Combined(";", Element(node, "a"), last)))
    assert len(engine.leaves) == 10_001
    stream = Stream(engine=engine)

    def took(type: str, **attributes: Any) -> float:
        begun = time.process_time()
        for _ in range(200):
            stream.emit(type, **attributes)
        return (time.process_time() - begun) / 200

    idle = took("B")
    waited = took("A", x=7)
    assert ends(stream.emit("B")) == [stream.order]
    assert idle < 0.002
    assert waited < 0.002


def test_events_cost_the_patterns_that_have_begun_for_their_key() -> None:
    """10,000 patterns wait for a B, each for another user; a B of one of them concerns one."""
    engine = ReadyEngine()
    later = Element(OfType(None, "B"), "b")
    for number in range(10_000):
        node = And((OfType(None, "A"), Compare("=", Path("x"), Const(number))))
        part = Combined(";", Element(node, "a"), later)
        engine.add(number, Pattern(part, per=Path("user")))
    stream = Stream(engine=engine)
    for number in range(10_000):
        stream.emit("A", x=number, user=number)
    begun = time.process_time()
    for number in range(200):
        assert ends(stream.emit("B", user=number)) == [stream.order]
    assert (time.process_time() - begun) / 200 < 0.002


def test_after_a_match_of_a_key_its_events_concern_the_pattern_no_more() -> None:
    stream = Stream("{a: A}; {b: B}; {c: C} per $user")
    found = []
    for order, type in enumerate("ABCBC", 1):
        event, position = Event("", type, {"user": "x"}), EventPosition(order, 1, SEGMENT, order, 0)
        found.append(len([*stream.engine.steps(position, event)]))
    assert [count > 0 for count in found] == [True, True, True, False, False]


def test_an_event_that_comes_too_late_for_a_key_begins_nothing() -> None:
    stream = Stream("{a: A}; {b: B} per $user within 5s")
    stream.emit("A", user="x")
    assert stream.emit("B", after=6, user="x") == []
    assert [*stream.engine.keys(1)] == []
    assert stream.engine.memory_bytes == 0


def test_one_look_up_finds_the_leaves_of_engines_of_all_kinds() -> None:
    leaves = LeafIndex()
    ready, temporal, agents = (
        ReadyEngine(leaves),
        TemporalEngine(leaves=leaves),
        AgentEngine(leaves=leaves),
    )
    engines: tuple[PatternEngine, ...] = (ready, temporal, agents)  # type: ignore[assignment]
    ready.add(1, parse_pattern("{a: A | $x > 1}; {b: B}"))
    temporal.add(
        2,
        parse_temporal("(event (where (> x 1)) (@type 'A) (u ?u)) (event (u ?u) (@type 'B))"),
    )
    agents.add(
        3,
        compile_program("(on (and (= @type 'A) (> x 1))) (recent 3 (= @type 'B)) (notify)"),
    )
    assert len(leaves) == 6
    found = []
    for order, type in enumerate("AB", 1):
        event = Event("", type, {"x": 2, "u": 7})
        position = EventPosition(order, 1, SEGMENT, order, order)
        found.append([one.pattern for engine in engines for one in engine.feed(position, event)])
    assert found == [[3], [1, 1, 2]]
    assert leaves.matched == 2
    for engine in (temporal, agents):
        engine.restore(engine.state())
    assert len(leaves) == 6
    ready.remove(1)
    temporal.remove(2)
    agents.remove(3)
    assert len(leaves) == 0


# --- once ---


def test_once_ends_with_the_first_match_of_any_key() -> None:
    stream = Stream("{a: A}; {b: B} per $u once")
    stream.emit("A", u=1)
    stream.emit("A", u=2)
    found = stream.emit("B", u=2)
    assert isinstance(found[-1], Ended)
    assert stream.emit("B", u=1) == []
    assert (len(stream.engine.leaves), stream.engine.memory_bytes) == (0, 0)


# --- introspection ---


def test_the_tree_shows_what_a_pattern_waits_for() -> None:
    """RDY-46."""
    stream = Stream("({a: A} && {b: B}); {c: C} within 60s")
    assert stream.engine.waiting(1) is None
    stream.emit("B")
    root = stream.engine.waiting(1)
    assert root is not None
    assert shown(root) == [
        ("{a: A} && {b: B}; {c: C}", "waiting", ["b"]),
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


def test_an_and_on_the_right_of_a_butnot_fails_it_with_the_later_of_its_sides() -> None:
    stream = Stream("({d: D} butnot ({a: A} && {b: B})); {e: E}")
    assert stream.emit_all("BDA") == []
    assert bound(stream.emit("E")) == [{"d": [2], "e": [4]}]


def test_an_inner_butnot_that_one_event_completes_and_fails_fails_nothing_outside() -> None:
    stream = Stream("{c: C} butnot ({a: A} butnot {b: A | $n > 0})")
    assert stream.emit("A", n=1) == []
    assert bound(stream.emit("C")) == [{"c": [2]}]


def test_a_part_on_the_right_starts_at_any_end_of_the_left() -> None:
    """The left side that is preferred ended after the first event of the part."""
    left = "({a: A}; {b: B}) || {c: C}"
    stream = Stream(f"({left}); (({{d: D}}; {{f: F}}) do notify(d)); {{e: E}}")
    assert stream.emit_all("CDAB") == []
    [output] = stream.emit("F")
    assert isinstance(output, Notify) and [*output.bindings] == ["d"]


def test_a_sequence_ends_with_the_newest_event_or_not_at_all() -> None:
    """An earlier event completed it while the `butnot` had failed; that match is past."""
    stream = Stream("(({v[2..3]: A} || {b: B}) butnot {c: C}) last 4")
    assert stream.emit_all("CAAB") == []
    assert bound(stream.emit("B")) == [{"b": [5]}]


@pytest.mark.parametrize(("values", "count"), [((1, "1", 1), 2), ((1, 1.0, 1), 1)])
def test_distinct_values_are_those_that_are_not_equal(values: tuple[Any, ...], count: int) -> None:
    stream = Stream(f"{{v[3..3]: A}} where distinct(v.x) == {count}")
    outputs = [one for value in values for one in stream.emit("A", x=value)]
    assert bound(outputs) == [{"v": [1, 2, 3]}]


def test_a_sequence_in_a_condition_has_no_more_events_than_its_most() -> None:
    stream = Stream("{v[1..2]: A} where sum(v.x) > 5")
    assert [one for x in (1, 1, 4) for one in stream.emit("A", x=x)] == []
    assert bound(stream.emit("A", x=2)) == [{"v": [3, 4]}]


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
