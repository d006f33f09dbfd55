"""`hostile_agents`: how much the agents of one client delay others in the same forwarder: outputs
of patterns, frames of a websocket and answers to emits, beside agents that exceed each limit and
agents that stay below them for ever.
"""

from functools import cache, partial

from tests.benchmarks.hub import Hub
from tests.benchmarks.load.jobs import AgentsJob
from tests.benchmarks.load.start import LoadFailed, run_load
from tests.benchmarks.pattern_work import HOSTILE
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

OTHERS_MAX = 1.2
PER_S = 100.0  # events of others, each with one output
GROUPS = 4  # of others
PATTERNS = 100  # in each of them
ATTACKS_PER_S = 40.0  # events, each of which starts all hostile agents that run
RESUMED_PER_S = 8.0  # suspended agents
MEASURED = ("output", "frame", "answer")
HARMLESS = "(remember 'n (+ 1 (recall 'n 0)))"
# just below the limits of steps, memory and depth; outputs within the limit are those of quotas
ALLOWED = (
    "(let ((n 0)) (while (< n 1600) (set! n (+ n 1))))",
    "(let ((x (list)) (n 0)) (while (< n 900) (set! x (list n n n n)) (set! n (+ n 1))))",
    "(define (f n) (if (= n 0) 0 (+ 1 (f (- n 1))))) (f 900)",
)
CALM = "calm"
ATTACKED = "attacked"


def cases(world: World, pace: Pace) -> list[Case]:
    scene = _Scene(world, pace)
    return [
        Case(
            name=f"hostile_agents_{name}",
            unit="ms",
            product=scene.measure("hostile", name),
            baselines={"harmless": scene.measure("harmless", name)},
            floor=OTHERS_MAX,
            lower_is_better=True,
        )
        for name in MEASURED
    ]


class _Scene:
    """One run of each side and round has the figures of all cases."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._runs: dict[str, list[dict[str, float]]] = {"hostile": [], "harmless": []}
        self._used: dict[tuple[str, str], int] = {}

    def measure(self, side: str, name: str) -> Measure:
        return partial(self._reading, side, name)

    def _reading(self, side: str, name: str) -> Reading:
        turn = self._used.get((side, name), 0)
        self._used[side, name] = turn + 1
        if turn == len(self._runs[side]):
            self._runs[side].append(self._run(side))
        figures = self._runs[side][turn]
        also = {
            f"{name}_p50_ms": figures[f"{name}_p50_ms"],
            "suspensions": figures["suspensions"],
            "forwarder_cpu": figures["forwarder_cpu"],
        }
        return Reading(figures[f"{name}_p99_ms"], also)

    def _run(self, side: str) -> dict[str, float]:
        hub, job = _scene(self._world, self._pace)
        hostile = side == "hostile"
        resumed = _agents(hub, job.other_key, (*HOSTILE, *ALLOWED) if hostile else (HARMLESS,) * 7)
        before, cpu_s = _suspensions(hub), hub.forwarder_cpu_s()
        figures = run_load(job._replace(resumed=resumed[: len(HOSTILE)]))
        if figures["lost"] or figures["doubled"]:
            raise LoadFailed(f"not every event of others had one output: {figures}")
        seconds = job.seconds + job.warmup_s
        return {
            **figures,
            "suspensions": _suspensions(hub) - before,
            "forwarder_cpu": (hub.forwarder_cpu_s() - cpu_s) / seconds,
        }


@cache
def _scene(world: World, pace: Pace) -> tuple[Hub, AgentsJob]:
    hub = world.hub("hostile_agents", pace)
    for stream in (CALM, f"{CALM}.out", ATTACKED, f"{ATTACKED}.out"):
        hub.stream(stream)
    for group in range(GROUPS):
        name = f"calm-{group}"
        fields = {"name": name, "streams": [CALM], "output_stream": f"{CALM}.out"}
        hub.call("POST", "/v1/pattern-groups", fields)
        texts = [
            f"{{a: reading | $n == {number}}}"
            for number in range(group * PATTERNS, (group + 1) * PATTERNS)
        ]
        _patterns(hub, name, "ready", texts)
    key = hub.new_key("attacker", "emit:*", "listen:*", "manage:*")
    listen = {"op": "listen", "from": "now"}
    target = hub.target(CALM)
    job = AgentsJob(
        target=target,
        body='{"domain": "bench", "type": "reading", "attributes": {"n": NUMBER}}',
        patterns=GROUPS * PATTERNS,
        events={**listen, "listener": "events", "stream": CALM},
        outputs={**listen, "listener": "outputs", "stream": f"{CALM}.out"},
        per_s=PER_S if pace.own_hubs else PER_S / 10,
        seconds=2 * pace.seconds,
        warmup_s=2 * pace.warmup_s,
        other_key=key,
        attacked=f"/v1/streams/{ATTACKED}/events",
        attack='{"domain": "bench", "type": "attack"}',
        attacks_per_s=ATTACKS_PER_S,
        resumed=[],
        resumed_per_s=RESUMED_PER_S,
    )
    return hub, job


def _agents(hub: Hub, key: str, texts: tuple[str, ...]) -> list[int]:
    """Replace the group of the other client; return the ids of its agents."""
    found = hub.call("GET", "/v1/pattern-groups?name=attack", key=key)["items"]
    for one in found:
        hub.call("DELETE", f"/v1/pattern-groups/{one['id']}", key=key)
    fields = {"name": "attack", "streams": [ATTACKED], "output_stream": f"{ATTACKED}.out"}
    hub.call("POST", "/v1/pattern-groups", fields, key)
    return _patterns(hub, "attack", "agent", texts, key)


def _patterns(
    hub: Hub, group: str, language: str, texts: "tuple[str, ...] | list[str]", key: str = ""
) -> list[int]:
    made = [
        {"group": group, "name": f"p{number}", "language": language, "text": text}
        for number, text in enumerate(texts)
    ]
    answer = hub.call("POST", "/v1/patterns", made, key)
    return [int(one["id"]) for one in (answer["items"] if isinstance(answer, dict) else answer)]


def _suspensions(hub: Hub) -> float:
    [(count,)] = hub.rows(
        "SELECT count(*) FROM events e JOIN segments g ON g.id = e.segment_id"
        " WHERE g.stream_id = 1 AND position('pattern.suspended'::bytea IN e.payload) > 0"
    )
    return float(count)
