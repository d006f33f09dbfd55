"""`neighbours`: how much one client is delayed by another that takes all it can get: emits over
hundreds of connections, thousands of sockets that catch up at once, JSON bombs and wrong logins
without a key, and emits far beyond a quota.
"""

import json
from collections.abc import Callable
from functools import cache

import psycopg

from tests.benchmarks import events
from tests.benchmarks.load.jobs import CrowdJob, NeighbourJob, Target
from tests.benchmarks.load.start import run_load, running_load
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

STREAM = "neighbour"
CROWDED = "crowded"  # of the other client
PER_S = 50.0
EMITTERS = 500
SOCKETS = 2_000
LISTENERS = ("reader-1", "reader-2")  # whose they are: a client has at most half as many
CAUGHT_UP = 20_000  # events that each socket reads
BOMBERS = 8
LIMITED_PER_S = 50  # events, of a client with a quota
LOGINS = 90
ADDRESSES = 6
BOMB = "[" + ",".join(["[]"] * 80_000) + "]"  # 240 KB
LOGIN = json.dumps({"username": "operator", "password": "wrong"})
Crowd = Callable[[], CrowdJob]


def cases(world: World, pace: Pace) -> list[Case]:
    scene = _Scene(world, pace)
    return [
        _case("neighbour_emit", scene, scene.emit, scene.emitters),
        _case("neighbour_sockets", scene, scene.emit, scene.sockets),
        _case("neighbour_bombs", scene, scene.health, scene.bombers),
        _case("neighbour_logins", scene, scene.managed, scene.logins),
        _case("neighbour_limited", scene, scene.emit, scene.limited),
    ]


def _case(name: str, scene: "_Scene", one: Callable[[], NeighbourJob], crowd: Crowd) -> Case:
    return Case(
        name=name,
        unit="ms",
        product=scene.beside(one, crowd),
        baselines={"alone": scene.alone(one)},
        lower_is_better=True,
    )


class _Scene:
    """One web process, a client that is timed, and the load of another client or of nobody."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._share = 1.0 if pace.own_hubs else 0.02  # of the crowd, in a smoke run

    def beside(self, one: Callable[[], NeighbourJob], crowd: Crowd) -> Measure:
        def measure() -> Reading:
            job, others = one(), crowd()
            with self._world.sampled("beside a crowd"), running_load(others) as loaded:
                figures = run_load(job)
            crowded = {f"crowd_{name}": value for name, value in loaded.items()}
            return Reading(figures.pop("p99_ms"), {**figures, **crowded})

        return measure

    def alone(self, one: Callable[[], NeighbourJob]) -> Measure:
        def measure() -> Reading:
            figures = run_load(one())
            return Reading(figures.pop("p99_ms"), figures)

        return measure

    def emit(self) -> NeighbourJob:
        return self._one(self._world.emit_target(STREAM), "POST", events.one().decode())

    def health(self) -> NeighbourJob:
        return self._one(Target(self._world.product().port, "/healthz", {}), "GET", "")

    def managed(self) -> NeighbourJob:
        headers = {"authorization": f"Bearer {self._key('keeper', 'manage:*')}"}
        target = Target(self._world.product().port, "/v1/streams", headers)
        return self._one(target, "GET", "")._replace(per_s=5.0)

    def emitters(self) -> CrowdJob:
        return self._crowd(f"/v1/streams/{CROWDED}/events", events.one().decode(), EMITTERS)

    def limited(self) -> CrowdJob:
        """Return emits of a client with a quota of which they are a hundred times as many."""
        key = _limited_key(self._world)
        job = self.emitters()
        headers = {**job.target.headers, "authorization": f"Bearer {key}"}
        return job._replace(target=job.target._replace(headers=headers))

    def sockets(self) -> CrowdJob:
        listen = {"op": "listen", "listener": "bench", "stream": _filled(self._world, self._pace)}
        job = self._crowd("", "", SOCKETS)
        keys = tuple(self._key(client, "listen:*") for client in LISTENERS)
        return job._replace(listen=json.dumps({**listen, "from": "oldest"}), keys=keys)

    def bombers(self) -> CrowdJob:
        return self._crowd("/v1/session", BOMB, BOMBERS)

    def logins(self) -> CrowdJob:
        job = self._crowd("/v1/session", LOGIN, LOGINS)
        return job._replace(addresses=ADDRESSES, requests_max=LOGINS)

    def _key(self, client: str, *grants: str) -> str:
        return _key(self._world, client, *grants)

    def _one(self, target: Target, method: str, body: str) -> NeighbourJob:
        pace = self._pace
        target = target._replace(headers={"content-type": "application/json", **target.headers})
        return NeighbourJob(target, method, body, PER_S, pace.seconds, pace.warmup_s)

    def _crowd(self, path: str, body: str, connections: int) -> CrowdJob:
        pace = self._pace
        key = self._key("crowd", "emit:*", "listen:*")
        headers = {"content-type": "application/json"}
        if path != "/v1/session":
            headers["authorization"] = f"Bearer {key}"
        target = Target(self._world.product().port, path, headers)
        seconds = pace.seconds + pace.warmup_s + 1.0
        return CrowdJob(target, "POST", body, max(1, int(connections * self._share)), seconds)


@cache
def _key(world: World, client: str, *grants: str) -> str:
    return world.new_key(client, *grants)


@cache
def _limited_key(world: World) -> str:
    """Return the key of a client with a quota of events per second."""
    key = world.new_key("limited", "emit:*")
    with psycopg.connect(world.url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO quotas (zone_id, client_id, kind, value)"
            " SELECT zone_id, id, 'events_per_s', %s FROM clients WHERE name = 'limited'",
            (LIMITED_PER_S,),
        )
    return key


@cache
def _filled(world: World, pace: Pace) -> str:
    world.fill("crowded.history", CAUGHT_UP if pace.own_hubs else 100)
    return "crowded.history"
