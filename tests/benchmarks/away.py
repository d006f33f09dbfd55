"""`away`: a session that returns to millions of events: the time to its first event against that of
a new listener from the same cursor, and the memory of the web process while it reads.
"""

from functools import cache
from typing import Any

from tests.benchmarks.load.jobs import AwayJob, Target
from tests.benchmarks.sessions import call
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

STREAM = "sessions.away"
FIRST_MAX = 2.0  # times a listener's
SAMPLES = 10  # sessions of a reading, each of which connects once
READ = {"many": 300_000, "few": 2_000_000}  # events of the stream that are read after the first
FILTERS: dict[str, dict[str, str]] = {
    "many": {"domain": "telecom"},
    "few": {"domain": "telecom", "type": "link.rare"},
}
RARE = 4_000  # one of so many events


def cases(world: World, pace: Pace) -> list[Case]:
    scene = _Scene(world, pace)
    return [
        Case(
            name=f"away_{kind}",
            unit="ms",
            product=scene.returns(kind),
            baselines={"listener": scene.listener(kind)},
            floor=FIRST_MAX,
            lower_is_better=True,
        )
        for kind in FILTERS
    ]


class _Scene:
    """Sessions whose positions are before the first event of a long stream."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._turn = dict.fromkeys(FILTERS, 0)
        self._listened: dict[str, Reading] = {}

    def returns(self, kind: str) -> Measure:
        """Measure sessions, and listeners in turn with them."""

        def measure() -> Reading:
            world, turn = self._world, self._turn[kind]
            self._turn[kind] += 1
            found = _away(world, self._pace)
            world.end_product()
            headers = {"authorization": f"Bearer {found['key']}"}
            every = RARE if kind == "few" else 1
            job = AwayJob(
                target=Target(world.product().port, "", headers),
                sessions=[_name(kind, turn * SAMPLES + n) for n in range(SAMPLES)],
                listen={"stream": STREAM, "from": found["cursor"], **FILTERS[kind]},
                matching_every=every,
                read_events=0 if turn else min(found["events"], READ[kind]) // every,
                pid=world.product().pid,
            )
            figures = world.load(f"sessions that were away, {kind}", job)
            listened = {name: figures.pop(f"listener_{name}") for name in ("p50_ms", "p99_ms")}
            self._listened[kind] = Reading(listened.pop("p50_ms"), listened)
            figures["filled_s"] = found["took_s"]
            return Reading(figures.pop("p50_ms"), figures)

        return measure

    def listener(self, kind: str) -> Measure:
        return lambda: self._listened[kind]


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number}"


@cache
def _away(world: World, pace: Pace) -> dict[str, Any]:
    """Create the sessions and their registrations, then fill the stream."""
    key = world.new_key("away", "listen:*")
    for kind, filter in FILTERS.items():
        for number in range(pace.repeat * SAMPLES):
            name = _name(kind, number)
            call(world, key, "/v1/sessions", {"name": name, "kind": "consumer"})
            body = {"streams": [STREAM], "session": name, **filter}
            call(world, key, "/v1/registrations", body)
    count = max(pace.streams[-1], RARE)
    found = world.fill(STREAM, count, RARE)
    return {"key": key, "events": count, "took_s": found["took_s"], "cursor": found["cursors"][0]}
