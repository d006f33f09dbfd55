"""The command `python -m tests.benchmarks.pattern_work WORK`: runs patterns over several events in
the engines of one group, and prints figures as JSON. It runs in a process of its own.

A pattern of number i begins with an event of its type and ends with one of another; `types` says
how many there are, so patterns / types begin with the same event. Half of the events are of users
that begin patterns, each of which the next event of that user may complete.
"""

import gc
import json
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from random import Random
from time import process_time
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.agents.compiler import compile_program
from registrations.agents.engine import AgentEngine
from registrations.agents.run import ProgramSuspended
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.parser import parse_pattern
from registrations.patterns.pattern_engine import (
    Dropped,
    EventPosition,
    Match,
    Output,
    PatternEngine,
)
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.language import parse_temporal
from tests.benchmarks.baselines.enumerated_joins import EnumeratedJoins
from tests.benchmarks.interest import SEED

SEGMENT = "018f4e5c-0000-7000-8000-000000000000"
WARMUP = 200  # events
CHECKED = 100  # events whose outputs are compared between the sides
TURN = 8  # events between two looks at the clock
USERS = 1_000
LOGINS = """
(memory {memory})
(event (time ?t1) (userid ?u)) (event (time ?t2) (userid ?u)) (event (time ?t3) (userid ?u))
(test (< ?t1 ?t2 ?t3))
"""
LOOKS = 10  # at the memory that is held
HOSTILE_EVENTS = 2_000  # between two times that the hostile agents are registered again
HOSTILE = (
    "(while true)",
    "(let ((x (list))) (while true (set! x (list x x))))",
    "(define (f x) (+ 1 (f x))) (f 1)",
    "(while true (notify))",
)
PREFIX_PATTERNS = 20  # of each kind; together they reach the limit of a group
PREFIXES = """
(memory 10000)
(event (@type 'A) (third ?u) (x ?x)) (event (@type 'A) (third ?u) (x ?y))
(event (@type '{last}) (third ?u)) (test (< ?x ?y))
"""


class Work(NamedTuple):
    """The work. `side`: see SIDES; `count`: patterns, open partial matches, or remembered events;
    `types`: of events.
    """

    side: str
    count: int
    seconds: float
    types: int = 0


Feed = Callable[[EventPosition, Event], list[Any]]


class Group:
    """An engine, or several, that are fed with one event after the other."""

    def __init__(self, *engines: Feed) -> None:
        self._engines = engines
        self._order = 0

    def feed(self, event: Event) -> list[Output]:
        self._order += 1
        position = EventPosition(self._order, 1, SEGMENT, self._order, 1_000 * self._order)
        return [output for feed in self._engines for output in feed(position, event)]


# --- patterns ---


def ready(number: int, types: int) -> str:
    first, second = number % types, (number * 7 + 1) % types
    return f"{{a: T{first} | $x >= {number % 7}}}; {{b: T{second}}} per $user within 1h last 9"


def ready_ending(number: int, types: int) -> str:
    """Return a pattern that begins with an event of its own, and ends with one of all patterns."""
    return f"{{a: T{number % types} | $x == {number}}}; {{b: End}} per $user within 1h last 9"


def temporal(number: int, types: int) -> str:
    first, second = number % types, (number * 7 + 1) % types
    return (
        f"(memory 100) (event (@type 'T{first}) (user ?u) (x ?x))"
        f" (event (@type 'T{second}) (user ?u) (y ?y)) (test (< ?x ?y))"
    )


def agent(number: int, types: int) -> str:
    return (
        f"(on (and (= @type 'T{number % types}) (>= x {number % 7})))"
        "(define n (+ 1 (recall 'n 0))) (remember 'n n)"
        "(when (= (mod n 5) 0) (notify))"
    )


def patterns(work: Work) -> Group:
    """Return a group with so many patterns of one kind."""
    texts = [_TEXTS[work.side](number, work.types) for number in range(work.count)]
    if work.side == "temporal":
        engine = TemporalEngine()
        for number, text in enumerate(texts):
            engine.add(number, parse_temporal(text))
        return Group(engine.feed)
    if work.side == "agents":
        agents = AgentEngine()
        for number, text in enumerate(texts):
            agents.add(number, compile_program(text))
        return Group(agents.feed)
    engines = [ReadyEngine() for _ in texts] if work.side == "alone" else [ReadyEngine()]
    for number, text in enumerate(texts):
        engines[number % len(engines)].add(number, parse_pattern(text))
    return Group(*(one.feed for one in engines))


_TEXTS: dict[str, Callable[[int, int], str]] = {
    "ready": ready,
    "alone": ready,
    "ending": ready_ending,
    "temporal": temporal,
    "agents": agent,
}


def events(types: int, *, ending: bool = False) -> Iterator[Event]:
    random = Random(SEED)
    while True:
        user = random.randrange(USERS)
        first = random.randrange(types)
        attributes = {"user": user, "x": random.randrange(7), "y": random.randrange(9)}
        if ending:
            attributes["x"] = first
        yield Event("bench", f"T{first}", dict(attributes))
        second = "End" if ending else f"T{(first * 7 + 1) % types}"
        yield Event("bench", second, {**attributes, "x": -1})


def cost(work: Work) -> dict[str, float]:
    """Measure the µs of CPU time that an event takes."""
    group = patterns(work)
    coming = events(work.types, ending=work.side == "ending")
    gc.collect()
    gc.freeze()
    outputs = [len(group.feed(next(coming))) for _ in range(CHECKED)]
    check = zlib.crc32(json.dumps(outputs).encode())
    for _ in range(0 if work.side == "alone" else WARMUP):
        group.feed(next(coming))
    done, found, began = 0, 0, process_time()
    while (spent := process_time() - began) < work.seconds:
        for _ in range(1 if work.side == "alone" else TURN):
            found += len(group.feed(next(coming)))
            done += 1
    return {"us": 1e6 * spent / done, "outputs_per_event": found / done, "check": check}


