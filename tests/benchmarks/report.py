"""A run as a table for people and as JSON for machines. Plain."""

from collections.abc import Sequence
from typing import Any

from tests.benchmarks.shape import Result

EXPECTED_SHARE = 0.8
# What the baselines reached when the design was measured; below the share, look at the machine.
SEEN: dict[str, float] = {
    "raw_copy": 564_000,
    "insert_per_commit": 3_600,
    "django_async_view": 1_250,
    "group_send_in_memory": 9_500,
}
LOAD_CPU_MAX = 0.9


def as_json(results: Sequence[Result], machine: dict[str, float]) -> dict[str, Any]:
    """Return one object per case; `machine` holds the no-op request and fsync rates of the run."""
    return {**{result.case.name: _object(result) for result in results}, "machine": machine}


def _object(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "value": result.value,
        "unit": case.unit,
        "low": result.low,
        "high": result.high,
        "baseline": result.baseline,
        "ratio": result.ratio,
        "ratios": result.ratios,
        "floor": case.floor,
        "goal": case.goal,
        "lower_is_better": case.lower_is_better,
        "also": result.also,
    }


def table(results: Sequence[Result], machine: dict[str, float]) -> str:
    """Return the cases, other measured values, the machine and warnings."""
    rows: list[tuple[str, ...]] = [
        ("name", "median", "low", "high", "unit", "ratio", "(low-high)", "floor", "goal", "")
    ]
    for result in results:
        rows += _rows(result)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(_cell(row, at, widths[at]) for at in range(len(row))) for row in rows]
    beside = [f"  {result.case.name}: {_figures(result.also)}" for result in results if result.also]
    return "\n".join(
        [
            *(line.rstrip() for line in lines),
            *(["beside them", *beside] if beside else []),
            f"this machine, in this run: {_figures(machine)}",
            *_warnings(results),
        ]
    )


def _cell(row: tuple[str, ...], at: int, width: int) -> str:
    return row[at].ljust(width) if at in (0, 4, 9) else row[at].rjust(width)


def _rows(result: Result) -> list[tuple[str, ...]]:
    case, ratio, ratios = result.case, result.ratio, result.ratios
    span = f"({_number(min(ratios))}-{_number(max(ratios))})" if ratios else ""
    rows = [
        (
            case.name,
            *(_number(value) for value in (result.value, result.low, result.high)),
            case.unit,
            "" if ratio is None else _number(ratio),
            span,
            *("" if bound is None else _number(bound) for bound in (case.floor, case.goal)),
            _verdict(result),
        )
    ]
    for name, value in result.baseline.items():
        other = "" if name == next(iter(result.baseline)) else _number(result.value / value)
        rows.append((f"  {name}", _number(value), "", "", case.unit, other, "", "", "", ""))
    return rows


def _verdict(result: Result) -> str:
    if result.reaches(result.case.goal):
        return "goal reached"
    kept = result.reaches(result.case.floor)
    return "" if kept is None else ("floor kept" if kept else "BELOW THE FLOOR")


def _warnings(results: Sequence[Result]) -> list[str]:
    found = []
    for result in results:
        for name, value in result.baseline.items():
            seen = SEEN.get(name)
            if result.case.unit != "ms" and seen and value < EXPECTED_SHARE * seen:
                found.append(
                    f"note: {name} beside {result.case.name} reached {_number(value)},"
                    f" {value / seen:.0%} of the {_number(seen)} seen before: judge it by the"
                    " no-op and fsync rates above"
                )
        for name, value in result.also.items():
            if name.endswith("load_cpu") and value > LOAD_CPU_MAX:
                found.append(
                    f"note: in {result.case.name} the load generator used {value:.0%} of a core"
                    f" ({name}): the server may be faster than measured"
                )
            if name.endswith("lost_frames") and value:
                found.append(f"note: {result.case.name} lost {_number(value)} frames ({name})")
    return found


def _figures(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in figures.items())


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
