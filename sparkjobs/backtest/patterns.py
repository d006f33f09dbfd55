"""The back-test of a pattern: feeds the stored events of some streams, in the order of the hub's
pattern groups, to the engine of these groups. Spark module.

The events that the pattern takes are read in parallel. Then one task has them all in order; of a
pattern whose keys are independent, each of several tasks has some keys. These keys share the
pattern's limits of keys and bytes, so if the tasks together may have reached one, one task repeats
it. Either way the result is that of one uninterrupted run over that order.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from sparkjobs.backtest import pattern_frames, transform
from sparkjobs.backtest.pattern_query import PatternQuery
from sparkjobs.backtest.pattern_result import (
    BacktestTotals,
    PatternFindings,
    finished,
    query_of,
    totals_of,
)
from sparkjobs.backtest.segments import segment_rows, segments_of
from sparkjobs.backtest.totals import segment_totals
from sparkjobs.job_spec import JobSpec
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult

_ARROW_BYTES = 16 * 1024 * 1024  # of events that a task receives at a time


def run_patterns(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    """Run the pattern of `spec.params` over `spec.inputs` and write the files of
    `pattern_result.ABOUT`.
    """
    query = query_of(spec)
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_ARROW_BYTES))
    phases.begin("reading events")
    segments, path = segments_of(spec), f"{spec.work}/found"
    to_search = transform.frame_to_search(spark, spec, segments)
    found = pattern_frames.events_of_pattern(to_search, query)
    found.write.mode("overwrite").parquet(path)
    found = spark.read.schema(found.schema).parquet(path)
    searched = segment_rows(transform.searched(found).toArrow(), segments.dropped, "taken")
    phases.begin("running the pattern")
    last_us = segment_totals(searched, "taken").last_us or 0
    outputs, totals = _outputs(spark, spec, found, query, last_us)
    phases.begin("writing matches")
    names = spark.createDataFrame([*query.streams], "stream_id long, stream string")
    folder, matches = f"{spec.result}/matches", pattern_frames.matches(outputs, names)
    matches.write.parquet(folder)
    matches = spark.read.schema(matches.schema).parquet(folder)
    sampled = pattern_frames.sampled(outputs, spec.params["sample_max"])
    return finished(
        spec,
        totals,
        PatternFindings(
            searched,
            sampled.toLocalIterator(),
            lambda width_s: pattern_frames.histogram(matches, width_s).collect(),
        ),
    )


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
        tasks = stored.where(f.col("task").isNotNull()).select("task").collect()
        totals = totals_of(tasks, spread=spread)
        if totals.is_exact or totals.stopped is not None:
            break
    return stored, totals
