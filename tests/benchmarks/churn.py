"""`churn`: a hub matches 5,000 events a second against many registrations while 1,000 changes a
second of other registrations go through the bulk route; each must get exactly what it requested
while it was in force. Also the cost of switching to a large index for the matching process.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import orjson

from tests.benchmarks import fleet, judged, swapping
from tests.benchmarks.hub import Hub
from tests.benchmarks.load.jobs import ChurnJob
from tests.benchmarks.load.start import LoadFailed, run_load
from tests.benchmarks.match import SIZES
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

TARGET_EVENTS, TARGET_CHANGES = 5_000.0, 1_000.0
ABOVE = 1.06  # so much more is sent, so that what is matched reaches what is target
REGISTRATIONS = 100_000  # beside those that come and go
STREAM = "churn"
BATCH, BODIES = 125, 64
HOT, HOT_SHARE = 50, 0.02  # devices that come-and-go registrations ask for; of the events
LOADED_SHARE = 0.01  # of the events; these match of the others
TIMES = 3  # a reading is longer than others: registrations live for two seconds
LOOK_S = 0.25
SWAP_P99_MAX = 2.0


def cases(world: World, pace: Pace) -> list[Case]:
    runs = _Runs(world, pace)
    return [
        Case(
            name="churn_events",
            unit="events/s",
            product=runs.events,
            baselines={"target": lambda: Reading(runs.target(TARGET_EVENTS))},
            floor=1.0,
        ),
        Case(
            name="churn_changes",
            unit="changes/s",
            product=runs.changes,
            baselines={"target": lambda: Reading(runs.target(TARGET_CHANGES))},
            floor=1.0,
        ),
        Case(
            name="swap_p99",
            unit="µs",
            product=_swapping(world, pace, "swaps"),
            baselines={
                "without": _swapping(world, pace, "calm"),
                "built_beside": _swapping(world, pace, "builds"),
            },
            floor=SWAP_P99_MAX,
            lower_is_better=True,
        ),
    ]


class _Sample(NamedTuple):
    at_s: float  # monotonic
    forwarded: float  # events
    lag_events: float
    lag_s: float


class _Scene(NamedTuple):
    """A hub with its registrations, and the events to emit."""

    hub: Hub
    stream_id: int
    endpoints: tuple[int, int]
    registrations: int
    events: list[list[dict[str, object]]]


class _Runs:
    """A run, which gives both figures: events matched, and changes."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._quick = pace.registrations_max < REGISTRATIONS
        self._number = 0
        self._changes: list[Reading] = []

    def target(self, per_s: float) -> float:
        """Return the target rate, a tenth of it in a smoke run."""
        return per_s / 10 if self._quick else per_s

    def events(self) -> Reading:
        self._number += 1
        scene = _scene(self._world, self._pace)
        file = Path(self._world.data) / f"churn-{self._number}.json"
        job = self._job(scene, file)
        building = _building(scene.hub) if self._pace.own_hubs else nullcontext()
        with _sampled(scene.hub, scene.stream_id) as samples, building:
            figures = run_load(job)
        seen = orjson.loads(file.read_bytes())
        found = judged.judge(scene.hub, scene.stream_id, job.prefix, _coming(scene, seen))
        if found.problems:
            raise LoadFailed(f"{len(found.problems)} problems: {'; '.join(found.problems[:5])}")
        shown = {
            **found.figures,
            **_lag(samples, figures),
            "index_epoch": scene.hub.index_epoch(scene.stream_id),
            "forwarder_mb": scene.hub.forwarder_mb(),
            "load_cpu": figures["load_cpu"],
        }
        self._changes.append(Reading(figures["changes_per_s"], {"versions": shown["versions"]}))
        return Reading(_rate(samples, figures), shown)

    def changes(self) -> Reading:
        """Return the rate of changes in the same runs."""
        if not self._changes:
            self.events()
        return self._changes.pop(0)

    def _job(self, scene: _Scene, file: Path) -> ChurnJob:
        hub = scene.hub
        return ChurnJob(
            target=hub.target(STREAM),
            bodies=[orjson.dumps(batch).decode() for batch in scene.events],
            batch=BATCH,
            rate=self.target(TARGET_EVENTS) * ABOVE,
            changes=self.target(TARGET_CHANGES) * ABOVE,
            seconds=max(self._pace.seconds * TIMES, 3.0),
            warmup_s=self._pace.warmup_s,
            stream=STREAM,
            stream_id=scene.stream_id,
            endpoints=scene.endpoints,
            port=hub.port,
            hot=HOT,
            prefix=f"churn-{self._number}-",
            database=hub.url,
            file=str(file),
        )


