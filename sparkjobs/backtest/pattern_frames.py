"""The DataFrames of a pattern's back-test: its events in the hub's order, and its outputs. Spark
module.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from sparkjobs.backtest.pattern_events import PATTERN_EVENT, pattern_events
from sparkjobs.backtest.pattern_query import PatternQuery
from sparkjobs.backtest.pattern_run import PATTERN_OUTPUT, run_pattern

ORDER = ("clock_us", "stream_id", "segment_id", "sequence")


def events_of_pattern(segments: DataFrame, query: PatternQuery) -> DataFrame:
    """Read segments one by one and return PATTERN_EVENT."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pattern_events(batches, query)

    return segments.mapInArrow(read, from_arrow_schema(PATTERN_EVENT))


def in_order(found: DataFrame, *, spread: bool) -> DataFrame:
    """Return the events, each with the latest time of append of its stream up to it, because a
    clock may be set back; those of segments with a fault are left out. Each partition is in the
    order of pattern groups; `spread`: the events of a key are in one partition, otherwise there is
    one.
    """
    earlier = Window.partitionBy("stream_id").orderBy("segment_id")
    before = earlier.rowsBetween(Window.unboundedPreceding, -1)
    read = found.where(f.col("searched").isNotNull() & f.col("fault").isNull())
    floors = read.select("segment_id", f.max("last_us").over(before).alias("floor_us"))
    events = (
        found.where(f.col("payload").isNotNull())
        .join(f.broadcast(floors), "segment_id")
        .withColumn("clock_us", f.greatest("clock_us", "floor_us"))
        .select(*(name for name in PATTERN_EVENT.names if name not in _OF_SEGMENTS))
    )
    placed = events.repartition("shard") if spread else events.repartition(1)
    return placed.sortWithinPartitions(*ORDER)


def outputs_of(events: DataFrame, query: PatternQuery, end_us: int) -> DataFrame:
    """Feed the events of each partition to an engine and return PATTERN_OUTPUT."""

    def feed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_pattern(batches, query, end_us)

    return events.mapInArrow(feed, from_arrow_schema(PATTERN_OUTPUT))


def matches(outputs: DataFrame, names: DataFrame) -> DataFrame:
    """Return the events that matched the pattern, or at which it had other outputs, in order.
    `names`: (stream_id, stream).
    """
    return (
        outputs.where((f.col("matches") > 0) | (f.col("outputs") > 0))
        .join(f.broadcast(names), "stream_id")
        .orderBy(*ORDER)
        .select("stream", "sequence", "segment", "appended_at_us", "matches", "outputs")
    )


def sampled(outputs: DataFrame, sample_max: int) -> DataFrame:
    """Return the first events with listed outputs, in order: they have the first `sample_max`
    matches, and as many other outputs.
    """
    listed = outputs.where(f.col("sample").isNotNull())
    with_matches = listed.where(f.col("sample_matches") > 0).orderBy(*ORDER).limit(sample_max)
    with_others = listed.where(f.col("sample_matches") == 0).orderBy(*ORDER).limit(sample_max)
    return with_matches.unionByName(with_others).orderBy(*ORDER).select(*ORDER, "sample")


def histogram(matches: DataFrame, width_s: int) -> DataFrame:
    """Sum matches and outputs by bucket; empty buckets have no row."""
    width_us = width_s * 1_000_000
    start = f.col("appended_at_us") - f.pmod("appended_at_us", f.lit(width_us))
    return (
        matches.groupBy(start.alias("start_us"))
        .agg(f.sum("matches").alias("matches"), f.sum("outputs").alias("outputs"))
        .orderBy("start_us")
    )


_OF_SEGMENTS = ("searched", "taken", "first_us", "last_us", "fault")
