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
REMEMBERED = (10, 20, 40)  # events, of which all combinations of three are tried
JOIN_BOUNDS = (10, 100)
COST_SIDES = ("ready", "ending", "temporal", "agents")
COST_MAX = 2.5  # of 100,000 patterns against 100, of which an event concerns as many
OPEN = (100, 1_000, 9_000)  # partial matches
OTHERS = 100  # agents beside hostile ones
HOSTILE_MAX = 1.2
PREFIXES = 40_000  # events that begin matches
MB = 1_000_000
BOUNDED_MB_MAX = 2 * limits.PATTERN_GROUP_BYTES_MAX / MB


def cases(world: World, pace: Pace) -> list[Case]:
    sides = _Sides(world, pace)
    return [
        *map(sides.sharing_case, sides.shared),
        *map(sides.cost_case, COST_SIDES),
        *map(sides.memory_case, ("ready", "temporal")),
        *map(sides.joins_case, REMEMBERED),
        Case(
            name="pattern_bounded",
            unit="MB",
            product=sides.bounded(),
            baselines={"allowed": lambda: Reading(BOUNDED_MB_MAX)},
            floor=1,
            lower_is_better=True,
        ),
        Case(
            name="pattern_hostile",
            unit="µs",
            product=sides.hostile("hostile"),
            baselines={"without": sides.hostile("without")},
            floor=HOSTILE_MAX,
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

    @property
    def shared(self) -> list[int]:
        """The numbers of patterns that share elements."""
        return [count for count in self._pace.patterns if count <= SHARING]

    def sharing_case(self, count: int) -> Case:
        most = count == self.shared[-1]
        return Case(
            name=f"pattern_sharing_{count}",
            unit="events/s",
            product=self._sharing("ready", count),
            baselines={"each_alone": self._sharing("alone", count)},
            floor=SHARING_BOUNDS[0] if most else None,
            goal=SHARING_BOUNDS[1] if most else None,
        )

    def cost_case(self, side: str) -> Case:
        *fewer, most = self._pace.patterns
        return Case(
            name=f"pattern_cost_{side}",
            unit="µs",
            product=self._cost(side, most),
            baselines={f"of_{count}": self._cost(side, count) for count in fewer},
            floor=COST_MAX,
            lower_is_better=True,
        )

    def memory_case(self, side: str) -> Case:
        *fewer, most = sorted({min(count, self._pace.registrations_max) for count in OPEN})
        return Case(
            name=f"pattern_memory_{side}",
            unit="bytes",
            product=self._memory(side, most),
            baselines={f"of_{count}": self._memory(side, count) for count in fewer},
            lower_is_better=True,
        )

    def joins_case(self, remembered: int) -> Case:
        most = remembered == REMEMBERED[-1]
        return Case(
            name=f"pattern_joins_{remembered}",
            unit="events/s",
            product=self._joins("joined", remembered),
            baselines={"enumerated": self._joins("enumerated", remembered)},
            floor=JOIN_BOUNDS[0] if most else None,
            goal=JOIN_BOUNDS[1] if most else None,
        )

    def _sharing(self, side: str, count: int) -> Measure:
        def measure() -> Reading:
            types = max(count * SHARED_TYPES // SHARING, 1)
            figures = self._run("cost", Work(side, count, self._seconds, types))
            self._same(f"sharing of {count}", figures["check"], side)
            outputs = figures["outputs_per_event"]
            return Reading(1e6 / figures["us"], {"outputs_per_event": outputs, "count": count})

        return cache(measure) if side == "alone" else measure

    def _cost(self, side: str, count: int) -> Measure:
        @cache
        def measure() -> Reading:
            figures = self._run("cost", Work(side, count, self._seconds, count))
            outputs = figures["outputs_per_event"]
            return Reading(figures["us"], {"outputs_per_event": outputs, "count": count})

        return measure

    def _memory(self, side: str, count: int) -> Measure:
        @cache
        def measure() -> Reading:
            figures = self._run("memory", Work(side, count, self._seconds))
            also = {"state_bytes": figures["state_bytes"], "count": count}
            return Reading(figures["bytes"], also)

        return measure

    def _joins(self, side: str, remembered: int) -> Measure:
        def measure() -> Reading:
            figures = self._run("joins", Work(side, remembered, self._seconds))
            shown = {name: figures[name] for name in ("matches_per_event", "examined_per_event")}
            return Reading(1e6 / figures["us"], {**shown, "count": remembered})

        return measure

    def bounded(self) -> Measure:
        @cache
        def measure() -> Reading:
            count = min(PREFIXES, 2 * self._pace.registrations_max)
            figures = self._run("bounded", Work("all", count, self._seconds))
            return Reading(figures.pop("mb"), figures)

        return measure

    def hostile(self, side: str) -> Measure:
        def measure() -> Reading:
            figures = self._run("hostile", Work(side, OTHERS, self._seconds, OTHERS))
            return Reading(figures.pop("p99_us"), figures)

        return measure

    def _run(self, command: str, work: Work) -> dict[str, float]:
        text = self._world.run_child("tests.benchmarks.pattern_work", command, json.dumps(work))
        figures: dict[str, float] = json.loads(text)
        return figures

    def _same(self, name: str, check: float, side: str) -> None:
        if self._found.setdefault(name, check) != check:
            raise LoadFailed(f"{side} finds something else than the sides before it")
