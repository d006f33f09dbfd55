"""`listen`: from POST to a reader of each transport, and the cost of a waiting poll."""

import json

from tests.benchmarks import events
from tests.benchmarks.load.jobs import IdleJob, TransportJob
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

LISTEN = json.dumps({"op": "listen", "listener": "bench", "stream": "listen", "from": "now"})
LATENCY_MAX = 1.5  # of the websocket's
KB_MAX = 30.0  # of a poll that waits


def cases(world: World, pace: Pace) -> list[Case]:
    socket = {"websocket": _latency(world, pace, "websocket")}
    latencies = [
        Case(
            name=f"{transport}_latency_1",
            unit="ms",
            product=_latency(world, pace, transport),
            baselines=socket,
            floor=LATENCY_MAX,
            lower_is_better=True,
        )
        for transport in ("poll", "sse")
    ]
    idle = Case(
        name="idle_polls",
        unit="kB",
        product=_idle(world, pace),
        baselines={"allowed": lambda: Reading(KB_MAX)},
        floor=1.0,
        lower_is_better=True,
    )
    return [*latencies, idle]


def _latency(world: World, pace: Pace, transport: str) -> Measure:
    def measure() -> Reading:
        target = world.emit_target("listen")
        samples = max(pace.latency_samples // 4, 1)
        job = TransportJob(target, events.one().decode(), LISTEN, transport, samples)
        figures = world.load(f"emit to receipt, {transport}", job)
        return Reading(figures.pop("p50_ms"), figures)

    return measure


def _idle(world: World, pace: Pace) -> Measure:
    """Measure with a fresh server each time: freed memory is not requested again."""

    def measure() -> Reading:
        world.end_product()
        target = world.emit_target("listen")
        polls = pace.many_sockets
        job = IdleJob(target, events.one().decode(), polls, world.product().pid)
        figures = world.load(f"{polls} polls", job)
        return Reading(figures.pop("kb_each"), figures)

    return measure
