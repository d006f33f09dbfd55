"""`match`: matchers on one thread, JSON bytes in and numbers out: the engines over an index and the
matcher in memory, against SUN's counting in dictionaries and the naive scan. Each reading has a
child process of its own; an index is built once a run.
"""

import json
from functools import cache
from pathlib import Path

from registrations.match_index.engines.available import ENGINES
from tests.benchmarks import indexes
from tests.benchmarks.load.start import LoadFailed
from tests.benchmarks.matching import EVALUATE_ALL, INDEX, Work
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

SIZES = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}
# by case: floor and goal of the ratio to the counting dictionary
BOUNDS = {
    "match_100k_compiled": (80, 125),
    "match_1m_compiled": (600, 1_100),
    "match_1m_numpy": (70, 120),
    "match_100k": (15, 25),
}
PREDICATES = {"compiled": (300, 600), "numpy": (30, 57), "python": (None, None)}
RANGES = (1, 100, 8_000)
RANGE_BOUNDS = {"match_ranges_100": (20, 100), "match_ranges_8000": (200, 1_000)}
SECONDS_MAX = 2.0  # of one reading; matching has no warm-up to wait for
SHOWN = ("matches_per_event", "p50_us", "p99_us")
SHOWN_OF_MATCHERS = (*SHOWN, "adds_per_s", "adds_per_s_when_full", "removes_per_s_when_full")
MANY = SIZES["1m"]  # what is slow is measured once there
OPEN_MS_MAX, SIZE_MB_MAX = 20.0, 80.0
MB = 1_000_000


def cases(world: World, pace: Pace) -> list[Case]:
    engines = [name for name in ("compiled", "numpy", "python") if name in ENGINES]
    predicates = _Sides(world, pace, SIZES["100k"], "predicates")
    found: list[Case] = []
    for size, count in SIZES.items():
        sides = _Sides(world, pace, count)
        found += [_indexed(sides, size, name) for name in engines]
        found.append(_in_memory(sides, size))
    return [
        *found,
        *(_predicates(predicates, name) for name in engines),
        *(_ranges(world, pace, count) for count in RANGES),
        _ranges(world, pace, RANGES[-1], churn=True),
        *(_as_access(world, pace, size) for size in ("10k", "100k")),
        _memory(world, pace),
        *_files(world, pace),
        *_costs(world, pace, engines),
    ]


class _Sides:
    """All sides over the same registrations; all must find the same."""

    def __init__(
        self,
        world: World,
        pace: Pace,
        registrations: int,
        data: str = "pairs",
        *,
        churn: bool = False,
    ) -> None:
        self._churn = churn
        self._world = world
        self._count = min(registrations, pace.registrations_max)
        self._seconds = min(pace.seconds, SECONDS_MAX)
        self._data = data
        self._checks: dict[str, float] = {}
        self._once: dict[str, Reading] = {}

    def once(self, side: str) -> Measure:
        """Measure once, for sides that take long to create and are slow by far, or have no bound:
        the first reading counts.
        """

        def measure() -> Reading:
            if side not in self._once:
                self._once[side] = self.of(side)()
            return self._once[side]

        return measure

    def of(self, side: str) -> Measure:
        def measure() -> Reading:
            root = ""
            if side.startswith(INDEX):
                root = _index(self._world, self._count, self._data)
            work = Work(side, self._count, self._seconds, False, self._data, root, self._churn)
            figures = _child(self._world, "matching", json.dumps(work))
            first = self._checks.setdefault("first", figures["check"])
            if first != figures["check"]:
                raise LoadFailed(f"{side} finds something else than the sides before it")
            shown = {key: figures[key] for key in SHOWN_OF_MATCHERS if key in figures}
            return Reading(figures["per_s"], shown)

        return measure


def _indexed(sides: _Sides, size: str, engine: str) -> Case:
    name = f"match_{size}_{engine}"
    floor, goal = BOUNDS.get(name, (None, None))
    of = sides.of if name in BOUNDS else sides.once
    counting = sides.once if SIZES[size] >= MANY else of
    baselines = {"counting_dict": counting("counting_dict")}
    return Case(name, "events/s", of(INDEX + engine), baselines, floor, goal)


def _in_memory(sides: _Sides, size: str) -> Case:
    name = f"match_{size}"
    floor, goal = BOUNDS.get(name, (None, None))
    of = sides.of if name in BOUNDS else sides.once
    baselines = {other: of(other) for other in ("counting_dict", "scan")}
    return Case(name, "events/s", of("access"), baselines, floor, goal)


