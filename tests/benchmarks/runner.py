"""Runs a case: product and baselines in turn, several times, then medians. Plain."""

import sys
from collections.abc import Iterable
from statistics import median

from tests.benchmarks.shape import Case, Pace, Reading, Result


def run_case(case: Case, pace: Pace) -> Result:
    """Alternate the sides, so that a slow minute of the machine affects all of them."""
    sides = {"": case.product, **case.baselines}
    readings: dict[str, list[Reading]] = {side: [] for side in sides}
    for turn in range(pace.repeat):
        for side, measure in sides.items():
            reading = measure()
            readings[side].append(reading)
            _say(f"{case.name} {turn + 1}/{pace.repeat} {side or 'product'}: {reading.value:,.4g}")
    return _result(case, readings)


def _result(case: Case, readings: dict[str, list[Reading]]) -> Result:
    values = {side: [reading.value for reading in taken] for side, taken in readings.items()}
    product = values.pop("")
    first = next(iter(values.values()), [])
    return Result(
        case=case,
        value=median(product),
        low=min(product),
        high=max(product),
        baseline={side: median(taken) for side, taken in values.items()},
        ratios=[own / other for own, other in zip(product, first, strict=bool(first)) if other]
        if first
        else [],
        also=_also(readings),
    )


def _also(readings: dict[str, list[Reading]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for side, taken in readings.items():
        for name in _names(taken):
            key = f"{side}.{name}" if side else name
            found[key] = median(reading.also[name] for reading in taken if name in reading.also)
    return found


def _names(taken: Iterable[Reading]) -> list[str]:
    return list(dict.fromkeys(name for reading in taken for name in reading.also))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
