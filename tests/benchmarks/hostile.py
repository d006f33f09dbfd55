"""`hostile`: how soon harmful filters are refused on every route, how much they delay other
clients, and how much the most expensive allowed filters do.
"""

import json
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import orjson

from registrations.filters.predicate import parse_predicate
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.dicts import event_from_dict
from registrations.matching.spec import specs_of
from registrations.matching.strategies import new_matcher
from tests.benchmarks import bombs, fleet
from tests.benchmarks.hub import Hub
from tests.benchmarks.load.hostile import CUT, TOO_BIG
from tests.benchmarks.load.jobs import Attack, HostileJob, LatencyJob
from tests.benchmarks.load.start import LoadFailed, run_load
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

STREAM = "hostile"
ROUTES = ("register", "check", "dry-run", "listen")
OTHERS_MAX = 1.2
OTHERS_PER_S = 200.0  # events of others; each is pending to a callback and a websocket
ATTACKS_PER_S = 20.0
PASS_S = 8.0  # in which every hostile filter comes to every route
EXPENSIVE = 30  # of the costliest filters that are allowed: more than one client may have
EXPENSIVE_EVENTS = 50  # for the cost of one
CLIENT = "attacker"


def cases(world: World, pace: Pace) -> list[Case]:
    attack = _Attack(world, pace)
    return [
        Case(name="hostile_refusal", unit="ms", product=attack.refusal),
        Case(
            name="hostile_match",
            unit="ms",
            product=attack.others("after_answer"),
            baselines={"without": attack.calm("after_answer")},
            floor=OTHERS_MAX,
            lower_is_better=True,
        ),
        Case(
            name="hostile_emit",
            unit="ms",
            product=attack.others("callback"),
            baselines={"without": attack.calm("callback")},
            lower_is_better=True,
        ),
        Case(
            name="hostile_expensive",
            unit="ms",
            product=attack.beside_expensive,
            baselines={"without": attack.calm("after_answer")},
            floor=OTHERS_MAX,
            lower_is_better=True,
        ),
    ]


class _Scene(NamedTuple):
    """A hub where other clients have registrations, and the attacker's key."""

    hub: Hub
    key: str
    endpoint: int  # of who attacks
    listen: str


