"""The benchmarks still run: one tiny reading of one case of each. The figures mean nothing, but
those in a case's `order` are in it, or the run fails.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from eventhub.supervisor.hub import HOME
from tests.benchmarks.report import as_json, table
from tests.benchmarks.shape import Case, Reading, Result

# one case of each quick benchmark, with its floor and goal; the others go the same ways
CASES: dict[str, tuple[float | None, float | None]] = {
    "append_waiting_64": (None, None),
    "emit_64": (8, 20),
    "emit_1_async": (None, None),
    "latency_1": (5, 2.5),
    "poll_latency_1": (1.5, None),
    "replay_1m_http": (None, None),
    "cursor_last": (1.3, None),
    "match_10k": (None, None),
    "pattern_joins_40": (10, 100),
    "hostile_refusal": (None, None),
    "callbacks_1": (None, None),
    "callback_latency_20": (1.0, None),
    "pull_shared": (0.15, None),
}
# two seconds of processor time each or more: `python -m tests.benchmarks --quick` tries these too
BY_HAND = {
    *("archive", "audit", "away", "backtest", "churn", "hostile_agents", "idle", "million"),
    *("neighbours", "sessions", "spark_index"),
}
RUN_TIMEOUT_S = 420  # of which most goes into starting servers of its own
FIELDS = {"value", "unit", "low", "high", "baseline", "ratio", "floor", "goal"}


@pytest.mark.req("EMC-29", "EMC-33")
@pytest.mark.slow
@pytest.mark.timeout(RUN_TIMEOUT_S + 10)
def test_every_benchmark_gives_figures(tmp_path: Path) -> None:
    from tests.benchmarks.__main__ import BENCHMARKS  # half a second in each process

    file = tmp_path / "figures.json"
    only = [word for name in CASES for word in ("--only", name)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick", "--json", str(file), *only],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert figures.pop("machine").keys() >= {"noop_requests_per_s", "fsync_per_s"}
    assert figures.keys() == CASES.keys()
    assert len(figures) == len(BENCHMARKS.keys() - BY_HAND)
    for name, figure in figures.items():
        assert figure.keys() >= FIELDS
        assert math.isfinite(figure["value"]) and figure["value"] > 0, name
        assert (figure["floor"], figure["goal"]) == CASES[name]
        assert not figure["also"].get("lost_frames"), name
    push, whole_ms = figures["latency_1"]["also"], figures["latency_1"]["value"]
    assert 0 < push["in_hub_p50_ms"] <= push["in_hub_p99_ms"]
    assert push["in_hub_p50_ms"] <= whole_ms <= push["p99_ms"]
    assert figures["emit_1_async"]["value"] <= figures["emit_1_async"]["baseline"]["sync"]
    for name in ("in_hub_p50_ms", "in_hub_p99_ms", "p99_ms"):
        assert name in run.stdout


def _result(case: Case, value: float, other: float) -> Result:
    return Result(case, value, value, value, {"group_send_in_memory": other}, [value / other], {})


def test_a_missed_floor_and_a_weak_baseline_are_reported() -> None:
    case = Case("fanout_100", "frames/s", lambda: Reading(0), floor=6, goal=10)
    text = table([_result(case, 5_000, 1_000)], {"noop_requests_per_s": 1, "fsync_per_s": 2})
    assert "BELOW THE FLOOR" in text
    assert "note: group_send_in_memory" in text
    assert "fsync_per_s 2" in text
    assert "goal reached" in table([_result(case, 100_000, 9_600)], {})


def test_a_latency_is_better_when_it_is_lower() -> None:
    case = Case(
        "latency_1",
        "ms",
        lambda: Reading(0),
        floor=5,
        goal=2.5,
        lower_is_better=True,
    )
    assert _result(case, 4, 1).reaches(case.floor)
    assert not _result(case, 4, 1).reaches(case.goal)
    assert as_json([_result(case, 4, 1)], {})["latency_1"]["ratio"] == 4


def test_figures_that_are_not_in_their_order_fail_the_run() -> None:
    order = (("value", "p99_ms"), ("p99_ms", "sync"))
    case = Case("emit_1_async", "ms", lambda: Reading(0), order=order)
    result = Result(case, 2, 2, 2, {"sync": 3}, [], {"p99_ms": 3})
    assert result.misordered() == []
    assert result._replace(value=4, baseline={"sync": 2.5}).misordered() == [
        "value 4 is above p99_ms 3",
        "p99_ms 3 is above sync 2.5",
    ]
