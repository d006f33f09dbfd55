"""The ranges that gap notices cover, in any number."""

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from sparkjobs.audit.gaps import gap_ranges, mark_skipped, merge_ranges

NOTICES = 12_000
RANGES = "stream_id long, `from` long, `to` long"


def ranges_of(frame: DataFrame) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in frame.select("stream_id", "from", "to").collect())


def rows_of(spark: SparkSession, rows: Iterable[tuple[int, ...]]) -> DataFrame:
    return spark.createDataFrame([*rows], "stream_id long, sequence long")


def test_ranges_that_overlap_or_adjoin_are_one(spark: SparkSession) -> None:
    """A match must not become two rows."""
    notices = [(2, 5, 9), (1, 4, 8), (1, 1, 3), (1, 6, 20), (1, 30, 31), (2, 5, 9), (1, 7, 9)]
    found = merge_ranges(spark.createDataFrame(notices, RANGES))
    assert ranges_of(found) == [(1, 1, 20), (1, 30, 31), (2, 5, 9)]


def test_each_of_many_notices_covers_its_range(spark: SparkSession) -> None:
    """Regression: of more than 10,000 notices the last were ignored. Here they cover every other
    sequence, ranges beyond what can be read, and one of a stream that cannot be read.
    """
    notices = [(stream, n, n) for stream in (1, 2) for n in range(2, NOTICES + 2, 2)]
    notices += [(1, NOTICES + 500, 2 * NOTICES), (2, 1 << 40, 1 << 41), (3, 1, 9)]
    deliveries_rows = [(*notice, "quota") for notice in notices]
    columns = "stream_id long, gap_first long, sequence long, gap_reason string"
    deliveries = spark.createDataFrame(deliveries_rows, columns)
    bounds = [(stream, 1, NOTICES + 999, "archive") for stream in (1, 2)] + [(3, 1, 9, "none")]
    segments = spark.createDataFrame(bounds, "stream_id long, first long, last long, source string")
    found = gap_ranges(deliveries, segments)
    assert found.count() == NOTICES + 1
    assert found.where("stream_id = 1").agg({"to": "max"}).first()[0] == NOTICES + 999
    rows = [(stream, n) for stream in (1, 2, 3, None) for n in range(1, NOTICES + 500, 61)]
    marks = mark_skipped(rows_of(spark, rows), found).collect()
    assert len(marks) == len(rows)
    for row in marks:
        assert row.skipped == (
            row.stream_id in (1, 2) and row.sequence % 2 == 0 and row.sequence <= NOTICES
        )


def test_a_range_is_found_in_each_of_its_blocks(spark: SparkSession) -> None:
    bounds = [(1, 1_000, 5_000), (1, 5_002, 5_002), (1, 9_216, 9_216)]
    marks = mark_skipped(
        rows_of(spark, ((1, n) for n in range(900, 9_300))), spark.createDataFrame(bounds, RANGES)
    )
    skipped = sorted(row.sequence for row in marks.where("skipped").collect())
    assert skipped == [*range(1_000, 5_001), 5_002, 9_216]