class _Attack:
    """Hostile filters on all routes, while the events of other clients are timed."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._number = 0

    def refusal(self) -> Reading:
        """Return the median of all refusals; the slowest route and filter are shown."""
        _, seen = self._run()
        took: dict[str, list[float]] = defaultdict(list)
        for route, _, ms, _ in seen:
            took[route].append(ms)
        route, name, slowest, _ = max(seen, key=lambda one: one[2])
        shown = {f"{each}_p50_ms": median(found) for each, found in took.items()}
        shown |= {f"{each}_max_ms": max(found) for each, found in took.items()}
        shown |= {"refused": float(len(seen)), f"max_ms ({route} {name})": slowest}
        return Reading(median(ms for _, _, ms, _ in seen), shown)

    def others(self, name: str) -> Measure:
        def measure() -> Reading:
            figures, _ = self._run()
            return _reading(figures, name)

        return measure

    def calm(self, name: str) -> Measure:
        def measure() -> Reading:
            return _reading(run_load(self._others()), name)

        return measure

    def beside_expensive(self) -> Reading:
        """Measure events of others while one client has the most expensive allowed filters."""
        scene = self._scene()
        expensive = [orjson.dumps(_line(n, scene.endpoint)) for n in range(EXPENSIVE)]
        made = scene.hub.register(expensive, scene.key, some=True)
        try:
            reading = _reading(run_load(self._others()), "after_answer")
        finally:
            ends = [orjson.dumps({"op": "end", "key": f"expensive-{n}"}) for n in range(EXPENSIVE)]
            scene.hub.register(ends, scene.key, some=True)
        return Reading(
            reading.value,
            {**reading.also, "expensive": float(made), "expensive_us": expensive_us()},
        )

    def _run(self) -> tuple[dict[str, float], list[tuple[str, str, float, str]]]:
        self._number += 1
        scene, file = self._scene(), Path(self._world.data) / f"hostile-{self._number}.json"
        others = self._others()
        attacks = _attacks()
        job = HostileJob(others.target, scene.key, attacks, ATTACKS_PER_S, others, str(file))
        if not self._pace.own_hubs:
            job = job._replace(attacks=attacks[::5], per_s=1e3)
        figures = run_load(job)
        if figures["lost_callbacks"] or figures["doubled"]:
            raise LoadFailed(f"not every event of others came once: {figures}")
        return figures, orjson.loads(file.read_bytes())

    def _scene(self) -> _Scene:
        return _scene(self._world, self._pace)

    def _others(self) -> LatencyJob:
        scene, seconds = self._scene(), self._pace.seconds
        return LatencyJob(
            target=scene.hub.target(STREAM),
            bodies=[json.dumps(event) for event in fleet.events(2 * fleet.DEVICES)],
            listen=scene.listen,
            port=scene.hub.port,
            rate=OTHERS_PER_S if self._pace.own_hubs else OTHERS_PER_S / 10,
            seconds=max(seconds, PASS_S) if self._pace.own_hubs else seconds,
            warmup_s=self._pace.warmup_s,
        )


def expensive_us() -> float:
    """Return the cost of one of the most expensive filters per event: microseconds of CPU time."""
    matcher = FilterMatcher(new_matcher())
    matcher.add(1, specs_of(parse_predicate(bombs.costliest(1))))
    events = [event_from_dict(event) for event in fleet.events(EXPENSIVE_EVENTS)]
    began = time.process_time()
    for event in events:
        matcher.match(event)
    return (time.process_time() - began) / EXPENSIVE_EVENTS * 1e6


def _reading(figures: dict[str, float], name: str) -> Reading:
    shown = {f"{name}_p50_ms": figures[f"{name}_p50_ms"], "matches_per_event": 1.0}
    for other in ("callback", "websocket"):
        shown[f"{other}_p99_ms"] = figures[f"{other}_p99_ms"]
    return Reading(figures[f"{name}_p99_ms"], {**shown, "at_per_s": figures["per_s"]})


@cache
def _scene(world: World, pace: Pace) -> _Scene:
    hub = world.hub("hostile", pace)
    hub.stream(STREAM)
    endpoint = hub.endpoint(STREAM)
    hub.register(fleet.lines(STREAM, range(fleet.DEVICES), endpoint))
    key = hub.new_key(CLIENT, "listen:*")
    own = hub.endpoint(CLIENT, key)
    listen = {"op": "listen", "listener": "bench", "stream": STREAM, "from": "now"}
    return _Scene(hub, key, own, json.dumps(listen))


def _line(number: int, endpoint: int) -> dict[str, Any]:
    """Return a line that registers one of the most expensive filters; it matches nothing, so it
    costs no output.
    """
    return {
        "op": "create",
        "key": f"expensive-{number}",
        "streams": [STREAM],
        "endpoint": endpoint,
        "language": "predicate",
        "filter": bombs.costliest(number),
    }


def _attacks() -> list[Attack]:
    """Return every filter for every route, in turn."""
    return [
        Attack(route, bomb.name, _body(route, bomb), [*bomb.codes, *_of_route(route, bomb)])
        for bomb in bombs.refused()
        for route in ROUTES
    ]


def _body(route: str, bomb: bombs.Bomb) -> str:
    fields: dict[str, Any] = {"language": bomb.language, "filter": bomb.filter}
    if bomb.language == "pairs":
        fields = dict(bomb.filter)
    if route == "listen":
        return json.dumps({"op": "listen", "listener": bomb.name, "stream": STREAM, **fields})
    if route == "register":
        fields["streams"] = [STREAM]
    if route == "dry-run":
        fields["stream"] = STREAM
    return json.dumps(fields)


def _of_route(route: str, bomb: bombs.Bomb) -> list[str]:
    """Return the codes of a route that refuses the message before it reads the filter: too long, or
    too deep.
    """
    if route == "listen":
        return ["message_too_large", TOO_BIG, CUT, "too_deep"]
    return ["body_too_large", "too_deep"]
