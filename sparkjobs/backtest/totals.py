"""The totals of a back-test, of a filter or a pattern: its segments, time range, histogram and CSV
file. Spark module.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from eventhub.event.json_codec import time_text
from sparkjobs.backtest import transform
from sparkjobs.csv_export import write_csv


class SegmentTotals(NamedTuple):
    """The totals over all segments."""

    segments: int
    searched: int  # events
    found: int  # of these: those that matched a filter, or that a pattern takes
    first_us: int | None  # of the events that were searched
    last_us: int | None
    skipped: list[dict[str, Any]]  # segment, fault


def segment_totals(segments: DataFrame, found: str) -> SegmentTotals:
    """Add up the rows of segments. `found`: the column with the number of events found."""
    rows = [row.asDict() for row in segments.collect()]
    firsts = [row["first_us"] for row in rows if row["first_us"] is not None]
    lasts = [row["last_us"] for row in rows if row["last_us"] is not None]
    return SegmentTotals(
        segments=sum(row["fault"] is None for row in rows),
        searched=sum(row["searched"] for row in rows),
        found=sum(row[found] for row in rows),
        first_us=min(firsts, default=None),
        last_us=max(lasts, default=None),
        skipped=[
            {"segment": row["segment"], "fault": row["fault"]}
            for row in sorted(rows, key=lambda row: row["segment_id"])
            if row["fault"] is not None
        ],
    )


def range_of(params: Mapping[str, Any], totals: SegmentTotals) -> dict[str, str | None]:
    """Return the time range: as requested, else that of the events."""
    since_us, until_us = params.get("since_us"), params.get("until_us")
    return {
        "from": _time(totals.first_us if since_us is None else since_us),
        "until": _time(totals.last_us if until_us is None else until_us),
    }


def bucket_width_s(totals: SegmentTotals) -> int:
    """Return the width of the histogram's buckets in seconds."""
    if totals.first_us is None or totals.last_us is None:
        return transform.WIDTHS_S[0]
    return transform.width_for(totals.first_us, totals.last_us)


def buckets(
    totals: SegmentTotals, width_s: int, rows: DataFrame, counts: Sequence[str]
) -> list[list[int]]:
    """Return (start in µs, counts) of each bucket. `rows`: `start_us` and the counts of the buckets
    that have any.
    """
    if totals.first_us is None or totals.last_us is None:
        return []
    by_start = {row.start_us: [row[name] for name in counts] for row in rows.collect()}
    none = [0] * len(counts)
    starts = transform.bucket_starts(totals.first_us, totals.last_us, width_s)
    return [[start, *by_start.get(start, none)] for start in starts]


def write_first_matches(first: DataFrame, path: Path) -> None:
    """Write rows as CSV, their times as text."""
    rows = first.toArrow()
    at = rows.schema.get_field_index("appended_at_us")
    times = [time_text(at_us) for at_us in rows.column(at).to_pylist()]
    with_times = rows.set_column(at, "appended_at", pa.array(times, pa.string()))
    write_csv(path, with_times.schema, with_times.to_batches())


def _time(time_us: int | None) -> str | None:
    return None if time_us is None else time_text(time_us)
