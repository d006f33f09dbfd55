"""The state of an engine is saved, restored, compact, and refused if it is another's."""

import pytest

from registrations.patterns.engine import ReadyEngine
from registrations.patterns.pattern_engine import Announce, Match
from tests.unit.registrations.patterns.stream import Stream, ends


def test_a_restored_engine_continues_where_the_other_was() -> None:
    text = (
        "(({a: A} do increment n, notify(a)); {b: B}) where a.x == b.x"
        " do announce(T, {n = counter(n)}) per $u once"
    )
    stream = Stream(text)
    stream.emit("A", u=1, x=[1, "a", None, {"y": 1.5}])
    other = Stream(text)
    other.engine.restore(stream.engine.state())
    other.order, other.time = stream.order, stream.time
    assert other.engine.memory_bytes == stream.engine.memory_bytes
    assert other.emit("A", u=1) == []  # the action has run
    found = other.emit("B", u=1, x="a")
    assert ends(found) == [3]
    assert [one.event.attributes for one in found if isinstance(one, Announce)] == [{"n": 1}]
    last = Stream(text)
    last.engine.restore(other.engine.state())
    last.order = 3
    assert last.emit_all("AB") == []
    assert len(last.engine.leaves) == 0


def test_a_state_replaces_what_was_there() -> None:
    stream = Stream("{a: A}; {b: B}")
    empty = stream.engine.state()
    stream.emit("A")
    stream.engine.restore(empty)
    assert stream.engine.memory_bytes == 0
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


def test_patterns_without_partial_matches_take_no_room_in_a_state() -> None:
    stream = Stream(*["{a: A}; {b: B}"] * 500)
    empty = len(stream.engine.state())
    stream.emit_all("AB")
    assert len(stream.engine.state()) <= empty + 8
    assert empty < 40
