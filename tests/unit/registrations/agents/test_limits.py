"""Hostile programs: each ends within its limits of steps, time and memory."""

import sys
import time
import tracemalloc
from bisect import bisect_left

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.agents.compiler import compile_program
from registrations.agents.engine import AgentEngine
from registrations.agents.run import ProgramFailed, ProgramSuspended
from registrations.patterns.pattern_engine import Dropped
from tests.unit.registrations.agents.programs import (
    announced,
    engine_of,
    event,
    fault_of,
    fed,
    position,
)

LONG = "x" * 10_000
GROW = "(let ((x {start})) (while true (set! x {more})))"
HOSTILE: dict[str, tuple[str, str]] = {
    "an endless loop": ("(while true)", "steps_max"),
    "an endless loop of nothing": ("(define (f) (while true)) (f)", "steps_max"),
    "nested loops": (
        "(for (a (range 10000)) (for (b (range 10000)) (for (c (range 10000)) 1)))",
        "steps_max",
    ),
    "nested maps": ("(map (a (range 9999)) (map (b (range 9999)) b))", "steps_max"),
    "endless recursion": ("(define (f x) (f x)) (f 1)", "call_depth_max"),
    "endless recursion with work left": ("(define (f x) (+ 1 (f x))) (f 1)", "call_depth_max"),
    "mutual recursion": ("(define (f) (g)) (define (g) (f)) (f)", "call_depth_max"),
    "exponential recursion": (
        "(define (f n) (+ (f (- n 1)) (f (- n 1)))) (f 100000)",
        "call_depth_max",
    ),
    "exponential recursion within the depth": (
        "(define (f n) (if (< n 0) 1 (+ (f (- n 1)) (f (- n 1))))) (f 500)",
        "steps_max",
    ),
    "a doubled text": (GROW.format(start="'a", more="(concat x x)"), "value_too_large"),
    "a text that is doubled with escapes": (
        GROW.format(start='"\\""', more="(text (list x))"),
        "value_too_large",
    ),
    "long texts again and again": (
        f'(let ((x "{LONG}")) (while true (concat x x x)))',
        "steps_max",
    ),
    "a doubled list": (GROW.format(start="(list 1)", more="(join-lists x x)"), "value_too_large"),
    "a list in itself twice": (GROW.format(start="(list)", more="(list x x)"), "memory_max"),
    "a list in itself": (GROW.format(start="(list)", more="(list x)"), "value_too_large"),
    "an object in itself": (GROW.format(start="(object)", more="(object 'a x)"), "value_too_large"),
    "a growing list": (GROW.format(start="(list)", more="(append x 1)"), "memory_max"),
    "a growing object": (
        "(let ((x (object)) (n 0)) (while true (set! n (+ n 1)) (set! x (put x (text n) n))))",
        "memory_max",
    ),
    "large lists again and again": ("(while true (range 10000))", "memory_max"),
    "a growing product": (GROW.format(start="2", more="(* x x)"), "number_out_of_range"),
    "a growing power": (GROW.format(start="3", more="(expt x x)"), "number_out_of_range"),
    "a tower of powers": ("(expt 9 (expt 9 (expt 9 2)))", "number_out_of_range"),
    "a sum of many": (f"(while true (+ {'1 ' * 500}))", "steps_max"),
    "many notifications": ("(while true (notify))", "outputs_max"),
    "many announced events": ("(for (x (range 17)) (announce 'a))", "outputs_max"),
    "a large announced event": (
        "(announce 'a (object 'x (map (n (range 3000)) n)))",
        "value_too_large",
    ),
    "a notification of many events": (
        "(notify (map (n (range 101)) (event)))",
        "value_too_large",
    ),
    "a large value to remember": ("(remember 'x (range 1000))", "state_max"),
    "many names to remember": ("(for (n (range 65)) (remember (text n) n))", "state_max"),
    "a long name to remember": (f'(remember "{LONG}{LONG[:6340]}" 1)', "state_max"),
    "texts compared": (f'(let ((x "{LONG}")) (while true (< x x x x x x)))', "steps_max"),
    "a text searched": (
        f'(let ((x "{"a" * 10_000}") (y "{"a" * 5_000}b")) (while true (contains x y)))',
        "steps_max",
    ),
    "lists compared": (
        "(let ((x (range 9000)) (y (range 9000))) (while true (= x y)))",
        "steps_max",
    ),
    "different values": (f"(while true (!= {' '.join(map(str, range(900)))}))", "steps_max"),
    "a text split": (
        f'(let ((x "{"a," * 5_000}")) (while true (split x ",")))',
        "memory_max",
    ),
    "recent events again and again": ("(while true (recent 1000))", "steps_max"),
}


