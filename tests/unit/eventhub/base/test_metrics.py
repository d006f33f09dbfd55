"""The folder in which a process stores its metrics."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from eventhub.base.metrics import CountedHistogram
from eventhub.supervisor.hub import HOME

MEASURED = """
import os, sys
from eventhub.base import metrics
metrics.APPENDED.inc()
metrics.SOCKETS.set(3)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
print(metrics.exposition(shared=True).decode())
"""
COUNTED = "from eventhub.base import metrics; metrics.APPENDED.inc()"


@pytest.mark.parametrize(("folder", "files"), [("", False), (".", True)])
def test_an_empty_folder_name_means_no_folder(tmp_path: Path, folder: str, files: bool) -> None:
    """The library took it for the current folder, where every process left files."""
    env = {**os.environ, "PYTHONPATH": str(HOME), "PROMETHEUS_MULTIPROC_DIR": folder}
    subprocess.run([sys.executable, "-c", COUNTED], cwd=tmp_path, env=env, check=True)
    assert bool(list(tmp_path.iterdir())) == files


def test_the_gauges_of_a_killed_process_end_with_it(tmp_path: Path) -> None:
    """The lag and the index of a killed forwarder were reported until the hub was started again."""
    env = {**os.environ, "PYTHONPATH": str(HOME), "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for end, code in (("kill", -9), ("read", 0)):
        command = [sys.executable, "-c", MEASURED, end]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
    assert {"eventhub_sockets 3.0", "eventhub_appended_events_total 2.0"} < set(
        done.stdout.splitlines()
    )


def test_a_value_observed_several_times_counts_as_often() -> None:
    kept = CollectorRegistry()
    together = CountedHistogram("together", "A test.", buckets=(1, 2), registry=kept)
    singly = CountedHistogram("singly", "A test.", buckets=(1, 2), registry=kept)
    for value, times in ((0.5, 3), (2, 2), (9, 1)):
        together.observe_times(value, times)
        for _ in range(times):
            singly.observe(value)
    text = generate_latest(kept).decode()
    found = {line for line in text.splitlines() if line.startswith("together_")}
    expected = {line for line in text.splitlines() if line.startswith("singly_")}
    assert {line.partition("_")[2] for line in found if "created" not in line} == {
        line.partition("_")[2] for line in expected if "created" not in line
    }
    assert "together_count 6.0" in found
