"""Actions of parts and of whole patterns: when they run, what they return, in which order."""

from typing import Any

from registrations.patterns.pattern_engine import Announce, Match, NewEvent, Notify, Output
from tests.unit.registrations.patterns.stream import Stream


def notified(outputs: list[Output]) -> list[tuple[dict[str, list[int]], str | None]]:
    return [
        ({name: [each.order for each in value] for name, value in one.bindings.items()}, one.target)
        for one in outputs
        if isinstance(one, Notify)
    ]


def announced(outputs: list[Output]) -> list[dict[str, Any]]:
    return [one.event.attributes for one in outputs if isinstance(one, Announce)]


def test_action_of_the_left_side_runs_before_the_pattern_is_complete() -> None:
    """RDY-30."""
    stream = Stream("({a: A} do notify(a)); {b: B}")
    assert notified(stream.emit("A")) == [({"a": [1]}, None)]
    found = stream.emit("B")
    assert [type(one) for one in found] == [Match]  # an action is given: nothing by default


def test_action_of_a_part_runs_once_until_the_pattern_matches() -> None:
    stream = Stream("({a: A} do notify(a)); {b: B}")
    assert [len(stream.emit(type)) for type in "AAABAA"] == [1, 0, 0, 1, 1, 0]


def test_action_of_a_part_runs_again_when_its_event_has_left_the_window() -> None:
    stream = Stream("({a: A} do notify(a)); {b: B} within 5s")
    ran = [bool(stream.emit("A", after=after)) for after in (0, 4, 1, 1, 4, 1, 1)]
    assert ran == [True, False, False, True, False, False, True]


def test_actions_run_from_the_inside_to_the_outside_and_from_the_left_to_the_right() -> None:
    stream = Stream(
        "(({a: A} do notify(a) to '1') && ({b: A} do notify(b) to '2') do notify() to '3'); {c: C}",
        "({a: A} do notify() to '1') do notify() to '2', notify() to '3'",
    )
    found = stream.emit("A")
    assert [(one.pattern, getattr(one, "target", "match")) for one in found] == [
        (1, "1"),
        (1, "2"),
        (1, "3"),
        (2, "match"),
        (2, "1"),
        (2, "2"),
        (2, "3"),
    ]
    stream = Stream("(({a: A} && {b: A}) do notify() to '3'); {c: C}")
    assert notified(stream.emit("A")) == [({"a": [1], "b": [1]}, "3")]


def test_action_in_a_right_side_needs_the_left() -> None:
    stream = Stream("{a: A}; ({b: B} do notify(b)); {c: C}")
    assert [len(stream.emit(type)) for type in "BABB"] == [0, 0, 1, 0]
    stream = Stream("{a: A}; ({v[2..2]: B} do notify(v)); {c: C}")
    assert notified(stream.emit_all("BAB")) == []
    assert notified(stream.emit("B")) == [({"v": [3, 4]}, None)]


def test_action_in_a_failed_butnot_does_not_run() -> None:
    stream = Stream("(({a: A} do notify(a)); {c: C}) butnot ({b: B} do notify(b) to 'b'); {d: D}")
    assert notified(stream.emit_all("BA")) == [({"b": [1]}, "b")]
    stream = Stream("((({a: A} do notify(a)); {c: C}) butnot {b: B}); {d: D}")
    assert notified(stream.emit_all("BA")) == []
    stream = Stream("((({a: A} do notify(a)); {c: C}) butnot {b: B}); {d: D}")
    assert notified(stream.emit_all("AB")) == [({"a": [1]}, None)]


def test_a_pattern_without_actions_notifies_its_owner_of_everything() -> None:
    stream = Stream("{A}; {b: B}", "{v[2..2]: A}")
    stream.emit("A")
    assert notified(stream.emit("B")) == [({"$1": [1], "b": [2]}, None)]
    assert notified(stream.emit("A")) == [({"v": [1, 3]}, None)]


def test_notify_names_variables_and_a_target() -> None:
    """RDY-32."""
    stream = Stream("({a: A}; {b: B}) do notify(b) to 'session-x', notify()")
    assert notified(stream.emit_all("AB")) == [
        ({"b": [2]}, "session-x"),
        ({"a": [1], "b": [2]}, None),
    ]


def test_a_set_is_summarized_in_one_event() -> None:
    """RDY-31."""
    stream = Stream(
        "{v[3..3]: Alarm} do assign s = Ops::Summary{count = count(v), max = max(v.p), "
        "all = v.p, first = first(v.p), half = max(v.p) / 2, none = max(v.q)}, notify(s)"
    )
    outputs = [one for p in (1, 8, 3) for one in stream.emit("Alarm", p=p)]
    (notify,) = [one for one in outputs if isinstance(one, Notify)]
    attributes = {"count": 3, "max": 8, "all": [1, 8, 3], "first": 1, "half": 4.0}
    assert notify.bindings == {"s": (NewEvent("Ops", "Summary", attributes),)}


def test_an_assigned_event_is_used_by_conditions_and_actions_around_it() -> None:
    stream = Stream(
        "((({v[2..2]: A} do assign s = S{sum = sum(v.n)}); {b: B}) where b.n > s.sum) "
        "do announce(s) into 'out', announce(T, {x = s.sum, y = s.header.type})"
    )
    for n in (1, 2):
        stream.emit("A", n=n)
    assert stream.emit("B", n=3) == []
    found = stream.emit("B", n=4)
    assert announced(found) == [{"sum": 3}, {"x": 3, "y": "S"}]
    assert [one.stream for one in found if isinstance(one, Announce)] == ["out", None]


def test_an_announced_event_has_the_bound_events_as_cause() -> None:
    stream = Stream("({b: B} && {v[2..3]: A}) do announce(T, {n = count(v)})")
    (found,) = [one for one in stream.emit_all("AAB") if isinstance(one, Announce)]
    assert [one.order for one in found.causes] == [1, 2, 3]
    assert found.position.order == 3


def test_counters_are_of_the_pattern_and_outlive_matches() -> None:
    """RDY-34: only the state of the engine changes."""
    stream = Stream(
        "({v[2..2]: A} do increment seen by count(v)) do increment matches, "
        "announce(T, {seen = counter(seen), matches = counter(matches)}) per $u"
    )
    for u in (1, 2, 1):
        last = stream.emit("A", u=u)
    assert announced(last) == [{"seen": 2, "matches": 1}]
    assert announced(stream.emit("A", u=2)) == [{"seen": 4, "matches": 2}]
    other = Stream("({a: A} do increment n by a.x); {b: B} do announce(T, {n = counter(n)})")
    assert other.emit("A", x="none") == []
    assert announced(other.emit("B")) == [{"n": 0}]


def test_a_counter_never_leaves_the_range_of_values() -> None:
    stream = Stream("{a: A} do increment n by a.x, announce(T, {n = counter(n)})")
    for _ in range(3):
        assert announced(stream.emit("A", x=1 << 63)) == [{"n": 1 << 63}]


def test_a_result_beyond_64_bits_is_missing() -> None:
    stream = Stream("{v[2..2]: A} do announce(T, {sum = sum(v.x), max = max(v.x)})")
    stream.emit("A", x=1 << 63)
    assert announced(stream.emit("A", x=1 << 63)) == [{"max": 1 << 63}]