# OIF-23
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_program_ends_within_its_limits(name: str) -> None:
    text, code = HOSTILE[name]
    program = compile_program(text)
    engine = AgentEngine()
    engine.add(0, program)
    began = time.process_time()
    (output,) = engine.feed(position(1), event())
    took = time.process_time() - began
    assert isinstance(output, ProgramFailed | ProgramSuspended)
    assert output.fault.code == code, output.fault
    assert output.fault.line >= 1
    assert took < 0.5, took
    assert isinstance(output, ProgramSuspended) == output.fault.is_limit


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_program_takes_little_memory(name: str) -> None:
    engine = engine_of(HOSTILE[name][0])
    tracemalloc.start()
    try:
        engine.feed(position(1), event())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * limits.AGENT_MEMORY_BYTES_MAX, peak


def test_deep_recursion_does_not_reach_pythons_stack() -> None:
    """The engine runs a call of 1,000 functions with few frames of its own."""
    text = "(define (f n) (if (= n 0) 0 (+ 1 (f (- n 1))))) (announce 'is (object 'n (f 990)))"
    engine = engine_of(text)
    frame, used = sys._getframe(), 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(used + 60)
    try:
        outputs = engine.feed(position(1), event())
    finally:
        sys.setrecursionlimit(before)
    assert outputs[0].event.attributes == {"n": 990}  # type: ignore[union-attr]


def test_a_value_of_the_greatest_depth_can_be_sent_and_compared() -> None:
    depth = limits.AGENT_VALUE_DEPTH_MAX - 2
    text = f"""
        (define x (fold (x (list)) (n (range {depth})) (list x)))
        (define y (fold (y (list)) (n (range {depth})) (list y)))
        (announce 'is (object 'x x 'same (= x y) 'text (length (text x))))"""
    (output,) = engine_of(text).feed(position(1), event())
    attributes = output.event.attributes  # type: ignore[union-attr]
    assert attributes["same"] is True
    assert attributes["text"] == 2 * (depth + 1)


def test_names_with_any_hash_cost_the_same() -> None:
    """Objects have texts as names only; the hash of a text is secret."""
    assert fault_of("(object 1 2)").code == "wrong_type"


def test_a_program_within_its_limits_is_not_ended() -> None:
    text = "(let ((n 0)) (while (< n 1500) (set! n (+ n 1))) (announce 'is (object 'n n)))"
    (output,) = engine_of(text).feed(position(1), event())
    assert output.event.attributes == {"n": 1500}  # type: ignore[union-attr]


def test_an_exceeded_limit_suspends_at_once_and_failures_in_a_row_do() -> None:
    engine = engine_of(
        "(when (field (event) 'loop) (while true))", "(when (field (event) 'bad) (+ 1 'a))"
    )
    (output,), nothing = fed(engine, {"loop": 1}, {"loop": 1})
    assert isinstance(output, ProgramSuspended) and output.pattern == 0 and not nothing
    waiting = engine.waiting(0)
    assert waiting is not None and waiting.status == "inactive"
    bad = [{"bad": 1}] * (limits.AGENT_FAILURES_MAX - 1)
    first = fed(engine, *bad, {}, *bad, first=3)
    assert all(isinstance(one, ProgramFailed) for outputs in first for one in outputs)
    ((last,), nothing) = fed(engine, {"bad": 1}, {"bad": 1}, first=50)
    assert isinstance(last, ProgramSuspended) and last.fault.code == "wrong_type" and not nothing