# --- memory ---


def _opening(side: str) -> tuple[PatternEngine, Group]:
    """Return an engine in which each of the events opens a partial match."""
    if side == "ready":
        engine = ReadyEngine()
        engine.add(0, parse_pattern("({a: A}; {b: B}) where a.x == b.x per $user"))
        return engine, Group(engine.feed)
    joins = TemporalEngine()
    joins.add(0, parse_temporal(LOGINS.format(memory=limits.TEMPORAL_MEMORY_MAX)))
    return joins, Group(joins.feed)


def memory(work: Work) -> dict[str, float]:
    """Measure the bytes of each of so many open partial matches, in memory and in the state."""
    coming = [Event("d", "A", {"user": n, "x": n, "userid": f"u{n // 2}", "time": n})
              for n in range(2 * work.count)]  # fmt: skip
    _, other = _opening(work.side)
    for _ in range(5 * WARMUP):  # its index imports a library when it has seen some events
        other.feed(coming[0]._replace())
    engine, group = _opening(work.side)
    group.feed(coming[0])
    gc.collect()
    tracemalloc.start()
    for event in coming[1 : work.count + 1]:
        group.feed(event)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    return {"bytes": held / work.count, "state_bytes": len(engine.state()) / work.count}


# --- temporal joins ---


def joins(work: Work) -> dict[str, float]:
    """Measure the µs of an event with so many remembered, of a tenth as many users."""
    engine = TemporalEngine()
    engine.add(0, parse_temporal(LOGINS.format(memory=work.count)))
    group, enumerated = Group(engine.feed), EnumeratedJoins(work.count)
    random = Random(SEED)
    coming = (
        {"time": number, "userid": random.randrange(max(work.count // 10, 1))}
        for number in range(1 << 60)
    )
    for _ in range(work.count):
        event = next(coming)
        group.feed(Event("d", "t", event))
        enumerated.remember(event)
    before = engine.counters.examined
    done, found, began = 0, 0, process_time()
    while (spent := process_time() - began) < work.seconds:
        event = next(coming)
        if work.side == "enumerated":
            found += enumerated.feed(event)
        else:
            found += len(group.feed(Event("d", "t", event)))
        done += 1
    tried = enumerated.tried if work.side == "enumerated" else engine.counters.examined - before
    return {
        "us": 1e6 * spent / done,
        "matches_per_event": found / done,
        "examined_per_event": tried / done,
    }


# --- bounds ---


def bounded(work: Work) -> dict[str, float]:
    """Feed so many events that begin matches and never complete them; measure what is held, and
    what was dropped and reported.
    """
    leaves = LeafIndex()
    engine, other = ReadyEngine(leaves), TemporalEngine(leaves=leaves)
    for number in range(PREFIX_PATTERNS):
        ready_text = f"({{a: A}}; {{b: B{number}}}) where a.x == b.x per $user"
        engine.add(number, parse_pattern(ready_text))
        other.add(number, parse_temporal(PREFIXES.format(last=f"B{number}")))
    group = Group(engine.feed, other.feed)
    dropped: dict[str, int] = {}
    gc.collect()
    tracemalloc.start()
    worst, held_at = 0.0, {}
    for number in range(work.count):
        began = process_time()
        attributes = {"user": number, "third": number // 3, "x": f"{number:0200d}"}
        outputs = group.feed(Event("d", "A", attributes))
        worst = max(worst, process_time() - began)
        if (number + 1) % max(work.count // LOOKS, 1) == 0:
            held_at[f"mb_at_{number + 1}"] = tracemalloc.get_traced_memory()[0] / 1e6
        for one in outputs:
            assert not isinstance(one, Match)
            if isinstance(one, Dropped):
                dropped[one.reason] = dropped.get(one.reason, 0) + one.count
    held, _ = tracemalloc.get_traced_memory()
    return {
        "mb": held / 1e6,
        **held_at,
        "estimated_mb": engine.memory_bytes / 1e6,
        "worst_event_ms": 1e3 * worst,
        "events": work.count,
        **{f"dropped_{reason}": count for reason, count in sorted(dropped.items())},
    }


# --- hostile agents ---


def hostile(work: Work) -> dict[str, float]:
    """Measure the µs of CPU time of an event, for which the others of the group wait, with an agent
    that never ends, one that takes all memory, one that calls itself without end, and one that
    notifies without end, each of which is suspended and then registered again.
    """
    engine = AgentEngine()
    for number in range(work.count):
        engine.add(number, compile_program(agent(number, work.types)))
    group, coming = Group(engine.feed), events(work.types)
    taken: list[float] = []
    stopped, ends = 0, process_time() + 5 * work.seconds
    for _ in range(WARMUP):
        group.feed(next(coming))
    while process_time() < ends:
        for number, text in enumerate(HOSTILE if work.side == "hostile" else (), work.count):
            engine.add(number, compile_program(text))
        for _ in range(HOSTILE_EVENTS):
            event = next(coming)
            began = process_time()
            outputs = group.feed(event)
            taken.append(process_time() - began)
            stopped += sum(isinstance(one, ProgramSuspended) for one in outputs)
    taken.sort()
    return {
        "p99_us": 1e6 * taken[len(taken) * 99 // 100],
        "p50_us": 1e6 * taken[len(taken) // 2],
        "worst_ms": 1e3 * taken[-1],
        "suspended": stopped,
        "events": len(taken),
    }


COMMANDS = {"cost": cost, "memory": memory, "joins": joins, "bounded": bounded, "hostile": hostile}


if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](Work(*json.loads(sys.argv[2])))))
