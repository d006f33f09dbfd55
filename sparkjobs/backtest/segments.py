"""The segments of a back-test: which are searched, which have been dropped, and what was found in
each. Plain module.
"""

from typing import Any, NamedTuple

import pyarrow as pa

from sparkjobs.arrow_dataset import ds
from sparkjobs.backtest.search import SEARCH_ROW
from sparkjobs.job_spec import JobSpec
from sparkjobs.segment_files import NONE, open_table
from sparkjobs.tables import SEGMENTS

# What is read of a segment to search it.
TO_SEARCH = ("id", "uuid", "stream_id", "source", "file", "file_bytes", "file_sha256", "fault")
_COUNTED = ("segment_id", "segment", "searched", "{found}", "first_us", "last_us", "fault")


class BacktestSegments(NamedTuple):
    """The segments of the streams that have events."""

    to_search: pa.Table  # TO_SEARCH: those that can be read
    dropped: pa.Table  # rows of SEARCH_ROW, with the fault `dropped`


def segments_of(spec: JobSpec) -> BacktestSegments:
    """Read the segments of a run's streams. Raises OSError."""
    params = spec.params
    holds_events = ds.field("last") >= ds.field("first")
    of_streams = ds.field("stream_id").isin(params["stream_ids"])
    table = open_table(spec.inputs, "segments", SEGMENTS)
    segments = table.to_table(filter=of_streams & holds_events)
    to_search = segments.filter(ds.field("source") != NONE)
    return BacktestSegments(
        to_search.select(TO_SEARCH),
        dropped_segments(segments, params.get("since_us"), params.get("until_us")),
    )


def dropped_segments(segments: pa.Table, since_us: int | None, until_us: int | None) -> pa.Table:
    """Return the dropped segments of the time range as SEARCH_ROW."""
    is_dropped = ds.field("tier") == "dropped"
    if since_us is not None:
        is_dropped &= ds.field("sealed_at_us") >= since_us
    if until_us is not None:
        is_dropped &= ds.field("opened_at_us") < until_us
    dropped = segments.filter(is_dropped)
    count = dropped.num_rows
    known: dict[str, Any] = {
        "segment_id": dropped["id"],
        "segment": dropped["uuid"],
        "searched": [0] * count,
        "matched": [0] * count,
        "fault": ["dropped"] * count,
    }
    unknown = [None] * count
    columns = {name: known.get(name, unknown) for name in SEARCH_ROW.names}
    return pa.Table.from_pydict(columns, schema=SEARCH_ROW)


def segment_rows(searched: pa.Table, dropped: pa.Table, found: str) -> pa.Table:
    """Return a row for each segment, in the order in which they were opened. `searched`: the rows
    of a search that have `searched`. `found`: the name of the number of events found.
    """
    names = [name.format(found=found) for name in _COUNTED]
    skipped = dropped.rename_columns({"matched": found}).select(names)
    rows = pa.concat_tables([searched.select(names).cast(skipped.schema), skipped])
    return rows.sort_by("segment_id")
