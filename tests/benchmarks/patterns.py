"""`patterns`: patterns over several events in the engines of one group, on one thread: what an
event costs as patterns grow, sharing against each alone, memory, joins against all combinations,
and what is held of events that never complete anything. Each reading has a child process.
"""

import json
from functools import cache

from eventhub.base import limits
from tests.benchmarks.load.start import LoadFailed
from tests.benchmarks.pattern_work import Work
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

SECONDS_MAX = 1.0  # of one reading; it has no warm-up to wait for
SHARING = 10_000  # patterns of the comparison with each alone ...
SHARED_TYPES = 1_000  # ... of which ten begin with the same event
SHARING_BOUNDS = (50, 500)
REMEMBERED = 40  # events, of which all combinations of three are tried
JOIN_BOUNDS = (50, 500)
COST_SIDES = ("ready", "ending", "temporal", "agents")
COST_MAX = 2.5  # of 100,000 patterns against 100, of which an event concerns as many
OPEN = 9_000  # partial matches
PREFIXES = 40_000  # events that begin matches
MB = 1_000_000
BOUNDED_MB_MAX = 2 * limits.PATTERN_GROUP_BYTES_MAX / MB


def cases(world: World, pace: Pace) -> list[Case]:
    sides = _Sides(world, pace)
    most = pace.patterns[-1]
    fewer = pace.patterns[:-1]
    return [
        Case(
            name=f"patterns_{SHARING // 1_000}k",
            unit="events/s",
            product=sides.sharing("ready"),
            baselines={"each_alone": sides.sharing("alone")},
            floor=SHARING_BOUNDS[0],
            goal=SHARING_BOUNDS[1],
        ),
        *(
            Case(
                name=f"pattern_cost_{side}",
                unit="µs",
                product=sides.cost(side, most),
                baselines={f"of_{count}": sides.cost(side, count) for count in fewer},
                floor=COST_MAX,
                lower_is_better=True,
            )
            for side in COST_SIDES
        ),
        *(
            Case(f"pattern_memory_{side}", "bytes", sides.memory(side), lower_is_better=True)
            for side in ("ready", "temporal")
        ),
        Case(
            name="pattern_joins",
            unit="events/s",
            product=sides.joins("joined"),
            baselines={"enumerated": sides.joins("enumerated")},
            floor=JOIN_BOUNDS[0],
            goal=JOIN_BOUNDS[1],
        ),
        Case(
            name="pattern_bounded",
            unit="MB",
            product=sides.bounded(),
            baselines={"allowed": lambda: Reading(BOUNDED_MB_MAX)},
            floor=1,
            lower_is_better=True,
        ),
    ]


class _Sides:
    """All sides; those that are compared must find the same."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._seconds = min(pace.seconds, SECONDS_MAX)
        self._found: dict[str, float] = {}

    def sharing(self, side: str) -> Measure:
        count = min(SHARING, self._pace.patterns[-1])

        def measure() -> Reading:
            types = max(count * SHARED_TYPES // SHARING, 1)
            figures = self._run("cost", Work(side, count, self._seconds, types))
            self._same("sharing", figures["check"], side)
            return Reading(1e6 / figures["us"], {"outputs_per_event": figures["outputs_per_event"]})

        return cache(measure) if side == "alone" else measure

    def cost(self, side: str, count: int) -> Measure:
        @cache
        def measure() -> Reading:
            figures = self._run("cost", Work(side, count, self._seconds, count))
            return Reading(figures["us"], {"outputs_per_event": figures["outputs_per_event"]})

        return measure

    def memory(self, side: str) -> Measure:
        @cache
        def measure() -> Reading:
            count = min(OPEN, self._pace.registrations_max)
            figures = self._run("memory", Work(side, count, self._seconds))
            return Reading(figures["bytes"], {"state_bytes": figures["state_bytes"]})

        return measure

    def joins(self, side: str) -> Measure:
        def measure() -> Reading:
            figures = self._run("joins", Work(side, REMEMBERED, self._seconds))
            shown = {name: figures[name] for name in ("matches_per_event", "examined_per_event")}
            return Reading(1e6 / figures["us"], shown)

        return measure

    def bounded(self) -> Measure:
        @cache
        def measure() -> Reading:
            count = min(PREFIXES, 2 * self._pace.registrations_max)
            figures = self._run("bounded", Work("all", count, self._seconds))
            return Reading(figures.pop("mb"), figures)

        return measure

    def _run(self, command: str, work: Work) -> dict[str, float]:
        text = self._world.run_child("tests.benchmarks.pattern_work", command, json.dumps(work))
        figures: dict[str, float] = json.loads(text)
        return figures

    def _same(self, name: str, check: float, side: str) -> None:
        if self._found.setdefault(name, check) != check:
            raise LoadFailed(f"{side} finds something else than the sides before it")
