"""Ranges of sequences that gap notices cover: events that forwarders skipped unmatched, because
they had been dropped from the log. Spark module.

Any number of notices works, because nothing is collected on the driver: a sequence is looked up
among the ranges of its block.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from sparkjobs.segment_files import NONE

BACKLOG = "backlog"  # the reason of a notice for an endpoint whose backlog was too large
_BLOCK = 1_024  # sequences; disjoint ranges number at most 512 in one block


def gap_ranges(deliveries: DataFrame, segments: DataFrame) -> DataFrame:
    """Return the ranges (stream_id, from, to) of the notices among the deliveries, clipped to
    readable segments; none overlap or adjoin. Notices of a backlog are left out: they concern one
    endpoint and explain nothing for others.
    """
    readable = (
        segments.where(sf.col("source") != NONE)
        .groupBy("stream_id")
        .agg(sf.min("first").alias("lowest"), sf.max("last").alias("highest"))
    )
    notices = (
        deliveries.where("gap_first is not null")
        .where(~sf.col("gap_reason").eqNullSafe(BACKLOG))
        .select("stream_id", "gap_first", "sequence")
        .distinct()
        .join(sf.broadcast(readable), "stream_id")
        .select(
            "stream_id",
            sf.greatest("gap_first", "lowest").alias("from"),
            sf.least("sequence", "highest").alias("to"),
        )
        .where(sf.col("from") <= sf.col("to"))
    )
    return merge_ranges(notices)


def merge_ranges(ranges: DataFrame) -> DataFrame:
    """Merge ranges (stream_id, from, to) that overlap or adjoin."""
    in_order = Window.partitionBy("stream_id").orderBy("from", "to")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    reached = sf.max("to").over(before)
    starts = reached.isNull() | (sf.col("from") > reached + 1)
    return (
        ranges.withColumn("starts", starts.cast("long"))
        .withColumn("island", sf.sum("starts").over(in_order))
        .groupBy("stream_id", "island")
        .agg(sf.min("from").alias("from"), sf.max("to").alias("to"))
        .select("stream_id", "from", "to")
    )


def mark_skipped(rows: DataFrame, ranges: DataFrame) -> DataFrame:
    """Add `skipped` to rows (stream_id, sequence, ...): whether one of the merged ranges contains
    the sequence. Rows are not multiplied.
    """
    blocks = ranges.select(
        sf.col("stream_id").alias("gap_of"),
        "from",
        "to",
        sf.explode(sf.expr(f"sequence(`from` div {_BLOCK}, `to` div {_BLOCK})")).alias("block"),
    )
    within = (
        (sf.col("stream_id") == sf.col("gap_of"))
        & (sf.expr(f"sequence div {_BLOCK}") == sf.col("block"))
        & sf.col("sequence").between(sf.col("from"), sf.col("to"))
    )
    return (
        rows.join(blocks, within, "left")
        .withColumn("skipped", sf.col("gap_of").isNotNull())
        .drop("gap_of", "from", "to", "block")
    )
