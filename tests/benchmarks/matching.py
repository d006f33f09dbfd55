"""The command `python -m tests.benchmarks.matching WORK`: fills one matcher and matches events,
JSON bytes in, numbers out, on one thread; prints figures as JSON. It runs in a process of its own.
"""

import gc
import json
import sys
import tracemalloc
import zlib
from array import array
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from random import Random
from time import perf_counter, perf_counter_ns, process_time
from typing import Any, NamedTuple

import orjson

from eventhub.event.envelope import Event
from registrations.filters.predicate import parse_predicate
from registrations.match_index.engines.available import new_engine
from registrations.match_index.engines.engine import Engine
from registrations.match_index.format.index import Base, open_base
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.matcher import Matcher
from registrations.matching.spec import Spec, Specs, specs_of
from registrations.matching.strategies import STRATEGIES
from tests.benchmarks import predicates
from tests.benchmarks.baselines.counting_dict import CountingDict
from tests.benchmarks.baselines.evaluate_all import EvaluateAll
from tests.benchmarks.interest import SEED, Interest, interest

SIDES: dict[str, Callable[[], Matcher]] = {**STRATEGIES, "counting_dict": CountingDict}
INDEX = "index."  # before an engine: that engine over an index built in advance
EVALUATE_ALL = "evaluate_all"
EVENTS = 2_000  # different ones, again and again
CHECKED = 50  # events whose matches are compared between the sides
CHECKED_AMONG_MANY = 4  # the scan takes seconds for one of a million registrations
MANY = 500_000
TURN = 8  # events between two looks at the clock
CHANGES = 2_000  # registrations taken out and put back


class Work(NamedTuple):
    """The work. `side` is a name of SIDES, INDEX and an engine, or EVALUATE_ALL; `memory` measures
    that instead of time. `data`: pairs, predicates or ranges. `root`: of the index. `churn`: before
    each event a registration is removed and added again.
    """

    side: str
    registrations: int
    seconds: float
    memory: bool = False
    data: str = "pairs"
    root: str = ""
    churn: bool = False


TEXTS: dict[str, Callable[[int], list[str]]] = {
    "predicates": predicates.filters,
    "ranges": predicates.ranges,
}
COMING: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "pairs": lambda count: interest(0, count).events,
    "predicates": predicates.events,
    "ranges": predicates.measured,
}
Ask = Callable[[Event], Any]  # a list of numbers, or a buffer of them


def run(work: Work) -> dict[str, float]:
    if work.memory:
        made = interest(work.registrations, 0)
        return {"bytes_per_registration": memory(work, made)}
    side = sided(work)
    gc.collect()
    gc.freeze()  # as the processes of the hub do after their start
    coming = COMING[work.data](EVENTS)
    events = [orjson.dumps(event) for event in coming]
    checked = CHECKED if work.registrations < MANY else CHECKED_AMONG_MANY
    figures = {"check": check(side.ask, events[:checked])}
    figures |= rate(side.ask, events, work.seconds)
    if side.matcher is None:
        return figures
    figures["adds_per_s"] = work.registrations / side.filling_s
    return {**figures, **changes(side.matcher, side.specs)}


class Side(NamedTuple):
    """A function to measure; the matcher and its registrations, if they may change."""

    ask: Ask
    matcher: Matcher | None = None
    specs: list[Spec] = []  # noqa: RUF012 - a NamedTuple's default, never written to
    filling_s: float = 0.0


def sided(work: Work) -> Side:
    if work.side.startswith(INDEX):
        return Side(answering(open_base(Path(work.root)), work.side.removeprefix(INDEX)).match)
    if work.side == EVALUATE_ALL:
        return Side(EvaluateAll(predicates.filters(work.registrations)).match)
    if work.data in TEXTS:
        filters = FilterMatcher(SIDES[work.side]())
        expected = [
            specs_of(parse_predicate(text)) for text in TEXTS[work.data](work.registrations)
        ]
        for id, specs in enumerate(expected):
            filters.add(id, specs)
        return Side(changing(filters, expected) if work.churn else filters.match)
    specs = interest(work.registrations, 0).specs
    matcher = SIDES[work.side]()
    began = process_time()
    fill(matcher, specs)
    return Side(matcher.match, matcher, specs, process_time() - began)


def changing(filters: FilterMatcher, expected: list[Specs]) -> Ask:
    """Return a function that matches after one filter was removed and added again, another one each
    time.
    """
    leaving = cycle(range(len(expected)))

    def ask(event: Event) -> list[int]:
        id = next(leaving)
        filters.remove(id)
        filters.add(id, expected[id])
        return filters.match(event)

    return ask


def answering(base: Base, engine: str) -> Engine:
    """Return an engine over an index of one shard."""
    [shard] = base.shards
    return new_engine(engine, shard)


def fill(matcher: Matcher, specs: list[Spec]) -> None:
    for id, spec in enumerate(specs):
        matcher.add(id, spec)


def event_of(text: bytes) -> Event:
    event = orjson.loads(text)
    return Event(event["domain"], event["type"], event["attributes"])


def matched(ask: Ask, text: bytes) -> Any:
    """Match one event: the measured operation."""
    event = orjson.loads(text)
    return ask(Event(event["domain"], event["type"], event["attributes"]))


def check(ask: Ask, events: list[bytes]) -> float:
    """Return a checksum that is equal for all sides that find the same."""
    found = [sorted(matched(ask, text)) for text in events]
    return float(zlib.crc32(json.dumps(found).encode()))


def rate(ask: Ask, events: list[bytes], seconds: float) -> dict[str, float]:
    """Return events per second of CPU time (so other load does not count), then single ones."""
    done, found, began = 0, 0, process_time()
    while (spent := process_time() - began) < seconds:
        for _ in range(TURN):
            found += len(matched(ask, events[done % len(events)]))
            done += 1
    took = array("q")
    until = perf_counter() + seconds / 4
    for text in events:
        began_ns = perf_counter_ns()
        matched(ask, text)
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
    """Measure removals from the full index, and additions."""
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
    """Return the memory of the matcher alone, the texts of its registrations included."""
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
