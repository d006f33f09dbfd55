"""The job `backtest`: evaluates a filter against a stream's stored events in a time range, or a
pattern (patterns.py). Spark module.

This module reads and writes; transform.py has the rest, search.py the matching.
"""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from sparkjobs import inputs
from sparkjobs.backtest import transform
from sparkjobs.backtest.patterns import run_patterns
from sparkjobs.backtest.report import report
from sparkjobs.backtest.search import SEARCH_ROW, BacktestQuery
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
    "matches": "Every match in stream order: sequence, segment, appended_at_us.",
    "matches.csv": f"The first {limits.BACKTEST_CSV_ROWS_MAX:,} matches.",
    "segments": "Events searched and matched in each segment, or why it was skipped.",
}


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    """Search the segments of `spec.inputs` and write the files of `ABOUT`."""
    if "pattern" in spec.params:
        return run_patterns(spark, spec, phases)
    folder = Path(spec.result)
    folder.mkdir(parents=True, exist_ok=True)
    phases.begin("searching segments")
    found = _search(spark, spec)
    phases.begin("writing matches")
    transform.matches(found).write.parquet(f"{folder}/matches")
    transform.segment_rows(found).write.parquet(f"{folder}/segments")
    phases.begin("counting matches")
    matches = spark.read.parquet(f"{folder}/matches")
    totals = segment_totals(spark.read.parquet(f"{folder}/segments"), "matched")
    details = _details(spec.params, totals, found, matches)
    first = matches.orderBy("sequence", "segment").limit(limits.BACKTEST_CSV_ROWS_MAX)
    write_first_matches(first, folder / "matches.csv")
    result = JobResult(_summary(totals), _figures(totals), about=ABOUT, details=details)
    (folder / "report.html").write_text(report(spec.params, result))
    return result


def _search(spark: SparkSession, spec: JobSpec) -> DataFrame:
    """Search the segments; rows are stored in the work folder, because they are used repeatedly."""
    params, segments = spec.params, inputs.table(spark, spec, "segments")
    to_search = transform.segments_to_search(segments, params["stream_ids"])
    tasks = max(1, min(to_search.count(), limits.BACKTEST_TASKS_MAX))
    path = f"{spec.work}/found"
    found = transform.search_segments(to_search.repartition(tasks), _query(spark, spec))
    bounds = params.get("since_us"), params.get("until_us")
    dropped = transform.dropped_segments(segments, params["stream_ids"], *bounds)
    found.unionByName(dropped).write.mode("overwrite").parquet(path)
    return spark.read.parquet(path).select(*SEARCH_ROW.names)


def _query(spark: SparkSession, spec: JobSpec) -> BacktestQuery:
    params = spec.params
    streams = inputs.table(spark, spec, "streams").where(f.col("id") == params["stream_id"])
    zone_id = next((row.zone_id for row in streams.collect()), params["zone_id"])
    types = inputs.table(spark, spec, "types").where(f.col("zone_id") == zone_id).collect()
    return BacktestQuery(
        params["language"],
        json.dumps(params["filter"]),
        tuple(sorted(map(declared_type, types))),
        params["zone"] if zone_id == SYSTEM_ZONE else None,
        params.get("since_us"),
        params.get("until_us"),
        params["sample_max"],
        spec.inputs,
        spec.archive_url,
    )


def _details(
    params: dict[str, Any], totals: SegmentTotals, found: DataFrame, matches: DataFrame
) -> dict[str, Any]:
    width_s = bucket_width_s(totals)
    return {
        "matched_events": totals.found,
        "searched_events": totals.searched,
        "searched_segments": totals.segments,
        "skipped": totals.skipped[: limits.BACKTEST_SKIPPED_LISTED_MAX],
        "histogram": buckets(totals, width_s, transform.histogram(matches, width_s), ["events"]),
        "bucket_s": width_s,
        "sample": _sample(found, params["sample_max"]),
        **range_of(params, totals),
    }


def _sample(found: DataFrame, sample_max: int) -> list[dict[str, Any]]:
    return [
        {
            "sequence": row.sequence,
            "segment": row.segment,
            "appended_at": time_text(row.appended_at_us),
            **json.loads(row.sample),
        }
        for row in transform.sample(found, sample_max).collect()
    ]


def _summary(totals: SegmentTotals) -> str:
    text = f"Matched: {totals.found:,} of {totals.searched:,} events."
    if totals.skipped:
        text += f" Skipped segments: {len(totals.skipped):,}."
    return text


def _figures(totals: SegmentTotals) -> dict[str, int | float | str | None]:
    return {
        "matches": totals.found,
        "searched_events": totals.searched,
        "searched_segments": totals.segments,
        "skipped_segments": len(totals.skipped),
    }
