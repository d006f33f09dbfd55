"""`match`: the default strategy on one thread, JSON bytes in and numbers out, against SUN's
counting in dictionaries and the naive scan. A child process of its own for each reading.
"""

import json
from functools import cache

from tests.benchmarks.load.start import LoadFailed
from tests.benchmarks.matching import Work
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

SIZES = {"match_10k": 10_000, "match_100k": 100_000}
JUDGED = "match_100k"
FLOOR, GOAL = 10, 25
SECONDS_MAX = 2.0  # of one reading; matching has no warm-up to wait for
SHOWN = ("matches_per_event", "p50_us", "p99_us", "adds_per_s")
SHOWN_OF_PRODUCT = (*SHOWN, "adds_per_s_when_full", "removes_per_s_when_full")


def cases(world: World, pace: Pace) -> list[Case]:
    return [
        *(_rate_case(world, pace, name) for name in SIZES),
        Case(
            name="match_memory",
            unit="bytes",
            product=_memory(world, pace, "access"),
            baselines={"counting_dict": _memory(world, pace, "counting_dict")},
            lower_is_better=True,
        ),
    ]


def _rate_case(world: World, pace: Pace, name: str) -> Case:
    checks: dict[str, float] = {}
    count = min(SIZES[name], pace.registrations_max)

    def side(of: str, shown: tuple[str, ...]) -> Measure:
        def measure() -> Reading:
            figures = _child(world, Work(of, count, min(pace.seconds, SECONDS_MAX)))
            if checks.setdefault("first", figures["check"]) != figures["check"]:
                raise LoadFailed(f"{of} finds something else than the sides before it")
            return Reading(figures["per_s"], {key: figures[key] for key in shown})

        return measure

    return Case(
        name=name,
        unit="events/s",
        product=side("access", SHOWN_OF_PRODUCT),
        baselines={"counting_dict": side("counting_dict", SHOWN), "scan": side("scan", SHOWN)},
        floor=FLOOR if name == JUDGED else None,
        goal=GOAL if name == JUDGED else None,
    )


def _memory(world: World, pace: Pace, of: str) -> Measure:
    """Of 100,000 registrations; the same every time, so it is measured once."""

    @cache
    def measure() -> Reading:
        work = Work(of, min(SIZES[JUDGED], pace.registrations_max), pace.seconds, memory=True)
        return Reading(_child(world, work)["bytes_per_registration"])

    return measure


def _child(world: World, work: Work) -> dict[str, float]:
    figures: dict[str, float] = json.loads(
        world.run_child("tests.benchmarks.matching", json.dumps(work))
    )
    return figures
