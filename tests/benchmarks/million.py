"""`million`: a hub with 1,000,000 registrations on one stream against one with 1,000, both at 400
events a second, or at half of the lower saturation if that is less: from emit to callback, and from
emit to websocket.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

from tests.benchmarks import fleet
from tests.benchmarks.hub import Hub
from tests.benchmarks.load.jobs import LatencyJob
from tests.benchmarks.load.start import LoadFailed, run_load
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

MANY, FEW = 1_000_000, fleet.DEVICES
LATENCY_MAX = 1.5
SATURATED_SHARE = 0.5
BODIES = 2_000  # different events
BULKS = 2  # requests that make the registrations side by side, as many as the hub stores at once
FIRST_S = 900.0  # until a forwarder without an index has loaded them
RATE_MIN = 20.0  # where a machine is too busy to be measured
# events a second: a faster hub is measured at the same rate, so figures of two commits compare
RATE_MAX = 400.0


def cases(world: World, pace: Pace) -> list[Case]:
    pair = _Pair(world, pace)
    return [
        Case(
            name=f"million_{name}",
            unit="ms",
            product=pair.p50(name, "many"),
            baselines={f"of_{FEW}": pair.p50(name, "few")},
            floor=LATENCY_MAX,
            lower_is_better=True,
        )
        for name in ("callback", "websocket")
    ] + [
        Case(
            name="million_start",
            unit="s",
            product=pair.started("many"),
            baselines={f"of_{FEW}": pair.started("few")},
            lower_is_better=True,
        ),
    ]


class _Pair:
    """Both hubs, each measured once a turn for callbacks and sockets together."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._many = min(MANY, max(pace.registrations_max, 2 * FEW))
        self._rate = 0.0
        self._saturated: dict[str, float] = {}
        self._waiting: dict[str, list[dict[str, float]]] = {"many": [], "few": []}

    def p50(self, name: str, side: str) -> Measure:
        """Measure. A run is started for callbacks; the sockets' figures of the same run follow."""

        def measure() -> Reading:
            waiting = self._waiting[side]
            if name == "callback" or not waiting:
                waiting.append(self._run(side))
            figures = waiting[-1] if name == "callback" else waiting.pop(0)
            shown = {"p99_ms": figures[f"{name}_p99_ms"], "load_cpu": figures["load_cpu"]}
            if name == "callback":
                shown |= self._shown(side, figures)
            return Reading(figures[f"{name}_p50_ms"], shown)

        return measure

    def started(self, side: str) -> Measure:
        """Measure seconds from the start of a forwarder, whose predecessor was killed, to a
        callback.
        """

        def measure() -> Reading:
            hub = self._hub(side)
            hub.forwarder.kill()
            began_ns = time.perf_counter_ns()
            hub.forwarder.start()
            seconds = _first_ns(self._job(side)) - began_ns
            return Reading(seconds / 1e9, {"forwarder_mb": hub.forwarder_mb()})

        return measure

    def _run(self, side: str) -> dict[str, float]:
        """Run at a rate that both sides sustain; their saturation is measured first."""
        if not self._rate:
            for each in ("few", "many"):
                self._saturated[each] = run_load(self._job(each))["per_s"]
            half = SATURATED_SHARE * min(self._saturated.values())
            self._rate = max(RATE_MIN, min(half, RATE_MAX))
        figures = run_load(self._job(side)._replace(rate=self._rate))
        lost = figures["lost_callbacks"] or figures["lost_frames"] or figures["doubled"]
        if lost:
            raise LoadFailed(f"{side}: not every event came once: {figures}")
        return figures

    def _shown(self, side: str, figures: dict[str, float]) -> dict[str, float]:
        shown = {
            "at_per_s": figures["per_s"],
            "saturated_per_s": self._saturated[side],
            "matches_per_event": 1.0,
            "forwarder_mb": self._hub(side).forwarder_mb(),
        }
        return {**shown, **self._made(side).figures}

    def _made(self, side: str) -> "_Made":
        return _made(self._world, self._pace, self._many if side == "many" else FEW)

    def _hub(self, side: str) -> Hub:
        return self._made(side).hub

    def _job(self, side: str) -> LatencyJob:
        return _job(self._made(side), self._pace)


class _Made(NamedTuple):
    """A hub, its stream with the registrations, and the seconds that they took."""

    hub: Hub
    stream: str
    listen: str
    figures: dict[str, float]


@cache
def _made(world: World, pace: Pace, count: int) -> _Made:
    """Create a hub with so many registrations. It matches nothing meanwhile."""
    hub, stream = world.hub(f"of_{count}", pace), f"fleet.{count}"
    stream_id = hub.stream(stream)
    endpoint = hub.endpoint(stream)
    if pace.own_hubs:
        hub.forwarder.stop()
    began = time.monotonic()
    hub.register(fleet.lines(stream, range(FEW), endpoint))
    step = -(-(count - FEW) // BULKS) or 1
    parts = [range(at, min(at + step, count)) for at in range(FEW, count, step)]
    with ThreadPoolExecutor(BULKS) as threads:
        list(threads.map(lambda part: hub.register(fleet.lines(stream, part, endpoint)), parts))
    figures = {"registered_s": time.monotonic() - began}
    hub.rows("VACUUM ANALYZE registrations")
    hub.rows("VACUUM ANALYZE registration_versions")
    began = time.monotonic()
    if count > FEW and pace.own_hubs and hub.build_index(stream):
        figures["index_s"] = time.monotonic() - began
    made = _Made(hub, stream, _listen(hub, stream), figures)
    if pace.own_hubs:
        hub.forwarder.start()
        _first_ns(_job(made, pace))
    if count > FEW:
        figures["index_epoch"] = hub.index_epoch(stream_id)
    return made


def _job(made: _Made, pace: Pace) -> LatencyJob:
    return LatencyJob(
        target=made.hub.target(made.stream),
        bodies=[json.dumps(event) for event in fleet.events(BODIES)],
        listen=made.listen,
        port=made.hub.port,
        rate=0.0,
        seconds=pace.seconds,
        warmup_s=pace.warmup_s,
    )


def _first_ns(job: LatencyJob) -> float:
    """Return when the first callback arrived, on the clock of all processes."""
    began = time.monotonic()
    while time.monotonic() - began < FIRST_S:
        figures = run_load(job._replace(seconds=0.01, warmup_s=0.0, ahead=1))
        if "first_ns" in figures:
            return figures["first_ns"]
    raise LoadFailed("no callback came from a forwarder that was started")


def _listen(hub: Hub, stream: str) -> str:
    """Return a listen message that names those registrations one of which every event matches."""
    rows = hub.rows(
        "SELECT id FROM registrations WHERE key = ANY (%s) ORDER BY id",
        [fleet.key_of(stream, number) for number in range(FEW)],
    )
    asked = {"op": "listen", "listener": "bench", "stream": stream, "from": "now"}
    return json.dumps({**asked, "registrations": [id for (id,) in rows]})
