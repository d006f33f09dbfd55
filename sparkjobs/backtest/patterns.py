"""The back-test of a pattern: feeds the stored events of some streams, in the order of the hub's
pattern groups, to the engine of these groups. Spark module.

The events that the pattern takes are read in parallel. Then one task has them all in order; of a
pattern whose keys are independent, each of several tasks has some keys. These keys share the
pattern's limits of keys and bytes, so if the tasks together may have reached one, one task repeats
it. Either way the result is that of one uninterrupted run over that order.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from sparkjobs import inputs
from sparkjobs.backtest import pattern_frames, transform
from sparkjobs.backtest.pattern_query import PatternQuery
from sparkjobs.backtest.pattern_report import STOPPED, report
from sparkjobs.backtest.reading import ReadScope
from sparkjobs.backtest.totals import (
    SegmentTotals,
    bucket_width_s,
    buckets,
    range_of,
    segment_totals,
    write_first_matches,
)
from sparkjobs.job_spec import JobSpec
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from sparkjobs.tables import SYSTEM_ZONE
from sparkjobs.type_hierarchy import declared_type

ABOUT = {
    "report.html": "The results as a page.",
    "matches": "Every event at which the pattern matched or had other outputs, in order: stream,"
    " sequence, segment, appended_at_us, matches, outputs.",
    "matches.csv": f"The first {limits.BACKTEST_CSV_ROWS_MAX:,} of them.",
    "segments": "Events searched and taken of each segment, or why it was skipped.",
}
_SHARED_LIMITS = ("keys_max", "bytes_max")  # of all keys of a pattern together
_ARROW_BYTES = 16 * 1024 * 1024  # of events that a task receives at a time


class BacktestTotals(NamedTuple):
    """The totals over all tasks. `counts`: of outputs by kind; `spread`: over several tasks."""

    counts: Counter[str]
    dropped: Counter[str]
    stopped: dict[str, Any] | None
    waiting: list[dict[str, Any]]  # key, tree
    keys: int
    peak_keys: int
    peak_bytes: int
    spread: bool

    @property
    def is_exact(self) -> bool:
        """Whether no limit that the keys share can have been reached."""
        return (
            self.peak_keys <= limits.PATTERN_KEYS_MAX
            and self.peak_bytes <= limits.PATTERN_BYTES_MAX
            and not any(self.dropped[reason] for reason in _SHARED_LIMITS)
        )


def run_patterns(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    """Run the pattern of `spec.params` over `spec.inputs` and write the files of `ABOUT`."""
    folder, query = Path(spec.result), _query(spark, spec)
    folder.mkdir(parents=True, exist_ok=True)
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_ARROW_BYTES))
    phases.begin("reading events")
    found = _found(spark, spec, query)
    pattern_frames.segment_rows(found).write.parquet(f"{folder}/segments")
    searched = segment_totals(spark.read.parquet(f"{folder}/segments"), "taken")
    phases.begin("running the pattern")
    outputs, totals = _outputs(spark, spec, found, query, searched.last_us or 0)
    phases.begin("writing matches")
    names = spark.createDataFrame([*query.streams], "stream_id long, stream string")
    pattern_frames.matches(outputs, names).write.parquet(f"{folder}/matches")
    matches = spark.read.parquet(f"{folder}/matches")
    details = _details(spec.params, searched, totals, outputs, matches)
    write_first_matches(matches.limit(limits.BACKTEST_CSV_ROWS_MAX), folder / "matches.csv")
    result = JobResult(_summary(details), _figures(details), about=ABOUT, details=details)
    (folder / "report.html").write_text(report(spec.params, result))
    return result


def _query(spark: SparkSession, spec: JobSpec) -> PatternQuery:
    params = spec.params
    ids = params["stream_ids"]
    streams = inputs.table(spark, spec, "streams").where(f.col("id").isin(ids)).collect()
    types = inputs.table(spark, spec, "types").where(f.col("zone_id") == params["zone_id"])
    scope = ReadScope(spec.inputs, spec.archive_url, params.get("since_us"), params.get("until_us"))
    return PatternQuery(
        params["language"],
        params["pattern"],
        params.get("once", False),
        tuple(zip(ids, params["streams"], strict=True)),
        next((row.id for row in streams if row.zone_id == SYSTEM_ZONE), None),
        params["zone"],
        tuple(sorted(map(declared_type, types.collect()))),
        params["sample_max"],
        scope,
    )


def _found(spark: SparkSession, spec: JobSpec, query: PatternQuery) -> DataFrame:
    """Return PATTERN_EVENT, stored in the work folder, because it is used repeatedly."""
    segments = inputs.table(spark, spec, "segments")
    ids, path = [id for id, _ in query.streams], f"{spec.work}/found"
    to_search = transform.segments_to_search(segments, ids)
    tasks = max(1, min(to_search.count(), limits.BACKTEST_TASKS_MAX))
    found = pattern_frames.events_of_pattern(to_search.repartition(tasks), query)
    scope = query.scope
    dropped = transform.dropped_segments(segments, ids, scope.since_us, scope.until_us)
    found.unionByName(
        dropped.withColumnRenamed("matched", "taken"), allowMissingColumns=True
    ).select(*found.columns).write.mode("overwrite").parquet(path)
    return spark.read.schema(found.schema).parquet(path)


def _outputs(
    spark: SparkSession, spec: JobSpec, found: DataFrame, query: PatternQuery, end_us: int
) -> tuple[DataFrame, BacktestTotals]:
    """Run the pattern; return PATTERN_OUTPUT, stored in the work folder, and the totals."""
    path = f"{spec.work}/outputs"
    for spread in (True, False) if query.spreads else (False,):
        stops_us = SystemClock().now_us() + int(limits.BACKTEST_PATTERN_S_MAX * 1e6)
        events = pattern_frames.in_order(found, spread=spread)
        outputs = pattern_frames.outputs_of(events, query._replace(stops_us=stops_us), end_us)
        outputs.write.mode("overwrite").parquet(path)
        stored = spark.read.schema(outputs.schema).parquet(path)
        totals = _totals(stored, spread=spread)
        if totals.is_exact or totals.stopped is not None:
            break
    return stored, totals


def _totals(outputs: DataFrame, *, spread: bool) -> BacktestTotals:
    rows = outputs.where(f.col("task").isNotNull()).select("task").collect()
    tasks = [json.loads(row.task) for row in rows]
    counts: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for task in tasks:
        counts.update({name: task[name] for name in _COUNTS})
        dropped.update(task["dropped"])
    return BacktestTotals(
        counts,
        dropped,
        min((one["stopped"] for one in tasks if one["stopped"]), key=_when, default=None),
        _shown_waiting(one for task in tasks for one in task["waiting"]),
        sum(task["keys"] for task in tasks),
        sum(task["peak_keys"] for task in tasks),
        sum(task["peak_bytes"] for task in tasks),
        spread,
    )


_COUNTS = ("fed", "matches", "notified", "announced", "failed")


def _when(stopped: dict[str, Any]) -> str:
    return str(stopped["at"]["appended_at"])


def _shown_waiting(waiting: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the partial matches that a result lists, those first that expire first."""
    found, size = sorted(waiting, key=_oldest)[: limits.PATTERN_WAITING_KEYS_MAX], 0
    for number, one in enumerate(found):
        size += len(json.dumps(one))
        if size > limits.BACKTEST_WAITING_BYTES_MAX:
            return found[:number]
    return found


