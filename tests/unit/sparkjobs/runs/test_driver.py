"""A driver's progress, log and failures, with a shell instead of the driver."""

import os
import threading
from pathlib import Path

import pytest

from eventhub.base import limits
from eventhub.eventlog.errors import StorageFull
from sparkjobs.runs.cancellation import CANCELLED, RunStopped, StopSignal
from sparkjobs.runs.driver import DriverProgress, drive
from sparkjobs.runs.errors import SparkFailed
from sparkjobs.runs.launch import DriverCommand

COUNTS = '"stages_done": 1, "stages": 2, "tasks_done": 3, "tasks": 4'
CLUSTER = "26/11/22 23:41:18 WARN StandaloneAppClient$ClientEndpoint: "
IDLE = (
    "26/11/22 23:44:12 WARN TaskSchedulerImpl: Initial job has not accepted any resources; check"
    " your cluster UI to ensure that workers are registered and have sufficient resources"
)
STARTUP = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/22 23:38:54 INFO SparkContext: Running Spark version 4.3.0
26/11/22 23:38:54 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...\
 using builtin-java classes where applicable
Setting Spark log level to "WARN".
"""
NO_THREADS = f"""\
{STARTUP}\
26/11/22 23:38:56 ERROR SparkContext: Error initializing SparkContext.
org.apache.spark.SparkException: Asked to run locally with 0 threads
\tat org.apache.spark.SparkContext$.org$apache$spark$SparkContext$$createTask(SparkContext.scala:1)
26/11/22 23:38:56 WARN MetricsSystem: Stopping a MetricsSystem that is not running
Traceback (most recent call last):
    s = SparkSession.builder.getOrCreate()
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
py4j.protocol.Py4JJavaError: An error occurred while calling None.org.apache.spark.JavaSparkContext.
: org.apache.spark.SparkException: Asked to run locally with 0 threads
\tat org.apache.spark.SparkContext$.org$apache$spark$SparkContext$$createTask(SparkContext.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)

"""
NO_HEAP = """\
Invalid maximum heap size: -Xmxbanana
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
NO_MASTER = """\
WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or start\
 with spark, k8s, or local
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:670)
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
"""
REFUSED = f"""\
{CLUSTER}Failed to connect to master 127.0.0.1:1
org.apache.spark.SparkException: Exception thrown in awaitResult: \n\
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: java.io.IOException: Failed to connect to /127.0.0.1:1
Caused by: java.net.ConnectException: finishConnect(..) failed with error(-111): Connection refused
"""
STOPPED = """\
26/11/22 23:42:19 WARN StandaloneAppClient$ClientEndpoint: Drop UnregisterApplication(null) because\
 has not yet connected to master
Traceback (most recent call last):
  File "main.py", line 3, in <module>
py4j.protocol.Py4JJavaError: An error occurred while calling None.org.apache.spark.SparkSession.
: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.
This stopped SparkContext was created at:

org.apache.spark.api.java.JavaSparkContext.<init>(JavaSparkContext.scala:59)

(No active SparkContext.)
"""
KILLED = "26/11/22 23:42:18 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: "
UNREACHABLE = f"{STARTUP}{REFUSED}{KILLED}All masters are unresponsive! Giving up.\n{STOPPED}"
REMOVED = f"{STARTUP}{REFUSED}{KILLED}Master removed our application: KILLED\n{STOPPED}"


def driven(script: str, log: Path, stop: StopSignal | None = None) -> list[DriverProgress]:
    reported: list[DriverProgress] = []
    command = DriverCommand(("/bin/sh", "-c", script), dict(os.environ), ("hush",))
    drive(command, log, stop or StopSignal(), reported.append)
    return reported


