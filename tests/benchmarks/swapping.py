"""The command `python -m tests.benchmarks.swapping WORK`: one thread matches events that are due at
a constant rate, as a forwarder does, while another thread opens indexes that it takes between two
events, or another process builds indexes; prints figures as JSON. It runs in a process of its own.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import perf_counter_ns
from typing import NamedTuple

import orjson

from delivery.forward.indexed import IndexedVersions
from delivery.forward.stream_matcher import CallbackMatcher
from eventhub.base import limits
from registrations.filters.languages import parse
from registrations.match_index.epochs.epoch import open_epoch
from registrations.match_index.epochs.facts import EpochFacts
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS
from registrations.matching.spec import Specs, specs_of
from registrations.matching.versions import StreamVersion
from tests.benchmarks import fleet
from tests.benchmarks.load.http import percentiles_ms
from tests.benchmarks.matching import event_of

PER_S = 5_000
SWAP_PAUSE_NS = 250_000_000  # in life a minute
BEHIND_NS_MAX = 100_000_000  # a machine that is too busy would never come to the end
EVENTS = 2_000
CHANGED = 10_000  # since the index was built, in ten seconds: as many are new, as many have ended
SEED = 20_261_124
SECOND_NS = 1_000_000_000
SEQUENCE = 100  # of all events


class Work(NamedTuple):
    """The work. `what`: build, calm (nothing else), builds (another process builds an index
    repeatedly) or swaps (the same, and indexes are taken). `root`: of the index.
    """

    what: str
    root: str
    registrations: int
    seconds: float


class Taking:
    """Indexes that are opened in a thread and taken by the matching thread, a step between two
    events.
    """

    def __init__(self, interest: CallbackMatcher, work: Work, ended: dict[int, int]) -> None:
        self._interest = interest
        self._root = Path(work.root)
        self._ended = ended
        self._next_ns = perf_counter_ns() if work.what == "swaps" else None
        self._thread = ThreadPoolExecutor(1)
        self._opening: Future[IndexedVersions] | None = None
        self._steps: Iterator[None] | None = None
        self.swaps = 0
        self.step_max_us = 0.0

    @property
    def is_never(self) -> bool:
        """Whether no index is ever taken."""
        return self._next_ns is None

    @property
    def is_busy(self) -> bool:
        return self._opening is not None or self._steps is not None

    def look(self, now_ns: int) -> None:
        """Take a step between two events: the matching thread waits for it."""
        if self._steps is not None:
            self._step()
        elif self._opening is not None:
            if self._opening.done():
                self._steps = self._interest.swap(self._opening.result(), self._ended)
                self._opening = None
        elif self._next_ns is not None and now_ns >= self._next_ns:
            self._interest.record_changes()
            self._opening = self._thread.submit(_opened, self._root)

    def _step(self) -> None:
        assert self._steps is not None
        began_ns = perf_counter_ns()
        if next(self._steps, self) is self:
            self._steps = None
            self.swaps += 1
            self._next_ns = perf_counter_ns() + SWAP_PAUSE_NS
        self.step_max_us = max(self.step_max_us, (perf_counter_ns() - began_ns) / 1e3)


class Took(NamedTuple):
    """Nanoseconds: of matching one event, and from when it was due to when it was matched."""

    matching: "array[int]"
    since_due: "array[int]"
    matches: list[int]


def _opened(root: Path) -> IndexedVersions:
    epoch = open_epoch(root)
    _ = epoch.clients, epoch.groups
    return IndexedVersions(epoch, {})


def specs(number: int) -> Specs:
    asked = dict(fleet.filter_of(number))
    language = asked.pop("language", "pairs")
    return specs_of(parse(language, asked if language == "pairs" else asked["filter"]).node)


def built(work: Work) -> dict[str, float]:
    os.nice(limits.INDEX_BUILD_NICENESS)  # as the hub's builder
    facts = EpochFacts(stream=2, history="bench", after=0, xmin=0)
    columns = {**dict.fromkeys(COLUMNS, 0), "endpoint": 1, "until": NEVER_ENDS}
    entries = (
        IndexEntry(number, specs(number), {**columns, "registration": number})
        for number in range(work.registrations)
    )
    plan = EpochPlan(built_through_sequence=0, facts=facts.stored(), extra=COLUMNS)
    return {"bytes": build(Path(work.root), entries, plan).bytes}


def run(work: Work) -> dict[str, float]:
    """Run the work. Of swaps, only events matched during one count."""
    if work.what == "build":
        return built(work)
    interest, ended = filled(work)
    events = [orjson.dumps(event) for event in fleet.events(EVENTS)]
    for event in events:  # pages are read once
        interest.match(event_of(event), SEQUENCE)
    gc.collect()
    gc.freeze()
    taking = Taking(interest, work, ended)
    with building(work) if work.what != "calm" else _nothing():
        took = paced(interest, events, taking, work.seconds)
    found = {f"{name[:3]}_us": value * 1e3 for name, value in percentiles_ms(took.matching).items()}
    for name, value in percentiles_ms(took.since_due).items():
        found[f"since_due_{name[:3]}_us"] = value * 1e3
    found["matches_per_event"] = sum(took.matches) / max(len(took.matches), 1)
    if work.what == "swaps":
        found |= {"swaps": float(taking.swaps), "step_max_us": taking.step_max_us}
    return found


def filled(work: Work) -> tuple[CallbackMatcher, dict[int, int]]:
    """Return an interest over the index, with later changes, and the versions that ended."""
    interest, changed = CallbackMatcher(0), min(CHANGED, work.registrations // 10)
    interest.indexed = _opened(Path(work.root))
    numbers = range(work.registrations, work.registrations + changed)
    interest.take(StreamVersion(n, n, "bench", 1, specs(n), since=0, until=None) for n in numbers)
    leaving = Random(SEED).sample(range(fleet.DEVICES, work.registrations), changed)
    return interest, dict.fromkeys(leaving, SEQUENCE // 2)


def paced(interest: CallbackMatcher, events: list[bytes], taking: Taking, seconds: float) -> Took:
    """Match events at their times. The thread never sleeps, so wake-up delays do not count. Events
    that are queued after a step of a swap wait for it, which `since_due` shows.
    """
    took, due_ns, at = Took(array("q"), array("q"), []), perf_counter_ns(), 0
    until_ns = due_ns + int(seconds * SECOND_NS)
    while due_ns < until_ns or (taking.is_busy and not taking.swaps):
        taking.look(perf_counter_ns())
        while perf_counter_ns() < due_ns:
            pass
        began_ns = perf_counter_ns()
        match = interest.match(event_of(events[at % len(events)]), SEQUENCE)
        ended_ns = perf_counter_ns()
        if taking.is_busy or taking.is_never:
            took.matching.append(ended_ns - began_ns)
            took.since_due.append(ended_ns - due_ns)
            took.matches.append(sum(map(len, match.endpoints.values())))
        at += 1
        due_ns = max(due_ns + SECOND_NS // PER_S, ended_ns - BEHIND_NS_MAX)
    return took


@contextmanager
def building(work: Work) -> Iterator[None]:
    """Build an index of as many registrations in another process, elsewhere."""
    with tempfile.TemporaryDirectory(prefix="eventhub-bench-") as folder:
        words = json.dumps(work._replace(what="build", root=folder))
        command = [sys.executable, "-m", "tests.benchmarks.swapping", words]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


if __name__ == "__main__":
    print(json.dumps(run(Work(*json.loads(sys.argv[1])))))