def _oldest(waiting: dict[str, Any]) -> tuple[str, str]:
    """Return when the window of a key ends, then the key."""
    return waiting["tree"]["expires_at"] or "", json.dumps(waiting["key"])


def _details(
    params: dict[str, Any],
    searched: SegmentTotals,
    totals: BacktestTotals,
    outputs: DataFrame,
    matches: DataFrame,
) -> dict[str, Any]:
    width_s = bucket_width_s(searched)
    rows = pattern_frames.histogram(matches, width_s)
    sample, others, is_complete = _listed(outputs, params["sample_max"])
    return {
        **{name: totals.counts[name] for name in _COUNTS if name != "fed"},
        "dropped": dict(sorted(totals.dropped.items())),
        "stopped": totals.stopped,
        "searched_events": searched.searched,
        "taken_events": searched.found,
        "searched_segments": searched.segments,
        "skipped_segments": len(searched.skipped),
        "skipped": searched.skipped[: limits.BACKTEST_SKIPPED_LISTED_MAX],
        "by_key": totals.spread,
        "histogram": buckets(searched, width_s, rows, ["matches", "outputs"]),
        "bucket_s": width_s,
        "sample": sample,
        "outputs": others,
        "is_complete": is_complete,
        "waiting": totals.waiting,
        "waiting_keys": totals.keys,
        **range_of(params, searched),
    }


def _listed(
    outputs: DataFrame, sample_max: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Return the first matches and the first other outputs, and whether their size allowed it."""
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    size = 0
    for row in pattern_frames.sampled(outputs, sample_max).toLocalIterator():
        size += len(row.sample)
        if size > limits.BACKTEST_OUTPUTS_BYTES_MAX:
            return found[True], found[False], False  # a task lists no more than that either
        for output in json.loads(row.sample):
            listed = found[output["output"] == "match"]
            if len(listed) < sample_max:
                listed.append(output)
    return found[True], found[False], True


def _summary(details: dict[str, Any]) -> str:
    counts = {"Matches": details["matches"], "notifications": details["notified"]}
    counts |= {"announced events": details["announced"]}
    text = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
    text += f"; of {details['searched_events']:,} events."
    if details["stopped"] is not None:
        text += f" {STOPPED[details['stopped']['reason']]}"
    if details["skipped_segments"]:
        text += f" Skipped segments: {details['skipped_segments']:,}."
    return text


def _figures(details: dict[str, Any]) -> dict[str, int | float | str | None]:
    names = ("matches", "notified", "announced", "failed", "searched_events", "taken_events")
    return {
        **{name: details[name] for name in names},
        "dropped": sum(details["dropped"].values()),
        "searched_segments": details["searched_segments"],
        "skipped_segments": details["skipped_segments"],
        "stopped": None if details["stopped"] is None else details["stopped"]["reason"],
    }