def test_progress_is_reported_and_everything_else_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    script = f"""
        echo '{{"phase": "matching", {COUNTS}}}'
        echo '{{"phase": "cut off'
        echo '{{"phase": "odd", "stages": "x"}}'
        echo said with hush of s3://key:word@host/b >&2
    """
    counts = {"stages_done": 1, "stages": 2, "tasks_done": 3, "tasks": 4}
    assert driven(script, log) == [DriverProgress("matching", counts)]
    odd = '{"phase": "cut off\n{"phase": "odd", "stages": "x"}\n'
    assert log.read_text() == f"{odd}said with *** of s3://host/b\n"


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
        ("", "The log is empty."),
    ],
)
def test_the_failure_reason_is_the_last_error_without_paths_and_secrets(
    tmp_path: Path, said: str, detail: str
) -> None:
    with pytest.raises(SparkFailed) as caught:
        driven(f"printf '{said}\\n'; exit 7", tmp_path / "log.txt")
    assert caught.value.message == f"{detail} (status 7)"


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        (NO_THREADS, "SparkException: Asked to run locally with 0 threads"),
        (NO_HEAP, "Invalid maximum heap size: -Xmxbanana"),
        (
            NO_MASTER,
            "SparkException: Master must either be yarn or start with spark, k8s, or local",
        ),
        (
            UNREACHABLE,
            "The Spark master 127.0.0.1:1 was unreachable or refused the hub: check that it runs at"
            " SPARK_MASTER with the same secret.",
        ),
        (REMOVED, "The Spark cluster ended the job: Master removed our application: KILLED"),
        ("Error: Missing application resource.", "Error: Missing application resource."),
        (STARTUP, "The log contains no reason."),
    ],
)
def test_sparks_errors_on_wrong_settings_are_reported(
    tmp_path: Path, said: str, detail: str
) -> None:
    """Spark's messages as version 4.3.0 writes them, cut to the misleading parts."""
    (tmp_path / "said").write_text(said)
    with pytest.raises(SparkFailed) as caught:
        driven(f"cat {tmp_path}/said; exit 1", tmp_path / "log.txt")
    assert caught.value.message == f"{detail} (status 1)"


@pytest.mark.parametrize(("victim", "status"), [("$$", "137"), ("$PPID", "-9")])
@pytest.mark.parametrize(
    ("said", "before"), [(STARTUP, ""), ("ValueError: why", " Before that: ValueError: why")]
)
def test_a_killed_driver_is_reported_as_killed(
    tmp_path: Path, victim: str, status: str, said: str, before: str
) -> None:
    """The victim is the driver or its guardian."""
    (tmp_path / "said").write_text(said)
    with pytest.raises(SparkFailed) as caught:
        driven(f"cat {tmp_path}/said; kill -9 {victim}; exec sleep 100", tmp_path / "log.txt")
    assert caught.value.message == (
        f"The driver was killed (SIGKILL); the log has its last steps.{before} (status {status})"
    )


def test_a_cluster_without_resources_is_reported_until_tasks_start(tmp_path: Path) -> None:
    """Spark only logs a warning about it."""
    (tmp_path / "said").write_text(IDLE)
    script = f"""
        cat {tmp_path}/said; echo
        echo '{{"phase": "matching", {COUNTS}, "tasks_active": 0}}'
        cat {tmp_path}/said; echo
        echo '{{"phase": "matching", {COUNTS}, "tasks_active": 1}}'
    """
    phases = [progress.phase for progress in driven(script, tmp_path / "log.txt")]
    hint = "(waiting for free resources in the cluster)"
    assert phases == [f"starting Spark {hint}", "matching", f"matching {hint}", "matching"]
    assert (tmp_path / "log.txt").read_text() == f"{IDLE}\n{IDLE}\n"


def test_a_full_log_loses_its_older_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOB_LOG_BYTES_MAX", 10_000)
    log = tmp_path / "log.txt"
    driven("for n in $(seq 5000); do echo line $n; done", log)
    lines = log.read_text().splitlines()
    assert "earlier bytes were deleted" in lines[0]
    assert lines[-1] == "line 5000"
    assert lines[1:] == [f"line {n}" for n in range(5_002 - len(lines), 5_001)]
    assert 4_000 < log.stat().st_size <= 10_000


def test_a_full_disk_is_reported_as_such_and_loses_only_the_log() -> None:
    """Java continues for a while, and then fails with another error."""
    said = "java.io.IOException: No space left on device"
    then = "java.lang.UnsatisfiedLinkError: no snappyjava in java.library.path"
    noise = "i=0; while [ $i -lt 500 ]; do echo more; i=$((i+1)); done"
    command = DriverCommand(
        ("/bin/sh", "-c", f"echo '{said}'; {noise}; echo '{then}'; exit 1"), {}, ()
    )
    with pytest.raises(StorageFull, match=r"A disk was full: .* Then: UnsatisfiedLinkError"):
        drive(command, Path("/dev/full"), StopSignal(), lambda progress: None)


def test_a_stop_request_ends_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOB_STOP_S", 0.2)
    stop, ready = StopSignal(), tmp_path / "ready"
    os.mkfifo(ready)

    def request_stop() -> None:
        ready.read_text()
        stop.request(CANCELLED)

    requesting = threading.Thread(target=request_stop)
    requesting.start()
    stubborn = f"trap '' TERM; setsid sleep 1000 & echo > {ready}; while :; do sleep 1000; done"
    with pytest.raises(RunStopped):
        driven(stubborn, tmp_path / "log.txt", stop)
    requesting.join()
    assert stop.ending == CANCELLED
