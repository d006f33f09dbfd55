"""`callback_latency`: the time from an emit to its callback, at a rate far below what the hub
handles, in a hub with two forwarders and two workers.
"""

import json
from functools import cache

from tests.benchmarks.hub import Hub
from tests.benchmarks.load.jobs import LatencyJob
from tests.benchmarks.load.start import LoadFailed, run_load
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

RATES = (20.0, 200.0)  # events a second, each of them for one callback
MS_MAX = 6.0
STREAM = "latency"


def cases(world: World, pace: Pace) -> list[Case]:
    return [
        Case(
            name=f"callback_latency_{rate:.0f}{'_ordered' * ordered}",
            unit="ms",
            product=_p50(world, pace, rate, ordered=ordered),
            baselines={"allowed": lambda: Reading(MS_MAX)},
            floor=1.0,
            lower_is_better=True,
        )
        for ordered in (False, True)
        for rate in RATES
    ]


def _p50(world: World, pace: Pace, rate: float, *, ordered: bool) -> Measure:
    def measure() -> Reading:
        job, hub = _scene(world, pace, ordered=ordered)
        used_s = hub.cpu_s()
        figures = run_load(job._replace(rate=rate))
        if figures["lost_callbacks"] or figures["doubled"]:
            raise LoadFailed(f"not every event came once: {figures}")
        also = {
            "p99_ms": figures["callback_p99_ms"],
            "after_answer_ms": figures["after_answer_p50_ms"],
            "hub_cpu_ms": (hub.cpu_s() - used_s) * 1e3 / figures["all"],  # of one event
        }
        return Reading(figures["callback_p50_ms"], also)

    return measure


@cache
def _scene(world: World, pace: Pace, *, ordered: bool) -> tuple[LatencyJob, Hub]:
    """Return a hub with an endpoint and a registration that matches every event."""
    hub = world.hub("latency", pace)
    _start_second(hub)
    stream = f"{STREAM}.{ordered:d}"
    hub.stream(stream)
    order = {"ordered": True} if ordered else {}
    url = f"http://127.0.0.1:{hub.port}/latency"
    endpoint = hub.call("POST", "/v1/endpoints", {"url": url, **order})["id"]
    fields = {"streams": [stream], "domain": "latency", "type": "reading"}
    made = hub.call("POST", "/v1/registrations", {**fields, "endpoint": endpoint})
    listen = {"op": "listen", "listener": "bench", "stream": stream, "from": "now"}
    job = LatencyJob(
        target=hub.target(stream),
        bodies=[
            json.dumps({"domain": "latency", "type": "reading", "attributes": {"n": number}})
            for number in range(100)
        ],
        listen=json.dumps({**listen, "registrations": [made["id"]]}),
        port=hub.port,
        rate=RATES[0],
        seconds=2 * pace.seconds,
        warmup_s=pace.warmup_s,
    )
    return job, hub


@cache
def _start_second(hub: Hub) -> None:
    hub.start_second()
