"""The engine of agents: OIF's row, what agents remember and examine, state, and streams."""

from random import Random
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.agents.compiler import compile_program
from registrations.agents.engine import AgentEngine
from registrations.patterns.pattern_engine import PatternEngine
from tests.unit.registrations.agents.programs import (
    announced,
    engine_of,
    event,
    fed,
    notified,
    position,
)

ERRORS = """
(on (= type 'error))
(define found (recent 10 (= type 'error)))
(when (= (length found) 3) (notify found))
"""


# OIF-23
def test_an_agent_counts_the_errors_of_the_last_events_and_reports_the_third() -> None:
    types = "e..e.......e.e.e"
    stream = [{"type": "error" if one == "e" else "info"} for one in types]
    found = [notified(outputs) for outputs in fed(engine_of(ERRORS), *stream)]
    assert [(n, one) for n, one in enumerate(found, 1) if one] == [(16, [[12, 14, 16]])]


def test_an_agent_runs_for_the_events_of_its_filter() -> None:
    engine = engine_of("(on (> size 5)) (notify)", "(notify)")
    outputs = fed(engine, {"size": 9}, {"size": 1}, {})
    assert [[one.pattern for one in some] for some in outputs] == [[0, 1], [1], [1]]


def test_what_an_agent_remembers_is_its_own() -> None:
    text = "(remember 'n (+ 1 (recall 'n 0))) (announce 'is (object 'n (recall 'n)))"
    engine = engine_of(text, f"(on (exists x)) {text}")
    outputs = fed(engine, {}, {"x": 1}, {"x": 1})
    found = [[attributes["n"] for _, attributes in announced(some)] for some in outputs]
    assert found == [[1], [2, 1], [3, 2]]


def test_the_time_is_that_of_the_event() -> None:
    engine = engine_of("(announce 'is (object 'now (now)))")
    outputs = fed(engine, {}, {})
    assert [announced(some)[0][1]["now"] for some in outputs] == [1.0, 2.0]


def test_recent_events_are_those_since_its_start_unless_it_recalls_others() -> None:
    counting = compile_program("(announce 'is (object 'n (length (recent 3 (exists x)))))")
    engine = engine_of("(length (recent 2 (exists x)))")
    stream: list[dict[str, Any]] = [{"x": 1}, {}, {"x": 1}, {"x": 1}]
    fed(engine, *stream)
    engine.add(5, counting)
    recent = [(position(n), event(one)) for n, one in enumerate(stream, 1)]
    engine.add(6, counting, recent)
    outputs = fed(engine, {}, {"x": 1}, {"x": 1}, first=5)
    found = [[attributes["n"] for _, attributes in announced(some)] for some in outputs]
    assert found == [[0, 2], [1, 2], [2, 2]]
    with pytest.raises(ValueError, match="do not end with the latest"):
        engine.add(7, counting, recent)


def test_agents_with_one_filter_share_the_events() -> None:
    engine = engine_of(*(f"(recent {n + 1} (exists x))" for n in range(20)))
    scope = engine._scope
    (memory,) = scope.memories.values()
    fed(engine, *({"x": n} for n in range(50)))
    assert len(memory.events) == 20
    for number in range(19, 9, -1):
        engine.remove(number)
    assert memory.count == 10
    for number in range(10):
        engine.remove(number)
    assert not scope.memories


def test_a_notification_names_the_events_and_an_announced_event_its_cause() -> None:
    engine = engine_of("(notify) (notify (recent 2) (event))")
    assert [notified(some) for some in fed(engine, {}, {})] == [[[1], [1, 1]], [[2], [1, 2, 2]]]


def test_a_body_is_not_stored() -> None:
    engine = engine_of("(recent 10)")
    engine.feed(position(1), Event("d", "t", {}, body=b"x" * 100_000))
    assert len(engine.state()) < 1_000


# --- state ---

PROGRAMS = (
    ERRORS,
    "(on (= type 'error)) (remember 'n (+ 1 (recall 'n 0))) (announce 'n (object 'n (recall 'n)))",
    "(remember 'list (append (recall 'list (list)) (field (event) 'x 0)))"
    "(when (> (length (recall 'list)) 5)"
    " (announce 'list (object 'list (recall 'list) 'o (recall 'o))) (forget 'list)"
    " (remember 'o (object 'nested (list 1 2.5 null (object 'at (now))))))",
    "(let ((sum (fold (s 0) (e (recent 7)) (+ s (field e 'x 0)))))"
    " (when (= (mod sum 3) 0) (notify (first (recent 7))) (announce 'sum (object 'sum sum))))",
    "(when (= (field (event) 'x 0) 7) (+ 1 'a))",
    "(when (> (field (event) 'x 0) 95) (while true))",
)


def stream_of(seed: int, length: int) -> list[dict[str, Any]]:
    random = Random(seed)
    return [
        {"type": random.choice(("error", "info", "info")), "x": random.randrange(100)}
        for _ in range(length)
    ]


def test_a_restored_engine_goes_on_as_the_other() -> None:
    stream = stream_of(1, 120)
    engine = engine_of(*PROGRAMS)
    other = engine_of(*PROGRAMS)
    seen = set()
    for n, one in enumerate(stream, 1):
        if n % 7 == 0:
            state = engine.state()
            other = engine_of(*PROGRAMS)
            other.restore(state)
            assert other.state() == state
        outputs = engine.feed(position(n), event(one))
        assert other.feed(position(n), event(one)) == outputs
        seen |= {(type(one).__name__, one.pattern) for one in outputs}
    assert len(seen) >= 7


def test_the_same_events_give_the_same_outputs_and_state() -> None:
    stream = stream_of(2, 100)
    engines = [engine_of(*PROGRAMS) for _ in range(2)]
    outputs = [fed(engine, *stream) for engine in engines]
    assert outputs[0] == outputs[1]
    assert engines[0].state() == engines[1].state()


def test_an_agent_with_another_program_remembers_nothing() -> None:
    text = "(remember 'n (+ {} (recall 'n 0))) (announce 'is (object 'n (recall 'n)))"
    engine = engine_of(text.format(1), text.format(1))
    fed(engine, {}, {})
    other = engine_of(text.format(1), text.format(5))
    other.restore(engine.state())
    (outputs,) = fed(other, {}, first=3)
    assert [attributes["n"] for _, attributes in announced(outputs)] == [3, 5]
    with pytest.raises(ValueError, match="unknown format"):
        other.restore(b"")
    fresh = engine_of("(notify)")
    fresh.restore(AgentEngine().state())
    assert [notified(some) for some in fed(fresh, {})] == [[[1]]]


def test_the_engine_has_the_interface_of_pattern_engines() -> None:
    engine: PatternEngine = AgentEngine()  # type: ignore[assignment]  # further outputs
    assert engine.feed(position(1), event()) == []
    assert engine.waiting(0) is None


def test_two_counts_of_one_filter_examine_as_many_events_each() -> None:
    engine = engine_of("(announce 'is (object 'two (length (recent 2)) 'four (length (recent 4))))")
    outputs = fed(engine, *[{}] * 6)[-1]
    assert announced(outputs) == [("is", {"two": 2, "four": 4})]
