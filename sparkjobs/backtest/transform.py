"""A back-test as DataFrames: which segments are searched, and what the matches come to. Spark
module; no I/O. Spark module.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.base import limits
from sparkjobs.backtest.search import SEARCH_ROW, BacktestQuery, search
from sparkjobs.segment_reader import NONE

# How wide the spans of a plot are, in seconds; each is a multiple of the one before.
WIDTHS_S = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800, 2_419_200)


def segments_to_search(segments: DataFrame, stream_id: int) -> DataFrame:
    """The segments of a stream whose rows are there, or should be."""
    there = f.col("source") != NONE
    return segments.where((f.col("stream_id") == stream_id) & there & _holds_events()).select(
        "id", "uuid", "source", "file", "file_bytes", "file_sha256", "fault"
    )


def dropped_segments(
    segments: DataFrame, stream_id: int, since_us: int | None, until_us: int | None
) -> DataFrame:
    """What was dropped of the range of time, as rows of FOUND: nobody can tell what it held."""
    gone = (f.col("stream_id") == stream_id) & (f.col("tier") == "dropped") & _holds_events()
    if since_us is not None:
        gone &= f.col("sealed_at_us") >= since_us
    if until_us is not None:
        gone &= f.col("opened_at_us") < until_us
    columns = {
        "segment_id": f.col("id"),
        "segment": f.col("uuid"),
        "searched": f.lit(0),
        "matched": f.lit(0),
        "fault": f.lit("dropped"),
    }
    types = {field.name: field.dataType for field in from_arrow_schema(SEARCH_ROW)}
    return segments.where(gone).select(
        *(columns.get(name, f.lit(None)).cast(kind).alias(name) for name, kind in types.items())
    )


def search_segments(segments_to_search: DataFrame, wanted: BacktestQuery) -> DataFrame:
    """FOUND of segments, which are searched one by one."""

    def of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return search(batches, wanted)

    return segments_to_search.mapInArrow(of, from_arrow_schema(SEARCH_ROW))


def matches(search_segments: DataFrame) -> DataFrame:
    """Every match, in the order of the stream."""
    return (
        search_segments.where(f.col("sequence").isNotNull())
        .select("sequence", "segment", "appended_at_us")
        .orderBy("sequence", "segment")
    )


def segment_rows(search_segments: DataFrame) -> DataFrame:
    """A row for each segment, in the order in which they were opened."""
    return (
        search_segments.where(f.col("searched").isNotNull())
        .select("segment_id", "segment", "searched", "matched", "first_us", "last_us", "fault")
        .orderBy("segment_id")
    )


def sample(search_segments: DataFrame, shown_max: int) -> DataFrame:
    """The first matches, with their events."""
    return (
        search_segments.where(f.col("shown").isNotNull())
        .select("sequence", "segment", "appended_at_us", "shown")
        .orderBy("sequence", "segment")
        .limit(shown_max)
    )


def histogram(matches: DataFrame, width_s: int) -> DataFrame:
    """Matches by span of time; a span without any has no row."""
    width_us = width_s * 1_000_000
    start = f.col("appended_at_us") - f.pmod("appended_at_us", f.lit(width_us))
    return (
        matches.groupBy(start.alias("start_us"))
        .agg(f.count(f.lit(1)).alias("events"))
        .orderBy("start_us")
    )


def width_for(first_us: int, last_us: int) -> int:
    """The narrowest span, in seconds, with which all between two times are few enough."""
    width_s = WIDTHS_S[0]
    while len(spans(first_us, last_us, width_s)) > limits.BACKTEST_BUCKETS_MAX:
        width_s = next((one for one in WIDTHS_S if one > width_s), 2 * width_s)
    return width_s


def spans(first_us: int, last_us: int, width_s: int) -> range:
    """When the spans from one time to another begin."""
    width_us = width_s * 1_000_000
    return range(first_us // width_us * width_us, last_us + 1, width_us)


def _holds_events() -> Column:
    return f.col("last") >= f.col("first")
