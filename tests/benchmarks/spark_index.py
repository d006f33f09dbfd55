"""`spark_index`: a match index of very many registrations, built by Spark on this machine, by a
standalone cluster with two workers, and by the hub's own builder; then opened.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from registrations.match_index.format.builder import EpochPlan, publish_files
from registrations.match_index.format.manifest import read_manifest
from sparkjobs.job_spec import JobSpec, write_spec
from sparkjobs.match_index.shards import SHARDS
from sparkjobs.runs.cancellation import StopSignal
from sparkjobs.runs.driver import drive
from sparkjobs.runs.folders import RunFolder
from sparkjobs.runs.launch import SparkSettings, driver_command
from tests.benchmarks import indexes, spark_built
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.watching import MB, watched
from tests.benchmarks.world import World
from tests.cluster import standalone

OPEN_MS_MAX = 50.0
CORES = 2


def cases(world: World, pace: Pace) -> list[Case]:
    built = _Built(world, pace.spark_registrations)
    here = {"local_builder": built.here}
    allowed: dict[str, Measure] = {"allowed": lambda: Reading(OPEN_MS_MAX)}
    return [
        Case("spark_index_local", "s", built.by_spark, here, lower_is_better=True),
        Case("spark_index_standalone", "s", built.by_cluster, here, lower_is_better=True),
        Case("spark_index_open", "ms", built.opened, allowed, floor=1, lower_is_better=True),
    ]


class _Built:
    """Indexes of the same registrations, by each builder."""

    def __init__(self, world: World, count: int) -> None:
        self._world = world
        self._count = count
        self._folder = Path(world.data) / f"spark-index-{count}"

    def by_spark(self) -> Reading:
        return self._by(SparkSettings(f"local[{CORES}]", "2g", "", os.environ.get("JAVA_HOME", "")))

    def by_cluster(self) -> Reading:
        folder = self._folder / "cluster"
        shutil.rmtree(folder, ignore_errors=True)
        with standalone(folder, workers=CORES) as cluster:
            java_home = os.environ.get("JAVA_HOME", "")
            return self._by(
                SparkSettings(cluster.master, "2g", str(cluster.conf), java_home), cluster.pids
            )

    @cache  # noqa: B019 - one for a run of the benchmark
    def here(self) -> Reading:
        root = self._folder / "here"
        work = spark_built.Work("build", str(self._inputs()), str(root))
        return self._read(root, lambda: self._child("spark_built", work))

    def opened(self) -> Reading:
        """Measure opening in a process like the hub's, and the memory that two of them share: of
        Spark's index if it has built one.
        """
        root = self._folder / "spark"
        if not root.exists():
            self.here()
            root = self._folder / "here"
        opened = self._child("indexes", indexes.Work("open", str(root)))
        shared = self._child("indexes", indexes.Work("share", str(root)))
        sizes = {name.replace("_kb", "_mb"): shared[name] / 1e3 for name in ("rss_kb", "pss_kb")}
        return Reading(opened["open_ms"], {**sizes, "mb": opened["bytes"] / MB})

    def _by(self, spark: SparkSettings, cluster: tuple[int, ...] = ()) -> Reading:
        inputs, run = self._inputs(), RunFolder(self._folder / "run")
        run.create()
        root = self._folder / "spark"
        params = {"stream": "fleet", "stream_id": spark_built.STREAM}
        order = JobSpec(
            "match_index", 1, params, str(inputs), str(run.work), str(run.unfinished), "", 0
        )
        write_spec(run.work, order)

        def build() -> None:
            started = driver_command(spark, run, "benchmark", self._folder / "java")
            drive(started, run.log, StopSignal(), lambda said: None)
            files = sorted((run.work / SHARDS).glob("*.idx"))
            publish_files(root, files, EpochPlan(0))

        return self._read(root, build, cluster)

    def _read(
        self, root: Path, build: Callable[[], object], beside: tuple[int, ...] = ()
    ) -> Reading:
        """Return seconds from the inputs to the published index, and the resources of its
        processes.
        """
        shutil.rmtree(root, ignore_errors=True)
        with watched(beside) as took:
            began = time.monotonic()
            build()
            seconds = time.monotonic() - began
        manifest = read_manifest(root)
        assert manifest.ids == self._count
        shown = {"peak_mb": took.peak / MB, "cpu_s": sum(took.cpu_s.values())}
        return Reading(seconds, {**shown, "mb": manifest.bytes / MB, "shards": len(manifest.parts)})

    def _inputs(self) -> Path:
        folder = self._folder / "inputs"
        if not folder.exists():
            self._folder.mkdir(exist_ok=True)
            work = spark_built.Work("inputs", str(folder), "", self._count)
            self._child("spark_built", work)
        return folder

    def _child(self, module: str, work: tuple[object, ...]) -> dict[str, float]:
        said = self._world.run_child(f"tests.benchmarks.{module}", json.dumps(work))
        figures: dict[str, float] = json.loads(said or "{}")
        return figures
