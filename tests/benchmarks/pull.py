"""`pull`: how fast stored events are pulled and acknowledged: by one consumer session, and by four
members of a group that share them over two web processes; beside long polls, which claim nothing.
"""

from functools import cache
from typing import NamedTuple

from tests.benchmarks.load.jobs import PullJob, Target
from tests.benchmarks.load.start import run_load
from tests.benchmarks.sessions import call
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

STREAM = "sessions.pull"
PART = 50  # of the events that a replay reads
MAX = 100  # events of a pull, and of a page: the default of both
PULL_MIN, SHARED_MIN = 0.25, 0.15  # of long polls


class _Side(NamedTuple):
    """Pullers, and the web processes that they use in turn; 0 pullers: long polls."""

    name: str
    pullers: int
    processes: int


ONE, SHARED, POLLS = _Side("one", 1, 1), _Side("shared", 4, 2), _Side("polls", 0, 1)


def cases(world: World, pace: Pace) -> list[Case]:
    scene = _Scene(world, pace)
    return [
        Case(
            name="pull",
            unit="events/s",
            product=scene.read(ONE),
            baselines={"long_polls": scene.read(POLLS)},
            floor=PULL_MIN,
        ),
        Case(
            name="pull_shared",
            unit="events/s",
            product=scene.read(SHARED),
            baselines={"long_polls": scene.read(POLLS), "one_puller": scene.read(ONE)},
            floor=SHARED_MIN,
        ),
    ]


class _Scene:
    """Sessions and groups, one for each reading, whose positions are before the first event."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._turn = {ONE.name: 0, SHARED.name: 0, POLLS.name: 0}

    def read(self, side: _Side) -> Measure:
        def measure() -> Reading:
            world, turn = self._world, self._turn[side.name]
            self._turn[side.name] += 1
            key = _stored(world, self._pace)
            servers = world.products(side.processes)
            ports = [server.port for server in servers]
            path = f"/v1/streams/{STREAM}/events"
            job = PullJob(
                target=Target(ports[0], path, {"authorization": f"Bearer {key}"}),
                ports=ports,
                stream=STREAM,
                sessions=[_name(side, turn, number) for number in range(side.pullers)],
                most=MAX,
                events=_count(self._pace),
            )
            before_s = sum(server.cpu_s() for server in servers)
            figures = run_load(job)
            used_s = sum(server.cpu_s() for server in servers) - before_s
            figures["cpu_us"] = used_s / figures.pop("all") * 1e6
            return Reading(figures.pop("per_s"), figures)

        return measure


def _name(side: _Side, turn: int, number: int) -> str:
    return f"{side.name}-{turn}-{number}"


def _count(pace: Pace) -> int:
    return max(pace.replayed // PART, 500)


@cache
def _stored(world: World, pace: Pace) -> str:
    """Create the sessions and their registrations, then fill the stream; return the key."""
    key = world.new_key("pull", "listen:*")
    interest = {"streams": [STREAM], "domain": "telecom"}
    for turn in range(2 * pace.repeat):  # one puller is in both cases
        name = _name(ONE, turn, 0)
        call(world, key, "/v1/sessions", {"name": name, "kind": "consumer"})
        call(world, key, "/v1/registrations", {**interest, "session": name})
    for turn in range(pace.repeat):
        group = f"{SHARED.name}-{turn}"
        call(world, key, "/v1/session-groups", {"name": group, "sharing": "one"})
        for number in range(SHARED.pullers):
            body = {"name": _name(SHARED, turn, number), "kind": "consumer", "group": group}
            call(world, key, "/v1/sessions", body)
        call(world, key, "/v1/registrations", {**interest, "session_group": group})
    world.fill(STREAM, _count(pace))
    return key
