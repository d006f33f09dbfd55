"""What is made of a driver's words, with a shell in the driver's place."""

import os
import threading
from pathlib import Path

import pytest

from eventhub import limits
from eventhub.jobs.driver import Said, drive
from eventhub.jobs.errors import SparkFailed
from eventhub.jobs.launch import Launch
from eventhub.jobs.stopping import CANCELLED, Stop, Stopped

COUNTS = '"stages_done": 1, "stages": 2, "tasks_done": 3, "tasks": 4'


def driven(script: str, log: Path, stop: Stop | None = None) -> list[Said]:
    heard: list[Said] = []
    launch = Launch(("/bin/sh", "-c", script), dict(os.environ), ("hush",))
    drive(launch, log, stop or Stop(), heard.append)
    return heard


def test_progress_is_heard_and_everything_else_is_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    script = f"""
        echo '{{"phase": "matching", {COUNTS}}}'
        echo '{{"phase": "cut off'
        echo '{{"phase": "odd", "stages": "x"}}'
        echo said with hush >&2
    """
    counts = {"stages_done": 1, "stages": 2, "tasks_done": 3, "tasks": 4}
    assert driven(script, log) == [Said("matching", counts)]
    assert log.read_text() == '{"phase": "cut off\n{"phase": "odd", "stages": "x"}\nsaid with ***\n'


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        ("ValueError: no /srv/data/x.parquet", "ValueError: no x.parquet"),
        ("pyspark.errors.PythonException: it", "PythonException: it"),
        (
            "ValueError: why\\npy4j.protocol.Py4JJavaError: An error occurred\\n"
            "org.apache.spark.SparkException: Job aborted",
            "ValueError: why",
        ),
        ("org.apache.spark.SparkException: Job aborted", "SparkException: Job aborted"),
        ("ConnectionError: s3://key:hush@host/b is away", "ConnectionError: s3://host/b is away"),
        ("something else\\n", "something else"),
        ("", "It said nothing."),
    ],
)
def test_why_it_failed_is_its_last_error_without_places_and_secrets(
    tmp_path: Path, said: str, detail: str
) -> None:
    with pytest.raises(SparkFailed) as caught:
        driven(f"printf '{said}\\n'; exit 7", tmp_path / "log.txt")
    assert caught.value.message == f"{detail} (status 7)"


def test_a_log_that_is_full_loses_its_older_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_LOG_BYTES_MAX", 10_000)
    log = tmp_path / "log.txt"
    driven("for n in $(seq 5000); do echo line $n; done", log)
    lines = log.read_text().splitlines()
    assert "bytes before this are left out" in lines[0]
    assert lines[-1] == "line 5000"
    assert lines[1:] == [f"line {n}" for n in range(5_002 - len(lines), 5_001)]
    assert 4_000 < log.stat().st_size <= 10_000


def test_who_asks_ends_all_that_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JOB_STOP_S", 0.2)
    stop, ready = Stop(), tmp_path / "ready"
    os.mkfifo(ready)

    def ask() -> None:
        ready.read_text()
        stop.ask(CANCELLED)

    asking = threading.Thread(target=ask)
    asking.start()
    deaf = f"trap '' TERM; setsid sleep 1000 & echo > {ready}; while :; do sleep 1000; done"
    with pytest.raises(Stopped):
        driven(deaf, tmp_path / "log.txt", stop)
    asking.join()
    assert stop.why == CANCELLED