def _predicates(sides: _Sides, engine: str) -> Case:
    floor, goal = PREDICATES[engine]
    baselines = {EVALUATE_ALL: sides.once(EVALUATE_ALL)}
    product = sides.of(INDEX + engine)
    return Case(f"predicates_100k_{engine}", "events/s", product, baselines, floor, goal)


def _ranges(world: World, pace: Pace, count: int, *, churn: bool = False) -> Case:
    """Return the case of a forwarder's or a listener's matcher; with `churn` a change before each
    event.
    """
    sides = _Sides(world, pace, count, "ranges", churn=churn)
    name = f"match_ranges_{count}{'_churn' if churn else ''}"
    floor, goal = RANGE_BOUNDS.get(name, (None, None))
    baselines = {"access": sides.of("access")}
    return Case(name, "events/s", sides.of("auto"), baselines, floor, goal)


def _as_access(world: World, pace: Pace, size: str) -> Case:
    """Return the case of equalities where `auto` matches them."""
    sides = _Sides(world, pace, SIZES[size])
    baselines = {"access": sides.of("access")}
    return Case(f"match_{size}_auto", "events/s", sides.of("auto"), baselines, 0.9, 1)


def _memory(world: World, pace: Pace) -> Case:
    """Return the memory of 100,000 registrations; always the same, so it is measured once."""

    def of(side: str) -> Measure:
        @cache
        def measure() -> Reading:
            count = min(SIZES["100k"], pace.registrations_max)
            work = Work(side, count, pace.seconds, memory=True)
            found = _child(world, "matching", json.dumps(work))
            return Reading(found["bytes_per_registration"])

        return measure

    return Case(
        name="match_memory",
        unit="bytes",
        product=of("access"),
        baselines={"counting_dict": of("counting_dict")},
        lower_is_better=True,
    )


def _files(world: World, pace: Pace) -> list[Case]:
    """Return the cases of size, opening and sharing of the largest index."""
    count = min(MANY, pace.registrations_max)

    def size() -> Reading:
        found = _opened(world, count)
        seconds = _built(world, count, "pairs")["seconds"]
        return Reading(found["bytes"] / MB, {"build_cpu_s": seconds})

    def opening() -> Reading:
        return Reading(_opened(world, count)["open_ms"])

    def sharing() -> Reading:
        work = indexes.Work("share", _index(world, count, "pairs"))
        found = _child(world, "indexes", json.dumps(work))
        return Reading(found["pss_kb"] / 1e3, {"rss_mb": found["rss_kb"] / 1e3})

    def allowed(value: float) -> dict[str, Measure]:
        return {"allowed": lambda: Reading(value)}

    return [
        Case("match_1m_size", "MB", size, allowed(SIZE_MB_MAX), 1, 0.5, True),
        Case("match_1m_open", "ms", opening, allowed(OPEN_MS_MAX), 1, 0.25, True),
        Case("match_1m_share", "MB", sharing, lower_is_better=True),
    ]


def _costs(world: World, pace: Pace, engines: list[str]) -> list[Case]:
    """Return microseconds per event over the number of registrations, for the plot."""
    return [
        Case(
            name=f"match_cost_{engine}",
            unit="µs",
            product=_cost(world, pace, engine, pace.matched[-1]),
            baselines={
                f"of_{count}": _cost(world, pace, engine, count) for count in pace.matched[:-1]
            },
            lower_is_better=True,
        )
        for engine in engines
    ]


def _cost(world: World, pace: Pace, engine: str, count: int) -> Measure:
    def measure() -> Reading:
        root = _index(world, count, "pairs")
        work = Work(f"{INDEX}{engine}", count, min(pace.seconds, SECONDS_MAX), root=root)
        figures = _child(world, "matching", json.dumps(work))
        shown = {key: figures[key] for key in SHOWN}
        return Reading(1e6 / figures["per_s"], shown)

    return cache(measure)


@cache
def _built(world: World, count: int, data: str) -> dict[str, float]:
    work = indexes.Work("build", _root(world, count, data), count, data)
    return _child(world, "indexes", json.dumps(work))


def _index(world: World, count: int, data: str) -> str:
    """Return the folder of an index, built on first use."""
    _built(world, count, data)
    return _root(world, count, data)


def _root(world: World, count: int, data: str) -> str:
    return str(Path(world.data) / f"index-{data}-{count}")


def _opened(world: World, count: int) -> dict[str, float]:
    work = indexes.Work("open", _index(world, count, "pairs"))
    return _child(world, "indexes", json.dumps(work))


def _child(world: World, module: str, work: str) -> dict[str, float]:
    figures: dict[str, float] = json.loads(world.run_child(f"tests.benchmarks.{module}", work))
    return figures
