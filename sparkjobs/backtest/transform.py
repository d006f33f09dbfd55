"""A back-test's DataFrames: the segments to search and the tables of matches. Spark module."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.base import limits
from sparkjobs.backtest.search import SEARCH_ROW, BacktestQuery, search
from sparkjobs.segment_files import NONE

# Bucket widths of the histogram, in seconds; each is a multiple of the previous one.
WIDTHS_S = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800, 2_419_200)


def segments_to_search(segments: DataFrame, stream_ids: Sequence[int]) -> DataFrame:
    """Return the segments of streams that have events and a source to read them from."""
    has_source = f.col("source") != NONE
    of_streams = f.col("stream_id").isin(*stream_ids)
    return segments.where(of_streams & has_source & _holds_events()).select(
        "id", "uuid", "stream_id", "source", "file", "file_bytes", "file_sha256", "fault"
    )


def dropped_segments(
    segments: DataFrame, stream_ids: Sequence[int], since_us: int | None, until_us: int | None
) -> DataFrame:
    """Return the dropped segments of the time range as SEARCH_ROW, with the fault `dropped`."""
    dropped = f.col("stream_id").isin(*stream_ids) & (f.col("tier") == "dropped") & _holds_events()
    if since_us is not None:
        dropped &= f.col("sealed_at_us") >= since_us
    if until_us is not None:
        dropped &= f.col("opened_at_us") < until_us
    columns = {
        "segment_id": f.col("id"),
        "segment": f.col("uuid"),
        "searched": f.lit(0),
        "matched": f.lit(0),
        "fault": f.lit("dropped"),
    }
    types = {field.name: field.dataType for field in from_arrow_schema(SEARCH_ROW)}
    return segments.where(dropped).select(
        *(columns.get(name, f.lit(None)).cast(kind).alias(name) for name, kind in types.items())
    )


def search_segments(segments: DataFrame, query: BacktestQuery) -> DataFrame:
    """Search segments one by one and return SEARCH_ROW."""

    def search_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return search(batches, query)

    return segments.mapInArrow(search_batches, from_arrow_schema(SEARCH_ROW))


def matches(found: DataFrame) -> DataFrame:
    """Return every match, in stream order."""
    return (
        found.where(f.col("sequence").isNotNull())
        .select("sequence", "segment", "appended_at_us")
        .orderBy("sequence", "segment")
    )


def segment_rows(found: DataFrame) -> DataFrame:
    """Return a row for each segment, in the order in which they were opened."""
    return (
        found.where(f.col("searched").isNotNull())
        .select("segment_id", "segment", "searched", "matched", "first_us", "last_us", "fault")
        .orderBy("segment_id")
    )


def sample(found: DataFrame, sample_max: int) -> DataFrame:
    """Return the first matches, with their events."""
    return (
        found.where(f.col("sample").isNotNull())
        .select("sequence", "segment", "appended_at_us", "sample")
        .orderBy("sequence", "segment")
        .limit(sample_max)
    )


def histogram(matches: DataFrame, width_s: int) -> DataFrame:
    """Count matches by bucket; empty buckets have no row."""
    width_us = width_s * 1_000_000
    start = f.col("appended_at_us") - f.pmod("appended_at_us", f.lit(width_us))
    return (
        matches.groupBy(start.alias("start_us"))
        .agg(f.count(f.lit(1)).alias("events"))
        .orderBy("start_us")
    )


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


def _holds_events() -> Column:
    return f.col("last") >= f.col("first")
