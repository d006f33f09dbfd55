"""The terms of a benchmark: a case, a reading, and the pace of a run. Plain."""

from collections.abc import Callable
from typing import NamedTuple


class Reading(NamedTuple):
    """The result of one repetition of one side; `also` is shown but never judged."""

    value: float
    also: dict[str, float] = {}  # noqa: RUF012 - a NamedTuple's default, never written to


class Pace(NamedTuple):
    """The length and number of measurements."""

    seconds: float = 4.0  # measured time of one reading, after warm-up
    repeat: int = 5  # readings of each side, alternating
    warmup_s: float = 1.0
    latency_samples: int = 2_000
    copy_rows: int = 100_000
    many_sockets: int = 1_000
    registrations_max: int = 1_000_000
    replayed: int = 1_000_000
    streams: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)  # events in each
    # registrations in the indexes whose cost is drawn
    matched: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    patterns: tuple[int, ...] = (100, 1_000, 10_000, 100_000)  # whose cost is drawn
    spark_registrations: int = 1_000_000  # in the index that Spark builds
    searched: int = 1_000_000  # events that a back-test looks at ...
    audited: int = 1_000_000  # ... and an audit
    sessions: int = 10_000  # that wait; half as many have their events timed
    own_hubs: bool = True  # one for each benchmark that needs a whole one, or one for all


# a smoke run: its figures mean nothing
QUICK = Pace(
    seconds=0.2,
    repeat=1,
    warmup_s=0.05,
    latency_samples=20,
    copy_rows=2_000,
    many_sockets=50,
    registrations_max=1_000,
    replayed=2_000,
    streams=(10, 2_000),
    matched=(10, 1_000),
    patterns=(10, 100),
    spark_registrations=1_000,
    searched=2_000,
    audited=2_000,
    sessions=100,
    own_hubs=False,
)

Measure = Callable[[], Reading]


class Case(NamedTuple):
    """One line of the report. The ratio is product / the first baseline, or the number without one.

    `floor` and `goal` bound the ratio: from below, or from above when `lower_is_better`.
    """

    name: str
    unit: str
    product: Measure
    baselines: dict[str, Measure] = {}  # noqa: RUF012 - a NamedTuple's default, never written to
    floor: float | None = None
    goal: float | None = None
    lower_is_better: bool = False
    # names of figures, the smaller one of each pair first; in another order they fail the run
    order: tuple[tuple[str, str], ...] = ()


class Result(NamedTuple):
    """A case after all its repetitions: medians, with the lowest and highest reading."""

    case: Case
    value: float
    low: float
    high: float
    baseline: dict[str, float]
    ratios: list[float]  # of each repetition's pair, in order; empty without a baseline
    also: dict[str, float]  # medians, `baseline.name` for those of a baseline

    @property
    def ratio(self) -> float | None:
        first = next(iter(self.baseline.values()), None)
        return self.value / first if first else None

    def reaches(self, bound: float | None) -> bool | None:
        """Return whether the ratio is within a bound; None when there is none."""
        if bound is None or self.ratio is None:
            return None
        return self.ratio <= bound if self.case.lower_is_better else self.ratio >= bound

    def misordered(self) -> list[str]:
        """Return the pairs of `case.order` that are in the other order. The names are those of
        `also` and of the baselines; `value` is the case's own.
        """
        figures = {"value": self.value, **self.baseline, **self.also}
        return [
            f"{low} {figures[low]:,.4g} is above {high} {figures[high]:,.4g}"
            for low, high in self.case.order
            if figures[low] > figures[high]
        ]
