"""The benchmarks still run: one tiny reading of each case. Their figures mean nothing here."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from eventhub.up.hub import HOME
from tests.benchmarks.report import as_json, table
from tests.benchmarks.shape import Case, Reading, Result

CASES = {
    *("append_waiting_1", "append_waiting_64", "append_waiting_256", "append_waiting_1024"),
    *("append_batch_100", "append_batch_1000"),
    *("emit_64", "emit_batch_100", "emit_1", "emit_64_ids"),
    *("fanout_100", "latency_1", "latency_1_library", "latency_100", "fanout_1000", "latency_1000"),
    *("match_10k", "match_100k", "match_memory", "callbacks_1", "callbacks_2"),
    *("callbacks_sick", "archive_read", "archive_write"),
    *("emit_64_async", "emit_64_transient", "emit_1_async", "emit_1_transient"),
    *("poll_latency_1", "sse_latency_1", "idle_polls", "replay_1m_socket", "replay_1m_http"),
    *("cursor_first", "cursor_middle", "cursor_last"),
}
RUN_TIMEOUT_S = 240  # of which most goes into starting servers of its own
FIELDS = {"value", "unit", "low", "high", "baseline", "ratio", "floor", "goal"}
JUDGED = {"emit_64": (8, 20), "emit_batch_100": (0.12, 0.35)} | {
    "fanout_100": (6, 10),
    "latency_1": (5, 2.5),
    "latency_1_library": (5, 2.5),
    "match_100k": (10, 25),
    "callbacks_2": (10, 19),
    "callbacks_sick": (2, None),
    "poll_latency_1": (1.5, None),
    "sse_latency_1": (1.5, None),
    "idle_polls": (1, None),
    "cursor_first": (1.3, None),
    "cursor_middle": (1.3, None),
    "cursor_last": (1.3, None),
}


@pytest.mark.timeout(RUN_TIMEOUT_S + 10)
def test_every_benchmark_gives_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick", "--json", str(file)],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    figures = json.loads(file.read_text())
    assert figures.pop("machine").keys() >= {"noop_requests_per_s", "fsync_per_s"}
    assert figures.keys() == CASES
    for name, figure in figures.items():
        assert figure.keys() >= FIELDS
        assert math.isfinite(figure["value"]) and figure["value"] > 0, name
        assert (figure["floor"], figure["goal"]) == JUDGED.get(name, (None, None))
        assert not figure["also"].get("lost_frames"), name


def _result(case: Case, value: float, other: float) -> Result:
    return Result(case, value, value, value, {"group_send_in_memory": other}, [value / other], {})


def test_a_floor_that_is_missed_and_a_weak_baseline_are_said() -> None:
    case = Case("fanout_100", "frames/s", lambda: Reading(0), floor=6, goal=10)
    text = table([_result(case, 5_000, 1_000)], {"noop_requests_per_s": 1, "fsync_per_s": 2})
    assert "BELOW THE FLOOR" in text
    assert "note: group_send_in_memory" in text
    assert "fsync_per_s 2" in text
    assert "goal reached" in table([_result(case, 100_000, 9_600)], {})


def test_a_latency_is_better_when_it_is_lower() -> None:
    case = Case(
        "latency_1",
        "latency_1_library",
        "ms",
        lambda: Reading(0),
        floor=5,
        goal=2.5,
        lower_is_better=True,
    )
    assert _result(case, 4, 1).reaches(case.floor)
    assert not _result(case, 4, 1).reaches(case.goal)
    assert as_json([_result(case, 4, 1)], {})["latency_1"]["ratio"] == 4
