"""The totals of a back-test, of a filter or a pattern: its segments, time range, histogram and
files. Plain module.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from sparkjobs.csv_export import write_csv

# Bucket widths of the histogram, in seconds; each is a multiple of the previous one.
WIDTHS_S = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800, 2_419_200)


class SegmentTotals(NamedTuple):
    """The totals over all segments."""

    segments: int
    searched: int  # events
    found: int  # of these: those that matched a filter, or that a pattern takes
    first_us: int | None  # of the events that were searched
    last_us: int | None
    skipped: list[dict[str, Any]]  # segment, fault


def segment_totals(segments: pa.Table, found: str) -> SegmentTotals:
    """Add up the rows of segments, which are in order. `found`: the column with the number of
    events found.
    """
    rows = segments.to_pylist()
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
            for row in rows
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
        return WIDTHS_S[0]
    return width_for(totals.first_us, totals.last_us)


def buckets(
    totals: SegmentTotals, width_s: int, rows: Iterable[Any], counts: Sequence[str]
) -> list[list[int]]:
    """Return (start in µs, counts) of each bucket. `rows`: `start_us` and the counts of the buckets
    that have any.
    """
    if totals.first_us is None or totals.last_us is None:
        return []
    by_start = {row["start_us"]: [row[name] for name in counts] for row in rows}
    none = [0] * len(counts)
    starts = bucket_starts(totals.first_us, totals.last_us, width_s)
    return [[start, *by_start.get(start, none)] for start in starts]


def width_for(first_us: int, last_us: int) -> int:
    """Return the narrowest bucket width, in seconds, that needs few enough buckets."""
    width_s = WIDTHS_S[0]
    while len(bucket_starts(first_us, last_us, width_s)) > limits.BACKTEST_BUCKETS_MAX:
        width_s = next((one for one in WIDTHS_S if one > width_s), 2 * width_s)
    return width_s


def bucket_starts(first_us: int, last_us: int, width_s: int) -> range:
    """Return the start times of the buckets between two times."""
    width_us = width_s * 1_000_000
    return range(first_us // width_us * width_us, last_us + 1, width_us)


def write_part(table: pa.Table, folder: Path) -> None:
    """Write a table as the only Parquet file of a new folder."""
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "part-00000.parquet")


def write_first_matches(matches: Path, path: Path) -> None:
    """Write the first rows of the table of matches as CSV, their times as text."""
    first = _first_rows(matches, limits.BACKTEST_CSV_ROWS_MAX)
    at = first.schema.get_field_index("appended_at_us")
    times = [time_text(at_us) for at_us in first.column(at).to_pylist()]
    with_times = first.set_column(at, "appended_at", pa.array(times, pa.string()))
    write_csv(path, with_times.schema, with_times.to_batches())


def _first_rows(folder: Path, most: int) -> pa.Table:
    """Return the first rows of a sorted table; its files are in order, by name."""
    parts: list[pa.Table] = []
    left = most
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups if left else 0):
                parts.append(file.read_row_group(number).slice(0, left))
                left -= parts[-1].num_rows
            parts.append(file.schema_arrow.empty_table())
    return pa.concat_tables(parts)


def _time(time_us: int | None) -> str | None:
    return None if time_us is None else time_text(time_us)
