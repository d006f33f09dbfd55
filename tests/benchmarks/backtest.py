"""`backtest`: back-tests by Spark over an archived stream: of a filter, against the hub's own dry
run over recent events, and of patterns, against the filter.
"""

import json
import shutil
import tempfile
import urllib.request
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.history import SEGMENT_EVENTS, History, make_history
from tests.benchmarks.shape import Case, Pace, Reading
from tests.benchmarks.spark_driven import driven
from tests.benchmarks.world import World

FILTER = "(> load 95)"
PARAMS = {
    "zone": "default", "zone_id": 1, "stream": "stream-100", "stream_id": 100,
    "language": "predicate", "filter": FILTER, "sample_max": 100,
}  # fmt: skip
# their keys are spread over tasks, or one task has all that they take, a tenth
PATTERN = "{high: *::* | $load > 95}; {low: *::* | $load < 5}"
PATTERNS = {"keys": f"{PATTERN} per $device", "order": PATTERN}


def cases(world: World, pace: Pace) -> list[Case]:
    searched = _Searched(world, pace)
    return [
        Case("backtest", "events/s", searched.by_spark, {"dry_run": searched.by_the_hub}),
        *(
            Case(
                f"backtest_pattern_{name}",
                "events/s",
                partial(searched.of_pattern, text),
                {"of_filter": searched.by_spark},
            )
            for name, text in PATTERNS.items()
        ),
    ]


class _Searched:
    """The same filter over events of the same size, for both sides."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._folder = Path(world.data) / "backtest"

    def by_spark(self) -> Reading:
        return self._driven(PARAMS)

    def of_pattern(self, text: str) -> Reading:
        pattern = {
            "language": "ready",
            "pattern": text,
            "streams": [PARAMS["stream"]],
            "stream_ids": [PARAMS["stream_id"]],
        }
        return self._driven({**PARAMS, **pattern})

    def _driven(self, params: dict[str, Any]) -> Reading:
        history = self._history()
        found = driven(history, "backtest", params, self._folder)
        events = int(found.result.figures["searched_events"] or 0)
        assert events == history.segments * min(SEGMENT_EVENTS, history.events)
        matches = float(found.result.figures["matches"] or 0)
        return Reading(events / found.seconds, {**found.figures, "matches": matches})

    def by_the_hub(self) -> Reading:
        """Measure as many events as the dry run examines within its time limit."""
        rows = min(self._pace.copy_rows, self._pace.searched)
        self._recent(rows)
        url = f"http://127.0.0.1:{self._world.product().port}/v1/filters/dry-run"
        expected = {
            "stream": "backtest.hot",
            "language": "predicate",
            "filter": FILTER,
            "last": rows,
        }
        headers = {"Authorization": f"Bearer {self._world.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(expected).encode(), headers)
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        looked_at = answer["looked_at"]
        assert looked_at
        return Reading(looked_at / answer["took_s"], {"s": answer["took_s"]})

    @cache  # noqa: B019 - one for a run of the benchmark
    def _recent(self, rows: int) -> None:
        place = tempfile.mkdtemp(dir=self._world.data)
        self._world.run_child(
            "tests.benchmarks.archived", json.dumps([place, "prepare", rows, "backtest"])
        )

    @cache  # noqa: B019 - likewise
    def _history(self) -> History:
        """Create a history of one stream."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        return in_one_stream(make_history(self._folder / "history", self._pace.searched))


def in_one_stream(history: History) -> History:
    """Assign all segments to one stream, which is what a backtest reads."""
    [file] = (history.inputs / "segments").iterdir()
    table = pq.read_table(file)
    at = table.schema.get_field_index("stream_id")
    one = pa.array([100] * table.num_rows, pa.int64())
    pq.write_table(table.set_column(at, "stream_id", one), file)
    return history
