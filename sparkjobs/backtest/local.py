"""Back-tests of a little history in this process, with the same results as run.py and patterns.py:
Spark would take longer to start than the events to be searched. Plain module.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from sparkjobs.backtest import filter_result, pattern_result
from sparkjobs.backtest.filter_result import SearchFindings
from sparkjobs.backtest.pattern_events import PATTERN_EVENT, pattern_events
from sparkjobs.backtest.pattern_query import PatternQuery
from sparkjobs.backtest.pattern_result import PatternFindings, totals_of
from sparkjobs.backtest.pattern_run import PATTERN_OUTPUT, run_pattern
from sparkjobs.backtest.search import SEARCH_ROW, search
from sparkjobs.backtest.segments import segment_rows, segments_of
from sparkjobs.backtest.totals import segment_totals, write_part
from sparkjobs.job_spec import JobSpec
from sparkjobs.result import JobResult

_ORDER = ("clock_us", "stream_id", "segment_id", "sequence")
_ROWS = 4_000  # fed to a pattern at once


def run(spec: JobSpec, begin: Callable[[str], None]) -> JobResult:
    """Search the segments of `spec.inputs` and write the files of the result. `begin` receives the
    phases.
    """
    if "pattern" in spec.params:
        return _run_pattern(spec, begin)
    begin("searching segments")
    segments = segments_of(spec)
    rows = search(iter(segments.to_search.to_batches()), filter_result.query_of(spec))
    found = pa.Table.from_batches(rows, SEARCH_ROW)
    begin("writing matches")
    matches = _in_order(_with(found, "sequence"), "sequence", "segment")
    columns = ["sequence", "segment", "appended_at_us"]
    write_part(matches.select(columns), Path(spec.result, "matches"))
    ones = pc.if_else(pc.is_valid(matches["sequence"]), 1, 0)
    sample = _with(matches, "sample").slice(0, spec.params["sample_max"])
    return filter_result.finished(
        spec,
        SearchFindings(
            segment_rows(_with(found, "searched"), segments.dropped, "matched"),
            sample.to_pylist(),
            lambda width_s: _histogram(matches, width_s, {"events": ones}),
        ),
    )


def _run_pattern(spec: JobSpec, begin: Callable[[str], None]) -> JobResult:
    query, segments = pattern_result.query_of(spec), segments_of(spec)
    begin("reading events")
    rows = pattern_events(iter(segments.to_search.to_batches()), query)
    found = pa.Table.from_batches(rows, PATTERN_EVENT)
    searched = segment_rows(_with(found, "searched"), segments.dropped, "taken")
    begin("running the pattern")
    outputs = _outputs(found, query, segment_totals(searched, "taken").last_us or 0)
    totals = totals_of(_with(outputs, "task").to_pylist(), spread=False)
    begin("writing matches")
    matches = _matches(outputs, query)
    write_part(matches, Path(spec.result, "matches"))
    counts = {name: matches[name] for name in ("matches", "outputs")}
    return pattern_result.finished(
        spec,
        totals,
        PatternFindings(
            searched,
            _sampled(_with(outputs, "sample"), spec.params["sample_max"]).to_pylist(),
            lambda width_s: _histogram(matches, width_s, counts),
        ),
    )


def _outputs(found: pa.Table, query: PatternQuery, end_us: int) -> pa.Table:
    """Run the pattern over the events in the hub's order, as `pattern_frames.in_order` has it."""
    floors = _floors(_with(found, "searched"))
    events = _with(found, "payload")
    events = events.filter(pc.is_in(events["segment_id"], pa.array([*floors], pa.int64())))
    earlier = pa.array([floors[id] for id in events["segment_id"].to_pylist()], pa.int64())
    at = events.schema.get_field_index("clock_us")
    clock = pc.max_element_wise(events["clock_us"], earlier)
    in_order = _in_order(events.set_column(at, "clock_us", clock), *_ORDER)
    stops_us = SystemClock().now_us() + int(limits.BACKTEST_PATTERN_S_MAX * 1e6)
    batches = iter(in_order.to_batches(max_chunksize=_ROWS))
    outputs = run_pattern(batches, query._replace(stops_us=stops_us), end_us)
    return pa.Table.from_batches(outputs, PATTERN_OUTPUT)


def _floors(segments: pa.Table) -> dict[int, int | None]:
    """Return, of each segment without a fault, the latest time of append in earlier ones of its
    stream.
    """
    floors: dict[int, int | None] = {}
    latest: dict[int, int] = {}
    for row in segments.sort_by("segment_id").to_pylist():
        stream = row["stream_id"]
        if row["fault"] is None:
            floors[row["segment_id"]] = latest.get(stream)
            if row["last_us"] is not None:
                latest[stream] = max(latest.get(stream, row["last_us"]), row["last_us"])
    return floors


def _matches(outputs: pa.Table, query: PatternQuery) -> pa.Table:
    """Return what `pattern_frames.matches` returns; the outputs are in order."""
    counted = pc.add(pc.fill_null(outputs["matches"], 0), pc.fill_null(outputs["outputs"], 0))
    rows = outputs.filter(pc.greater(counted, 0))
    names = dict(query.streams)
    streams = pa.array([names[id] for id in rows["stream_id"].to_pylist()], pa.string())
    rows = rows.select(["sequence", "segment", "appended_at_us", "matches", "outputs"])
    return rows.add_column(0, "stream", streams)


def _sampled(listed: pa.Table, most: int) -> pa.Table:
    """Return what `pattern_frames.sampled` returns."""
    with_matches = pc.greater(listed["sample_matches"], 0)
    firsts = [listed.filter(one).slice(0, most) for one in (with_matches, pc.invert(with_matches))]
    return _in_order(pa.concat_tables(firsts), *_ORDER)


def _with(table: pa.Table, column: str) -> pa.Table:
    """Return the rows that have a value in the column."""
    return table.filter(pc.is_valid(table[column]))


def _in_order(table: pa.Table, *columns: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in columns])


def _histogram(
    matches: pa.Table, width_s: int, counts: dict[str, pa.ChunkedArray]
) -> list[dict[str, int]]:
    """Sum counts of the matches by bucket; empty buckets have no row."""
    width_us = width_s * 1_000_000
    starts = pc.multiply(pc.divide(matches["appended_at_us"], width_us), width_us)
    by_bucket = pa.table({"start_us": starts, **counts}).group_by("start_us")
    sums = by_bucket.aggregate([(name, "sum") for name in counts])
    rows: list[dict[str, int]] = sums.rename_columns(["start_us", *counts]).to_pylist()
    return rows
