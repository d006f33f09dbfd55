"""`python -m tests.benchmarks.matching WORK`: one matcher filled and asked, JSON bytes in, numbers
out, on one thread; prints figures as JSON. Runs in a process of its own.
"""

import gc
import json
import sys
import tracemalloc
import zlib
from array import array
from collections.abc import Callable
from random import Random
from time import perf_counter, perf_counter_ns, process_time
from typing import NamedTuple

import orjson

from eventhub.event.envelope import Event
from registrations.match.matcher import Matcher
from registrations.match.spec import Spec
from registrations.match.strategies import STRATEGIES
from tests.benchmarks.baselines.counting_dict import CountingDict
from tests.benchmarks.interest import SEED, Interest, interest

SIDES: dict[str, Callable[[], Matcher]] = {**STRATEGIES, "counting_dict": CountingDict}
EVENTS = 2_000  # different ones, again and again
CHECKED = 50  # events whose matches are compared between the sides
TURN = 8  # events between two looks at the clock
CHANGES = 2_000  # registrations taken out and put back


class Work(NamedTuple):
    """`side` is a name of SIDES; `memory` measures that instead of time."""

    side: str
    registrations: int
    seconds: float
    memory: bool = False


def run(work: Work) -> dict[str, float]:
    made = interest(work.registrations, EVENTS)
    if work.memory:
        return {"bytes_per_registration": memory(work, made)}
    matcher = SIDES[work.side]()
    began = process_time()
    fill(matcher, made.specs)
    filling_s = process_time() - began
    gc.collect()
    gc.freeze()  # as the processes of the hub do after their start
    events = [orjson.dumps(event) for event in made.events]
    figures = {
        "check": check(matcher, events),
        **rate(matcher, events, work.seconds),
        "adds_per_s": work.registrations / filling_s,
    }
    return {**figures, **changes(matcher, made.specs)}


def fill(matcher: Matcher, specs: list[Spec]) -> None:
    for id, spec in enumerate(specs):
        matcher.add(id, spec)


def matched(matcher: Matcher, text: bytes) -> list[int]:
    """What is measured."""
    event = orjson.loads(text)
    return matcher.match(Event(event["domain"], event["type"], event["attributes"]))


def check(matcher: Matcher, events: list[bytes]) -> float:
    """The same number from every side that finds the same."""
    found = [sorted(matched(matcher, text)) for text in events[:CHECKED]]
    return float(zlib.crc32(json.dumps(found).encode()))


def rate(matcher: Matcher, events: list[bytes], seconds: float) -> dict[str, float]:
    """Events per second of CPU time (what else runs here should not count), then single ones."""
    done, found, began = 0, 0, process_time()
    while (spent := process_time() - began) < seconds:
        for _ in range(TURN):
            found += len(matched(matcher, events[done % len(events)]))
            done += 1
    took = array("q")
    until = perf_counter() + seconds / 4
    for text in events:
        began_ns = perf_counter_ns()
        matched(matcher, text)
        took.append(perf_counter_ns() - began_ns)
        if perf_counter() > until:
            break
    ordered = sorted(took)
    return {
        "per_s": done / spent,
        "matches_per_event": found / done,
        "p50_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[len(ordered) * 99 // 100] / 1e3,
    }


def changes(matcher: Matcher, specs: list[Spec]) -> dict[str, float]:
    """Registrations that leave the full index, and come back."""
    if isinstance(matcher, CountingDict):
        return {}
    leaving = Random(SEED).sample(range(len(specs)), min(CHANGES, len(specs)))
    began = process_time()
    for id in leaving:
        matcher.remove(id)
    removed = process_time()
    for id in leaving:
        matcher.add(id, specs[id])
    added = process_time()
    return {
        "removes_per_s_when_full": len(leaving) / (removed - began),
        "adds_per_s_when_full": len(leaving) / (added - removed),
    }


def memory(work: Work, made: Interest) -> float:
    """What the matcher holds alone, the texts of its registrations included."""
    texts = [orjson.dumps(tuple(spec)) for spec in made.specs]
    del made
    gc.collect()
    tracemalloc.start()
    matcher = SIDES[work.side]()
    for id, text in enumerate(texts):
        domain, type, pairs, application, _ = orjson.loads(text)
        named = tuple((name, value) for name, value in pairs)
        matcher.add(id, Spec(domain, type, named, application))
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / work.registrations


if __name__ == "__main__":
    print(json.dumps(run(Work(*json.loads(sys.argv[1])))))
