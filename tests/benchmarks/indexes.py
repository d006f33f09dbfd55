"""The command `python -m tests.benchmarks.indexes WORK`: builds a match index, opens it, or maps it
in two processes; prints figures as JSON. It runs in a process of its own.
"""

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

import orjson

from registrations.filters.predicate import parse_predicate
from registrations.match_index.engines.available import AUTO
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.index import open_base
from registrations.match_index.format.manifest import read_manifest
from registrations.matching.spec import specs_of
from tests.benchmarks import interest, predicates
from tests.benchmarks.matching import answering, event_of

OPENED = 20  # times
EVENTS = 2_000  # matched by each of two processes


class Work(NamedTuple):
    """The work. `what`: build, open or share. `data`: pairs or predicates."""

    what: str
    root: str
    registrations: int = 0
    data: str = "pairs"


def run(work: Work) -> dict[str, float]:
    if work.what == "build":
        return built(work)
    if work.what == "open":
        return opened(Path(work.root))
    return shared(Path(work.root))


def entries(work: Work) -> Iterator[IndexEntry]:
    if work.data == "predicates":
        for id, text in enumerate(predicates.filters(work.registrations)):
            yield IndexEntry(id, specs_of(parse_predicate(text)))
        return
    for id, spec in enumerate(interest.specs(work.registrations)):
        yield IndexEntry(id, (spec,))


def built(work: Work) -> dict[str, float]:
    """Measure CPU seconds from the first entry to the last file, and bytes on disk."""
    began = process_time()
    manifest = build(Path(work.root), entries(work), EpochPlan(built_through_sequence=0))
    seconds = process_time() - began
    return {"bytes": manifest.bytes, "seconds": seconds, "entries": manifest.entries}


def opened(root: Path) -> dict[str, float]:
    """Measure milliseconds until the first match is possible: manifest read, headers checked."""
    took = []
    for _ in range(OPENED):
        began = perf_counter()
        answering(open_base(root), AUTO)
        took.append((perf_counter() - began) * 1e3)
    return {"open_ms": median(took), "bytes": read_manifest(root).bytes}


def shared(root: Path) -> dict[str, float]:
    """Measure kilobytes of the index in memory, and a process's share if another process has it
    too.
    """
    command = [sys.executable, "-m", "tests.benchmarks.indexes", json.dumps(Work("map", str(root)))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen(command, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for child in children:
        child.stdout.readline()
    figures = [json.loads(child.communicate("\n")[0]) for child in children[:1]]
    children[1].communicate("\n")
    return {"rss_kb": figures[0]["rss_kb"], "pss_kb": figures[0]["pss_kb"]}


def mapped(root: Path) -> dict[str, float]:
    """Map the index in one of two processes: match, read everything, and wait until the other one
    has done so.
    """
    base = open_base(root)
    engine = answering(base, AUTO)
    for event in interest.coming(EVENTS):
        engine.match(event_of(orjson.dumps(event)))
    base.verify()
    gc.collect()
    print("mapped", flush=True)
    sys.stdin.readline()
    found = {"rss_kb": 0.0, "pss_kb": 0.0}
    mine = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(":")
        if "-" in name and " " in name:
            mine = line.endswith(".idx")
        elif mine and name in ("Rss", "Pss"):
            found[f"{name.lower()}_kb"] += int(rest.split()[0])
    return found


if __name__ == "__main__":
    given = Work(*json.loads(sys.argv[1]))
    print(json.dumps(mapped(Path(given.root)) if given.what == "map" else run(given)))
