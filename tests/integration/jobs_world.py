"""Shared parts of the tests of jobs: a hub's database and data folder, with a tiny stand-in for the
job `backtest` (stand_in/).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.base.guardian import descendants
from eventhub.postgresql.connections import blocking
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import StopSignal
from sparkjobs.runs.execute import RunnerSettings, RunObserver, perform
from sparkjobs.runs.folders import RunFolder, folder_of
from sparkjobs.runs.statements import Run, RunProgress, RunRequest
from tests.integration.forward_world import World, eventually

STAND_IN = Path(__file__).parent / "stand_in"
JOB = "backtest"
SPARK_S = 150.0  # until a driver runs, on a busy machine


class Jobs:
    """Runs of the stand-in job, by Spark. The environment names the database and the folder."""

    def __init__(self, world: World, data: Path) -> None:
        self.world = world
        self.data = data

    def request(self, **params: Any) -> int:
        with blocking(self.world.url, name="test") as connection:
            return statements.request(connection, _request(params))

    def start(self, **params: Any) -> Run:
        with blocking(self.world.url, name="test") as connection:
            run = statements.start_now(connection, _request(params))
            assert run is not None, "another run is under way"
            found = statements.find(connection, run)
        assert found is not None
        return found

    def find(self, run: int) -> Run:
        [found] = self.runs(ids=[run])
        return found

    def runs(self, **selection: Any) -> list[Run]:
        with blocking(self.world.url, name="test") as connection:
            return statements.runs(connection, **selection)

    def retries(self) -> list[Run]:
        """Return the waiting retries."""
        return [run for run in self.runs() if run.state == "waiting" and run.retry_of is not None]

    def perform(self, run: Run, stop: StopSignal | None = None) -> tuple[Run, list[RunProgress]]:
        """Perform a run in this process; return its final row and its progress."""
        reported: list[RunProgress] = []
        observer = RunObserver(stop or StopSignal(), reported.append, SystemClock())
        return perform(RunnerSettings.of(read_env()), run, observer), reported

    def folder(self, run: int) -> RunFolder:
        return folder_of(self.data, JOB, run)

    def left(self, run: int) -> set[str]:
        """Return the names in the run's folder."""
        return {path.name for path in self.folder(run).root.iterdir()}

    @contextmanager
    def hanging(self, run: int) -> Iterator["HangingRunner"]:
        """Start a runner whose driver never ends."""
        process = subprocess.Popen([sys.executable, "-m", "sparkjobs.runs", str(run)])
        mark = self.folder(run).work / "pid"
        try:
            eventually(lambda: mark.is_file() and mark.read_text(), "a driver", SPARK_S)
            below = [psutil.Process(pid) for pid in descendants(process.pid)]
            yield HangingRunner(process, int(mark.read_text()), below)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def cancel(self, run: int) -> None:
        with blocking(self.world.url, name="test") as connection:
            assert statements.cancel(connection, run)

    def lapse(self, run: int) -> None:
        """Let the run's lease expire."""
        query = "UPDATE job_runs SET lease_expires_at = now() WHERE id = %s"
        self.world.sql(query, run)


def _request(params: dict[str, Any]) -> RunRequest:
    return RunRequest(JOB, {"engine": "spark", **params}, "tester")


class HangingRunner:
    def __init__(
        self, process: subprocess.Popen[bytes], driver: int, below: list[psutil.Process]
    ) -> None:
        self.process = process
        self.driver = driver  # the Python process below the JVM
        self.below = below

    @property
    def jvm(self) -> int:
        return psutil.Process(self.driver).ppid()

    def wait_gone(self) -> None:
        """Wait until all processes that the runner started have ended."""
        eventually(lambda: not any(_alive(one) for one in self.below), "an empty tree", SPARK_S)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def environment(world: World, data: Path) -> dict[str, str]:
    """Return the environment of runners."""
    return {
        **spark_environment(),
        "DATABASE_URL": world.url,
        "DATABASE_DIRECT_URL": world.url,
        "EVENTHUB_DATA": str(data),
        "EVENTHUB_ARCHIVE_URL": str(data / "archive"),
    }


def spark_environment() -> dict[str, str]:
    """Return settings for Spark with the stand-in job and a small JVM that starts fast."""
    return {
        "SPARK_MASTER": "local[1]",
        "EVENTHUB_SPARK_MEMORY": "512m",
        "EVENTHUB_SPARK_CONF": str(STAND_IN / "spark.conf"),
        "PYTHONPATH": os.pathsep.join((str(STAND_IN), os.environ.get("PYTHONPATH", ""))),
    }
