"""A back-test's DataFrames: the search of segments and the tables of matches. Spark module."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.base import limits
from sparkjobs.backtest.search import SEARCH_ROW, BacktestQuery, search
from sparkjobs.backtest.segments import BacktestSegments
from sparkjobs.backtest.totals import write_part
from sparkjobs.job_spec import JobSpec


def frame_to_search(spark: SparkSession, spec: JobSpec, segments: BacktestSegments) -> DataFrame:
    """Return the segments to search, divided among tasks."""
    folder, rows = Path(spec.work, "to-search"), segments.to_search
    write_part(rows, folder)
    tasks = max(1, min(rows.num_rows, limits.BACKTEST_TASKS_MAX))
    schema = from_arrow_schema(rows.schema)
    return spark.read.schema(schema).parquet(str(folder)).repartition(tasks)


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


def searched(found: DataFrame) -> DataFrame:
    """Return the rows of segments."""
    return found.where(f.col("searched").isNotNull())


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
