"""What an engine discards at its limits, and how it says so."""

import time

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.patterns.pattern_engine import Dropped, EventPosition, Output
from tests.unit.registrations.patterns.stream import Stream, bound, dropped, ends


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
    before = stream.engine.memory_bytes
    stream.emit("C", after=6)
    stream.engine.state()
    assert [*stream.engine.keys(1)] == []
    assert (before > 0, stream.engine.memory_bytes) == (True, 0)


def test_the_bytes_of_a_pattern_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_BYTES_MAX", 20_000)
    stream = Stream("({a: A}; {b: B}) where a.x == b.x per $u last 100")
    outputs = [one for u in range(6) for one in stream.emit("A", u=u, x="x" * 4_000)]
    assert dropped(outputs) == [("bytes_max", 1), ("bytes_max", 1)]
    assert stream.engine.memory_bytes <= 20_000
    single = Stream("({a: A}; {b: B}) where a.x == b.x last 100")
    outputs = [one for _ in range(9) for one in single.emit("A", x="x" * 4_000)]
    assert sum(count for _, count in dropped(outputs)) >= 4
    assert single.engine.memory_bytes <= 20_000
    assert ends(single.emit("B", x="x" * 4_000)) == [10]
    assert single.engine.memory_bytes == 0


def test_the_bytes_of_a_group_are_limited_at_the_largest_patterns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PATTERN_GROUP_BYTES_MAX", 30_000)
    stream = Stream("({a: A}; {b: B}) where a.x == b.x per $u", "{c: C}; {d: D}")
    stream.emit("C")
    outputs = [one for u in range(9) for one in stream.emit("A", u=u, x="x" * 4_000)]
    assert {reason for reason, _ in dropped(outputs)} == {"group_bytes_max"}
    assert stream.engine.memory_bytes <= 30_000
    assert ends(stream.emit("D")) == [11]


def test_a_search_has_a_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_STEPS_MAX", 300)
    stream = Stream("({a: A} && {b: B} && {c: C}) where a.x + b.x + c.x > 100")
    outputs = [one for type in "A" * 9 + "B" * 9 for one in stream.emit(type, x=1)]
    assert outputs == []
    assert dropped(stream.emit("C", x=1)) == [("steps_max", 1)]
    assert dropped(stream.emit("C", x=1)) == [("steps_max", 1)]
    assert ends(stream.emit("C", x=99)) == [21]


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
    begun = time.process_time()
    for type in ["A"] * 100 + [*"DEADE"]:
        stream.emit(type, x=-stream.order)
    assert time.process_time() - begun < 20


def _parts(stream: Stream, type: str) -> list[list[Output]]:
    """Feed one event in steps; return the outputs of each."""
    stream.order += 1
    position = EventPosition(stream.order, 1, "c0ffee", stream.order, stream.time * 1_000_000)
    event = Event("test", type, {"x": 1})
    return [[*outputs] for outputs in stream.engine.steps(position, event)]


@pytest.mark.parametrize(
    "text",
    [
        "({a: A}; {b: A}; {c: C}) where a.x + b.x == 119",
        "({a: A} && {b: A} && {c: C}) where a.x + b.x == 9",
        "({a: A}; ({b: B} butnot ({c: A}; {d: A} where d.x > 99))) || ({e: A}; {f: C})",
        "(({a: A} where a.x > 99) || {b: A}); ({c: A}; {d: C}; {e[0..2]: E})",
        "({v[1..60]: A} where sum(v.x) == 1830); {c: C}",
        "({a: A}; {b: A}) && ({c: C} butnot ({d[0..2]: A}; {e: A} where e.x > 99))",
        "(({a: A} butnot ({b: B}; {c: A})); {d: A}; {e: C}) where a.x + d.x == 119",
    ],
)
def test_a_long_search_is_interrupted_and_goes_on(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else ran in the process until the search for an event in a pattern was over."""
    stream, other = (Stream(f"{text} last 1000") for _ in range(2))
    for one in (stream, other):
        for x in range(1, 61):
            one.emit("A", x=x)
    monkeypatch.setattr(limits, "PATTERN_STEPS_AT_ONCE", 10)
    parts = _parts(stream, "C")
    assert len(parts) > 3 and parts[:-1] == [[]] * (len(parts) - 1)
    monkeypatch.setattr(limits, "PATTERN_STEPS_AT_ONCE", limits.PATTERN_STEPS_MAX)
    assert _parts(other, "C") == parts[-1:]
    assert ends(parts[-1]) == [61]


def test_what_a_pattern_waits_for_is_shown_though_the_search_exceeds_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream("({a: A} butnot ({b: B} butnot ({c: A}; {d: D}))) ; {e: E}")
    stream.emit_all("CAB")
    monkeypatch.setattr(limits, "PATTERN_STEPS_MAX", 1)
    waiting = stream.engine.waiting(1)
    assert waiting is not None and waiting.status == "waiting"