def test_recent_events_of_all_agents_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AGENT_RECENT_BYTES_MAX", 20_000)
    counting = "(announce 'is (object 'n (length (recent 100))))"
    rare = "(announce 'rare (object 'n (length (recent 100 (exists rare)))))"
    engine = engine_of(counting, rare)
    counts = []
    forgotten = 0
    for n in range(1, 200):
        outputs = engine.feed(position(n), Event("d", "t", {"x": "y" * 500}))
        forgotten += sum(one.count for one in outputs if isinstance(one, Dropped))
        counts.append(announced(outputs)[0][1]["n"])
    assert 5 < max(counts) < 25
    assert forgotten > 150
    assert len(engine.state()) < 40_000


def test_an_agent_forgets_events_of_all_its_filters_up_to_the_same_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "AGENT_RECENT_BYTES_MAX", 20_000)
    rare = "(length (recent 100 (exists rare)))"
    engine = engine_of(f"(announce 'is (object 'all (length (recent 100)) 'rare {rare}))")
    counts = []
    for n in range(1, 61):
        attributes = {"rare": 1} if n == 1 else {"x": "y" * 500}
        outputs = engine.feed(position(n), Event("d", "t", attributes))
        counts.append(announced(outputs)[0][1])
    assert counts[5] == {"all": 6, "rare": 1}
    assert counts[-1]["all"] < 25 and counts[-1]["rare"] == 0


@pytest.mark.parametrize(("deep", "codes"), [(0, []), (1, ["call_depth_max"])])
def test_functions_call_each_other_exactly_so_deep(deep: int, codes: list[str]) -> None:
    calls = limits.AGENT_CALL_DEPTH_MAX + deep
    engine = engine_of(f"(define (f n) (when (> n 1) (f (- n 1)))) (f {calls})")
    outputs = engine.feed(position(1), event())
    assert [one.fault.code for one in outputs if isinstance(one, ProgramSuspended)] == codes


def test_the_events_of_a_removed_agent_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AGENT_RECENT_BYTES_MAX", 6_000)
    engine = engine_of("(recent 10)", "(now)")
    for number in range(1, 9):
        assert engine.feed(position(number), event()) == []
    engine.remove(0)
    engine.add(2, compile_program("(recent 10)"))
    for number in range(9, 17):
        assert engine.feed(position(number), event()) == []


def steps_of(text: str, events: int = 1) -> int:
    """Return the steps that a program takes for the last of some events: the smallest limit with
    which it is not suspended.
    """

    def exceeds(most: int) -> bool:
        engine = engine_of(text)
        for number in range(1, events):
            engine.feed(position(number), event())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "AGENT_STEPS_MAX", most)
            outputs = engine.feed(position(events), event())
        return any(isinstance(one, ProgramSuspended) for one in outputs)

    return bisect_left(range(limits.AGENT_STEPS_MAX), True, key=lambda most: not exceeds(most))


def test_the_list_of_a_loops_results_takes_a_step_for_eight_of_them() -> None:
    """Otherwise `map` and `for` take the same."""
    taken = [steps_of(f"({form} (n (range 800)) n)") for form in ("for", "map")]
    assert taken[1] - taken[0] == 100


def test_the_list_of_a_loops_results_counts_as_memory() -> None:
    text = f'(define x "{LONG}") (map (n (range {{}})) x)'
    within = limits.AGENT_MEMORY_BYTES_MAX // len(LONG) - 3
    assert engine_of(text.format(within)).feed(position(1), event()) == []
    assert fault_of(text.format(within + 4)).code == "memory_max"


def test_recent_events_take_a_step_for_four_of_them() -> None:
    counts = (1, 3, 4, 7, 8, 40)
    taken = [steps_of("(recent 1000)", count) for count in counts]
    assert [steps - taken[0] for steps in taken] == [count // 4 for count in counts]


def test_a_long_run_is_interrupted_and_goes_on() -> None:
    """Nothing else ran in the process until a run was over."""
    text = "(let ((n 0)) (while (< n 1500) (set! n (+ n 1))) (announce 'is (object 'n n)))"
    parts = list(engine_of(text).steps(position(1), event()))
    assert parts[:-1] == [()] * (len(parts) - 1)
    assert parts[-1] == engine_of(text).feed(position(1), event())
    assert len(parts) == steps_of(text) // limits.AGENT_STEPS_AT_ONCE + 1
