"""A plan of what may leave: for every segment in the database what to do, and why. Spark module.

The rules are those by which the hub itself drops (eventhub/eventlog/sql/retention.sql,
`drops_by_policy`) and cleans (eventhub/eventlog/retention/quota.py, `is_worth_cleaning`); a test
compares them.
"""

from collections.abc import Mapping
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
    """What is given of the policies of streams, by name, as a table; None removes a limit."""
    rows = [
        (name, *(given.get(one) for one in _POLICY), *(one in given for one in _POLICY))
        for name, given in sorted(policies.items())
    ]
    return spark.createDataFrame(rows, _PROPOSED)


def with_policies(
    streams: DataFrame, proposed_policies: DataFrame, zone_id: int | None
) -> DataFrame:
    """The streams of a zone (None: all), with what is proposed in the place of their own."""
    wanted = streams if zone_id is None else streams.where(f.col("zone_id") == zone_id)
    policy = [
        f.when(f.col(f"gives_{name}"), f.col(f"new_{name}")).otherwise(f.col(name)).alias(name)
        for name in _POLICY
    ]
    return wanted.join(proposed_policies, "name", "left").select(
        f.col("id").alias("stream_id"), "zone_id", "zone", f.col("name").alias("stream"), "needed",
        *policy,
    )  # fmt: skip


def plan(judge: DataFrame, partitions_to_compact: DataFrame) -> DataFrame:
    """A row for each segment in the database, in the order of the streams."""
    mostly_gone = partitions_to_compact.select("partition_id", f.lit(True).alias("goes"))
    compact = f.col("goes").isNotNull() & (f.col("action") == KEEP)
    return (
        judge.join(mostly_gone, "partition_id", "left")
        .select(
            "stream_id", "zone_id", "zone", "stream", "segment_id", "segment", "partition_id",
            "first", "last", (f.col("last") - f.col("first") + 1).alias("events"), "bytes",
            "archived",
            f.when(compact, COMPACT).otherwise(f.col("action")).alias("action"),
            f.when(compact, "mostly_gone").otherwise(f.col("reason")).alias("reason"),
        )
        .orderBy("stream_id", "first", "segment_id")
    )  # fmt: skip


def judge(segments: DataFrame, streams: DataFrame, now_us: int) -> DataFrame:
    """What the policies say of each segment in the database: `action` and `reason`, the first that
    holds. `streams` as of `with_policies`.
    """
    placed = _placed(segments.where(f.col("tier") == "live"), streams)
    due = _due(now_us)
    needed = (f.col("on_lag") == "keep") & (f.col("last") >= f.col("needed"))
    verdicts = (
        (~f.col("sealed"), KEEP, f.lit("open")),
        (f.col("hold").isNotNull(), KEEP, f.lit("hold")),
        (f.col("archive") & ~f.col("archived"), ARCHIVE, f.lit("not_archived")),
        (due.isNotNull() & needed, KEEP, f.lit("needed")),
        (due.isNotNull(), DROP, due),
    )
    action, reason = f.lit(KEEP), f.lit("policy")
    for holds, then, why in reversed(verdicts):
        action = f.when(holds, then).otherwise(action)
        reason = f.when(holds, why).otherwise(reason)
    return placed.withColumn("action", action).withColumn("reason", reason)


def partitions_to_compact(judge: DataFrame, groups: DataFrame) -> DataFrame:
    """Groups that the hub cleans once the plan is carried out, if there is room to copy what they
    still hold: at most half of it is live then. `back_bytes`: about what comes back on the disk.
    """
    dropped = judge.where(f.col("action") == DROP).groupBy("partition_id")
    freed = dropped.agg(f.sum("bytes").alias("freed_bytes"))
    current = groups.where("current").select(f.col("id").alias("current_id"))
    live = f.col("live_bytes") - f.coalesce("freed_bytes", f.lit(0))
    share = f.col("live") / f.greatest("stored_bytes", "live", f.lit(1))
    return (
        groups.join(current, f.col("id") < f.col("current_id"))
        .withColumnRenamed("id", "partition_id")
        .join(freed, "partition_id", "left")
        .withColumn("live", live)
        .withColumn("live_share", share)
        .where(f.col("live_share") <= limits.CLEAN_LIVE_SHARE_MAX)
        .withColumn("back_bytes", f.floor(f.col("size_bytes") * (1 - f.col("live_share"))))
        .select("partition_id", "size_bytes", "live", "back_bytes")
        .orderBy("partition_id")
    )


def totals(plan: DataFrame) -> DataFrame:
    """Segments, events and bytes by stream and action."""
    return (
        plan.groupBy("zone", "stream", "stream_id", "action")
        .agg(
            f.count(f.lit(1)).alias("segments"),
            f.sum("events").alias("events"),
            f.sum("bytes").alias("bytes"),
        )
        .orderBy("stream_id", "action")
    )


def _placed(live: DataFrame, streams: DataFrame) -> DataFrame:
    """Each segment with its stream's policy, and what is newer than it: the open segment, and what
    was sealed later.
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
            "stream_i"
            "d", "segment_id", "segment", "partition_id", "first", "last", "bytes", "sealed",
            "sealed_at_us", "archived", "events_newer", "bytes_newer",
        )
        .join(streams, "stream_id")
    )  # fmt: skip


def _due(now_us: int) -> Column:
    """Why the policy lets a sealed segment go; null: it does not."""
    age_us = f.col("retain_age_s") * 1_000_000
    return (
        f.when(f.col("sealed_at_us") <= f.lit(now_us) - age_us, "age")
        .when(f.col("bytes_newer") >= f.col("retain_bytes"), "size")
        .when(f.col("events_newer") >= f.col("retain_events"), "count")
    )