@cache
def _scene(world: World, pace: Pace) -> _Scene:
    """Open a scene. The registrations that every event matches are not among the population."""
    hub = world.hub("churn", pace)
    registrations = min(REGISTRATIONS, pace.registrations_max)
    stream_id = hub.stream(STREAM)
    endpoint = hub.endpoint("fleet")
    numbers = range(fleet.DEVICES, fleet.DEVICES + registrations)
    hub.register(fleet.lines(STREAM, numbers, endpoint))
    if pace.own_hubs:
        hub.build_index(STREAM)
    random, events = Random(fleet.SEED), fleet.events(BATCH * BODIES, hot=LOADED_SHARE)
    for event in events:
        if random.random() < HOT_SHARE:
            event["attributes"]["device"] = f"hot-{random.randrange(HOT)}"
    batches = [events[at : at + BATCH] for at in range(0, len(events), BATCH)]
    endpoints = (hub.endpoint("0"), hub.endpoint("1"))
    return _Scene(hub, stream_id, endpoints, numbers[-1] + 1, batches)


def _coming(scene: _Scene, seen: judged.Seen) -> judged.Coming:
    """Return what was received, and how many of the population each event matches."""
    matching = [
        [fleet.matching(event, scene.registrations, fleet.DEVICES) for event in batch]
        for batch in scene.events
    ]
    return judged.Coming(seen, scene.events, matching)


@contextmanager
def _sampled(hub: Hub, stream_id: int) -> Iterator[list[_Sample]]:
    """Sample the forwarder's metrics repeatedly."""
    samples: list[_Sample] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_S):
            found = hub.metrics()
            labels = f'{{stream="{stream_id}"}}'
            samples.append(
                _Sample(
                    time.monotonic(),
                    found.get("eventhub_forwarded_events_total", 0.0),
                    found.get(f"eventhub_forward_lag_events{labels}", 0.0),
                    found.get(f"eventhub_forward_lag_seconds{labels}", 0.0),
                )
            )

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


@contextmanager
def _building(hub: Hub) -> Iterator[None]:
    """Build an index of the stream, which the forwarder takes while events and changes flow."""
    thread = threading.Thread(target=hub.build_index, args=(STREAM,))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _within(samples: list[_Sample], figures: dict[str, float]) -> list[_Sample]:
    return [one for one in samples if figures["began_s"] <= one.at_s <= figures["ended_s"]]


def _rate(samples: list[_Sample], figures: dict[str, float]) -> float:
    """Return the events per second that the forwarder matched while registrations changed."""
    within = _within(samples, figures)
    if len(within) < 2:
        raise LoadFailed("too short to be measured")
    first, last = within[0], within[-1]
    return (last.forwarded - first.forwarded) / (last.at_s - first.at_s)


def _lag(samples: list[_Sample], figures: dict[str, float]) -> dict[str, float]:
    within = _within(samples, figures)
    lags = sorted(one.lag_s for one in within)
    return {
        "lag_p50_ms": lags[len(lags) // 2] * 1e3,
        "lag_max_ms": lags[-1] * 1e3,
        "lag_max_events": max(one.lag_events for one in within),
    }


def _swapping(world: World, pace: Pace, what: str) -> Measure:
    """Measure the 99th percentile of the time that matching an event takes."""
    count = max(min(SIZES["1m"], pace.registrations_max), 2 * fleet.DEVICES)

    def measure() -> Reading:
        root = _swapped(world, count)
        found = _child(world, swapping.Work(what, root, count, pace.seconds))
        return Reading(found.pop("p99_us"), found)

    return measure


@cache
def _swapped(world: World, count: int) -> str:
    """Return the folder of an index in the format of forwarders."""
    root = str(Path(world.data) / f"swapped-{count}")
    _child(world, swapping.Work("build", root, count, 0.0))
    return root


def _child(world: World, work: swapping.Work) -> dict[str, float]:
    found: dict[str, float] = json.loads(
        world.run_child("tests.benchmarks.swapping", json.dumps(work))
    )
    return found
