"""What notices of gaps stand for: ranges of sequences whose events forwarders passed unmatched,
because they had left the log. Spark module.

However many notices there are, nothing is collected: a sequence is looked up among the ranges of
its block.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from sparkjobs.segment_reader import NONE

BACKLOG = "backlog"  # why of a notice of what was dropped because too much waited for its endpoint
_BLOCK = 1_024  # sequences; ranges that are apart are at most 512 in one


def gap_ranges(deliveries: DataFrame, segments: DataFrame) -> DataFrame:
    """(stream_id, from, to), none over another or next to it: what the notices among the deliveries
    say, of sequences that a segment which can be read may hold. Not those of a backlog: they are of
    one endpoint, and nobody else's excuse.
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
    """(stream_id, from, to) with what overlaps or adjoins put together."""
    in_order = Window.partitionBy("stream_id").orderBy("from", "to")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    reached = sf.max("to").over(before)
    begins = reached.isNull() | (sf.col("from") > reached + 1)
    return (
        ranges.withColumn("begins", begins.cast("long"))
        .withColumn("island", sf.sum("begins").over(in_order))
        .groupBy("stream_id", "island")
        .agg(sf.min("from").alias("from"), sf.max("to").alias("to"))
        .select("stream_id", "from", "to")
    )


def mark_skipped(rows: DataFrame, ranges: DataFrame) -> DataFrame:
    """The rows (stream_id, sequence, ...), each once, with `skipped`: a range of `merged` holds its
    sequence.
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
