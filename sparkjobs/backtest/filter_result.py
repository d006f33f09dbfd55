"""The result of a filter's back-test, from what the search found. Plain module."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from sparkjobs.arrow_dataset import ds
from sparkjobs.backtest.report import report
from sparkjobs.backtest.search import BacktestQuery
from sparkjobs.backtest.totals import (
    SegmentTotals,
    bucket_width_s,
    buckets,
    range_of,
    segment_totals,
    write_first_matches,
    write_part,
)
from sparkjobs.job_spec import JobSpec
from sparkjobs.result import JobResult
from sparkjobs.segment_files import read_rows
from sparkjobs.tables import STREAMS, SYSTEM_ZONE, TYPES
from sparkjobs.type_hierarchy import declared_type

ABOUT = {
    "report.html": "The results as a page.",
    "matches": "Every match in stream order: sequence, segment, appended_at_us.",
    "matches.csv": f"The first {limits.BACKTEST_CSV_ROWS_MAX:,} matches.",
    "segments": "Events searched and matched in each segment, or why it was skipped.",
}


class SearchFindings(NamedTuple):
    """What a search found, besides the folder of matches. Rows are by name of column."""

    segments: pa.Table  # segments.segment_rows
    sample: Iterable[Any]  # the first matches, with `sample`
    histogram: Callable[[int], Iterable[Any]]  # width in seconds -> start_us, events


def query_of(spec: JobSpec) -> BacktestQuery:
    """Return the query of a run's parameters. Raises OSError."""
    params = spec.params
    streams = read_rows(spec.inputs, "streams", STREAMS, ds.field("id") == params["stream_id"])
    zone_id = next((row["zone_id"] for row in streams), params["zone_id"])
    types = read_rows(spec.inputs, "types", TYPES, ds.field("zone_id") == zone_id)
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


def finished(spec: JobSpec, found: SearchFindings) -> JobResult:
    """Write the rest of the files of `ABOUT`, and return the result. Raises OSError."""
    folder, totals = Path(spec.result), segment_totals(found.segments, "matched")
    write_part(found.segments, folder / "segments")
    write_first_matches(folder / "matches", folder / "matches.csv")
    details = _details(spec.params, totals, found)
    result = JobResult(_summary(totals), _figures(totals), about=ABOUT, details=details)
    (folder / "report.html").write_text(report(spec.params, result))
    return result


def _details(
    params: dict[str, Any], totals: SegmentTotals, found: SearchFindings
) -> dict[str, Any]:
    width_s = bucket_width_s(totals)
    return {
        "matched_events": totals.found,
        "searched_events": totals.searched,
        "searched_segments": totals.segments,
        "skipped": totals.skipped[: limits.BACKTEST_SKIPPED_LISTED_MAX],
        "histogram": buckets(totals, width_s, found.histogram(width_s), ["events"]),
        "bucket_s": width_s,
        "sample": [
            {
                "sequence": row["sequence"],
                "segment": row["segment"],
                "appended_at": time_text(row["appended_at_us"]),
                **json.loads(row["sample"]),
            }
            for row in found.sample
        ],
        **range_of(params, totals),
    }


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
