"""The retention plan: an action and a reason for every segment in the database. Spark module.

The rules are the hub's own for dropping (eventhub/eventlog/sql/retention.sql, `drops_by_policy`)
and compacting (eventhub/eventlog/retention/quota.py, `is_worth_cleaning`); a test compares them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventhub.base import limits

DROP, ARCHIVE, COMPACT, KEEP = "drop", "archive", "compact", "keep"
ACTIONS = (DROP, ARCHIVE, COMPACT, KEEP)
_POLICY = {
    "retain_events": t.LongType(),
    "retain_bytes": t.LongType(),
    "retain_age_s": t.LongType(),
    "on_lag": t.StringType(),
    "hold": t.StringType(),
    "archive": t.BooleanType(),
}
_PROPOSED = t.StructType(
    [
        t.StructField("name", t.StringType()),
        *(t.StructField(f"new_{name}", kind) for name, kind in _POLICY.items()),
        *(t.StructField(f"gives_{name}", t.BooleanType()) for name in _POLICY),
    ]
)


def proposed_policies(spark: SparkSession, policies: Mapping[str, Mapping[str, Any]]) -> DataFrame:
    """Return proposed policies, by stream name, as a table; a value of None removes a limit."""
    rows = [
        (name, *(given.get(one) for one in _POLICY), *(one in given for one in _POLICY))
        for name, given in sorted(policies.items())
    ]
    return spark.createDataFrame(rows, _PROPOSED)


def with_policies(streams: DataFrame, proposed: DataFrame, zone_id: int | None) -> DataFrame:
    """Return the streams of a zone (None: all), with proposed values instead of their own."""
    of_zone = streams if zone_id is None else streams.where(f.col("zone_id") == zone_id)
    policy = [
        f.when(f.col(f"gives_{name}"), f.col(f"new_{name}")).otherwise(f.col(name)).alias(name)
        for name in _POLICY
    ]
    return of_zone.join(proposed, "name", "left").select(
        f.col("id").alias("stream_id"), "zone_id", "zone", f.col("name").alias("stream"), "needed",
        *policy,
    )  # fmt: skip


def plan(evaluated: DataFrame, compacted: Sequence[int]) -> DataFrame:
    """Return a row for each segment in the database, in stream order. `compacted`: the ids of
    partitions, of which a hub has thousands at most.
    """
    compact = f.col("partition_id").isin(*compacted) & (f.col("action") == KEEP)
    return (
        evaluated.select(
            "stream_id", "zone_id", "zone", "stream", "segment_id", "segment", "partition_id",
            "first", "last", (f.col("last") - f.col("first") + 1).alias("events"), "bytes",
            "archived",
            f.when(compact, COMPACT).otherwise(f.col("action")).alias("action"),
            f.when(compact, "mostly_dropped").otherwise(f.col("reason")).alias("reason"),
        )
        .orderBy("stream_id", "first", "segment_id")
    )  # fmt: skip


def evaluate(segments: DataFrame, streams: DataFrame, now_us: int) -> DataFrame:
    """Add to each segment in the database the `action` and `reason` of the first rule that applies.
    `streams` are those of `with_policies`.
    """
    with_policy = _with_policy(segments.where(f.col("tier") == "live"), streams)
    due = _drop_reason(now_us)
    needed = (f.col("on_lag") == "keep") & (f.col("last") >= f.col("needed"))
    rules = (
        (~f.col("sealed"), KEEP, f.lit("open")),
        (f.col("hold").isNotNull(), KEEP, f.lit("hold")),
        (f.col("archive") & ~f.col("archived"), ARCHIVE, f.lit("not_archived")),
        (due.isNotNull() & needed, KEEP, f.lit("needed")),
        (due.isNotNull(), DROP, due),
    )
    action, reason = f.lit(KEEP), f.lit("policy")
    for applies, then, because in reversed(rules):
        action = f.when(applies, then).otherwise(action)
        reason = f.when(applies, because).otherwise(reason)
    return with_policy.withColumn("action", action).withColumn("reason", reason)


def partitions_to_compact(evaluated: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return the partitions that the hub compacts after the plan, space permitting: those of which
    at most half is then live. `freed_bytes`: an estimate of the disk space freed.
    """
    by_partition = evaluated.where(f.col("action") == DROP).groupBy("partition_id")
    dropped = by_partition.agg(f.sum("bytes").alias("dropped_bytes"))
    current = partitions.where("current").select(f.col("id").alias("current_id"))
    live = f.col("live_bytes") - f.coalesce("dropped_bytes", f.lit(0))
    share = f.col("live") / f.greatest("stored_bytes", "live", f.lit(1))
    return (
        partitions.join(current, f.col("id") < f.col("current_id"))
        .withColumnRenamed("id", "partition_id")
        .join(dropped, "partition_id", "left")
        .withColumn("live", live)
        .withColumn("live_share", share)
        .where(f.col("live_share") <= limits.CLEAN_LIVE_SHARE_MAX)
        .withColumn("freed_bytes", f.floor(f.col("size_bytes") * (1 - f.col("live_share"))))
        .select("partition_id", "size_bytes", "live", "freed_bytes")
        .orderBy("partition_id")
    )


def _with_policy(live: DataFrame, streams: DataFrame) -> DataFrame:
    """Join segments with their stream's policy, and add the events and bytes that are newer: those
    of the open segment and of segments sealed later.
    """
    newer = (
        Window.partitionBy("stream_id")
        .orderBy(f.col("sealed"), f.col("first").desc(), f.col("segment_id").desc())
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    count = f.col("last") - f.col("first") + 1
    return (
        live.withColumnsRenamed({"id": "segment_id", "uuid": "segment"})
        .withColumn("events_newer", f.coalesce(f.sum(count).over(newer), f.lit(0)))
        .withColumn("bytes_newer", f.coalesce(f.sum("bytes").over(newer), f.lit(0)))
        .select(
            "stream_id", "segment_id", "segment", "partition_id", "first", "last", "bytes",
            "sealed", "sealed_at_us", "archived", "events_newer", "bytes_newer",
        )
        .join(streams, "stream_id")
    )  # fmt: skip


def _drop_reason(now_us: int) -> Column:
    """Return why the policy drops a sealed segment; null: it does not."""
    age_us = f.col("retain_age_s") * 1_000_000
    return (
        f.when(f.col("sealed_at_us") <= f.lit(now_us) - age_us, "age")
        .when(f.col("bytes_newer") >= f.col("retain_bytes"), "size")
        .when(f.col("events_newer") >= f.col("retain_events"), "count")
    )
