"""The job `backtest`: evaluates a filter against a stream's stored events in a time range, or a
pattern (patterns.py). Spark module.

This module reads and writes; transform.py has the rest, search.py the matching.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from sparkjobs import inputs
from sparkjobs.backtest import transform
from sparkjobs.backtest.patterns import run_patterns
from sparkjobs.backtest.report import report
from sparkjobs.backtest.search import SEARCH_ROW, BacktestQuery
from sparkjobs.csv_export import write_csv
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


class Counts(NamedTuple):
    """The totals over all segments."""

    segments: int
    searched: int
    matched: int
    first_us: int | None  # of the events that were searched
    last_us: int | None
    skipped: list[dict[str, Any]]  # segment, fault


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
    counts = _counts(spark.read.parquet(f"{folder}/segments"))
    details = _details(spec.params, counts, found, matches)
    _write_csv(matches, folder / "matches.csv")
    result = JobResult(_summary(counts), _figures(counts), about=ABOUT, details=details)
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


def _counts(segments: DataFrame) -> Counts:
    rows = [row.asDict() for row in segments.collect()]
    firsts = [row["first_us"] for row in rows if row["first_us"] is not None]
    lasts = [row["last_us"] for row in rows if row["last_us"] is not None]
    return Counts(
        segments=sum(row["fault"] is None for row in rows),
        searched=sum(row["searched"] for row in rows),
        matched=sum(row["matched"] for row in rows),
        first_us=min(firsts, default=None),
        last_us=max(lasts, default=None),
        skipped=[
            {"segment": row["segment"], "fault": row["fault"]}
            for row in sorted(rows, key=lambda row: row["segment_id"])
            if row["fault"] is not None
        ],
    )


def _details(
    params: dict[str, Any], counts: Counts, found: DataFrame, matches: DataFrame
) -> dict[str, Any]:
    histogram, bucket_s = _histogram(counts, matches)
    since_us, until_us = params.get("since_us"), params.get("until_us")
    return {
        "matched_events": counts.matched,
        "searched_events": counts.searched,
        "searched_segments": counts.segments,
        "skipped": counts.skipped[: limits.BACKTEST_SKIPPED_LISTED_MAX],
        "histogram": histogram,
        "bucket_s": bucket_s,
        "sample": _sample(found, params["sample_max"]),
        "from": _time(counts.first_us if since_us is None else since_us),
        "until": _time(counts.last_us if until_us is None else until_us),
    }


def _histogram(counts: Counts, matches: DataFrame) -> tuple[list[list[int]], int]:
    """Return (start in µs, matches) of each bucket, and the width of the buckets in seconds."""
    if counts.first_us is None or counts.last_us is None:
        return [], transform.WIDTHS_S[0]
    width_s = transform.width_for(counts.first_us, counts.last_us)
    rows = transform.histogram(matches, width_s).collect()
    by_start = {row.start_us: row.events for row in rows}
    starts = transform.bucket_starts(counts.first_us, counts.last_us, width_s)
    return [[start, by_start.get(start, 0)] for start in starts], width_s


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


def _write_csv(matches: DataFrame, path: Path) -> None:
    first = matches.orderBy("sequence", "segment").limit(limits.BACKTEST_CSV_ROWS_MAX).toArrow()
    at = first.schema.get_field_index("appended_at_us")
    times = [time_text(at_us) for at_us in first.column(at).to_pylist()]
    with_times = first.set_column(at, "appended_at", pa.array(times, pa.string()))
    write_csv(path, with_times.schema, with_times.to_batches())


def _summary(counts: Counts) -> str:
    text = f"Matched: {counts.matched:,} of {counts.searched:,} events."
    if counts.skipped:
        text += f" Skipped segments: {len(counts.skipped):,}."
    return text


def _figures(counts: Counts) -> dict[str, int | float | str | None]:
    return {
        "matches": counts.matched,
        "searched_events": counts.searched,
        "searched_segments": counts.segments,
        "skipped_segments": len(counts.skipped),
    }


def _time(time_us: int | None) -> str | None:
    return None if time_us is None else time_text(time_us)
