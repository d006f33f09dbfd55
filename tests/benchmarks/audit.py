"""`audit`: an audit of a whole history by Spark, against one process that only reads the events and
matches them with the same matcher, which is most of the work.
"""

import shutil
import time
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from sparkjobs.audit.scan import SegmentToScan, facts_of
from sparkjobs.expected_deliveries import ExecutorPaths
from sparkjobs.matchers import build_matcher
from tests.benchmarks.history import History, make_history
from tests.benchmarks.shape import Case, Pace, Reading
from tests.benchmarks.spark_driven import driven
from tests.benchmarks.world import World


def cases(world: World, pace: Pace) -> list[Case]:
    audited = _Audited(Path(world.data) / "audit", pace.audited)
    baselines = {"match_in_one_process": audited.by_one}
    return [Case("audit", "events/s", audited.by_spark, baselines)]


class _Audited:
    """The same history, audited by both sides."""

    def __init__(self, folder: Path, events: int) -> None:
        self._folder = folder
        self._events = events

    def by_spark(self) -> Reading:
        history = self._history()
        found = driven(history, "audit", {}, self._folder)
        assert found.result.verdict == "ok", found.result.summary
        events = int(found.result.figures["events"] or 0)
        assert events == self._events
        deliveries = float(found.result.figures["deliveries"] or 0)
        return Reading(events / found.seconds, {**found.figures, "deliveries": deliveries})

    def by_one(self) -> Reading:
        """Measure the first segments, as many as take some seconds."""
        history = self._history()
        paths = ExecutorPaths(str(history.inputs), str(self._folder / "one"), 0)
        shutil.rmtree(paths.work, ignore_errors=True)
        versions = pq.read_table(history.inputs / "versions").to_pylist()
        for stream_id in {row["stream_id"] for row in versions}:
            rows = (
                {**row, "is_system": False} for row in versions if row["stream_id"] == stream_id
            )
            build_matcher(paths.matcher(stream_id), rows)
        began, events = time.monotonic(), 0
        for row in pq.read_table(history.inputs / "segments").to_pylist()[:4]:
            asked = {**row, "zone_id": 1, "forwarded": row["last"]}
            assert set(SegmentToScan._fields) <= set(asked)
            for _ in facts_of(asked, paths, history.archive.as_uri()):
                pass
            events += row["last"] - row["first"] + 1
        return Reading(events / (time.monotonic() - began))

    @cache  # noqa: B019 - one for a run of the benchmark
    def _history(self) -> History:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        return make_history(self._folder / "history", self._events)
