"""The audit of the event log: faults between segments and in producers' numbers, from the tables
and the facts of the scan. Spark module.

Faults have the columns of `scan.FAULT`.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from eventhub.base import limits
from sparkjobs.segment_files import NONE

MISSING_SEGMENT, OVERLAP = "missing_segment", "overlap"
MISSING_LIVE, ALTERED_LIVE = "missing_live", "altered_live"
DUPLICATE_NUMBER, LOST_NUMBER = "duplicate_number", "lost_number"
FORGOTTEN_NUMBER = "forgotten_number"  # no fault: the hub had expired the first use
_MICROSECONDS = 1_000_000
_SUM, _LONG_MAX = "decimal(38,0)", (1 << 63) - 1


def _fault(kind: str, first: Column, last: Column, evidence: Column) -> list[Column]:
    return [
        sf.col("stream_id"),
        sf.col("segment_id"),
        sf.lit(kind).alias("kind"),
        first.alias("first"),
        last.alias("last"),
        evidence.alias("evidence"),
    ]


def discontinuities(segments: DataFrame, streams: DataFrame) -> DataFrame:
    """Find gaps and overlaps between a stream's segments, from 1 to the head. Dropped segments are
    listed too, so any gap is a fault.
    """
    in_order = Window.partitionBy("stream_id").orderBy("first", "segment_id")
    heads = streams.select(
        sf.col("id").alias("stream_id"),
        sf.lit(None).cast("long").alias("segment_id"),
        (sf.col("head") + 1).alias("first"),
        sf.col("head").alias("last"),
    ).where("last is not null")
    rows = segments.select("stream_id", sf.col("id").alias("segment_id"), "first", "last")
    ends = (
        rows.unionByName(heads.withColumn("segment_id", sf.lit(_LONG_MAX)))
        .withColumn("next", sf.coalesce(sf.lag("last").over(in_order), sf.lit(0)) + 1)
        .withColumn("segment_id", sf.expr(f"nullif(segment_id, {_LONG_MAX})"))
    )
    evidence = sf.format_string("The previous segment ends at %d.", sf.col("next") - 1)
    gaps = ends.where("first > next").select(
        *_fault(MISSING_SEGMENT, sf.col("next"), sf.col("first") - 1, evidence)
    )
    overlaps = ends.where("first < next").select(
        *_fault(OVERLAP, sf.col("first"), sf.col("next") - 1, evidence)
    )
    return gaps.unionByName(overlaps)


def live_faults(segments: DataFrame, live: DataFrame) -> DataFrame:
    """Find what the database lacks of segments that are both live and archived."""
    rows = live.join(
        segments.select(
            sf.col("id").alias("segment_id"), "stream_id", sf.col("bytes").alias("sealed_bytes")
        ),
        "segment_id",
    )
    each = rows.select("stream_id", "segment_id", "events", sf.explode("missing").alias("sequence"))
    in_order = Window.partitionBy("segment_id").orderBy("sequence")
    runs = each.withColumn("run", sf.col("sequence") - sf.row_number().over(in_order))
    count = sf.format_string(
        "The database holds %d events of the segment; the archive was read too.", "events"
    )
    missing = (
        runs.groupBy("stream_id", "segment_id", "run")
        .agg(sf.min("sequence").alias("first"), sf.max("sequence").alias("last"), sf.max("events"))
        .withColumnRenamed("max(events)", "events")
        .select(*_fault(MISSING_LIVE, sf.col("first"), sf.col("last"), count))
    )
    sizes = sf.format_string(
        "The database holds %d bytes; %d were sealed.", "live_bytes", "sealed_bytes"
    )
    altered = (
        rows.where("size(missing) = 0")
        .withColumnRenamed("bytes", "live_bytes")
        .where("live_bytes <> sealed_bytes")
        .select(*_fault(ALTERED_LIVE, sf.col("first"), sf.col("last"), sizes))
    )
    return missing.unionByName(altered)


def stream_figures(segments: DataFrame, faults: DataFrame, read: DataFrame) -> DataFrame:
    """Count, by stream, segments and events: read, missing, duplicate, dropped, unchecked."""
    size = sf.greatest(sf.col("last") - sf.col("first") + 1, sf.lit(0))
    dropped = sf.col("tier") == "dropped"
    unchecked = (sf.col("source") == NONE) & ~dropped
    reasons = sf.collect_set(
        sf.when(dropped & (size > 0), sf.coalesce("removal_reason", sf.lit("unknown")))
    )
    found = segments.groupBy("stream_id").agg(
        sf.count("*").alias("segments"),
        sf.sum(sf.when(dropped, size).otherwise(0)).alias("dropped"),
        sf.array_join(sf.sort_array(reasons), ", ").alias("drop_reasons"),
        sf.sum(sf.when(unchecked, size).otherwise(0)).alias("unchecked"),
    )
    lost = sf.col("last") - sf.col("first") + 1
    wrong = faults.groupBy("stream_id").agg(
        sf.count("*").alias("faults"),
        sf.sum(sf.when(sf.col("kind").isin("missing", MISSING_SEGMENT), lost).otherwise(0)).alias(
            "missing"
        ),
        sf.sum(sf.when(sf.col("kind") == "duplicate", lost).otherwise(0)).alias("duplicates"),
    )
    events = read.groupBy("stream_id").agg(sf.sum("events").alias("events"))
    joined = found.join(events, "stream_id", "left").join(wrong, "stream_id", "left")
    return joined.fillna(0, ["events", "faults", "missing", "duplicates"])


# --- producers ---


def repeated_numbers(
    ranges: DataFrame, segments: DataFrame, streams: DataFrame, clients: DataFrame
) -> DataFrame:
    """Find numbers that are stored twice. They are FORGOTTEN_NUMBER where the hub had, by its
    limits, expired the first use, or where an earlier client may have had the same name (events
    carry names, not ids).
    """
    before = (
        Window.partitionBy("stream_id", "client", "window")
        .orderBy("low", "high", "first")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    highest = sf.max(sf.struct("high", "first", "last", "from_us", "to_us")).over(before)
    zones = streams.select(sf.col("id").alias("stream_id"), "zone_id")
    names = clients.groupBy("zone_id", sf.col("name").alias("client")).agg(
        (sf.count("*") > 1).alias("several")
    )
    twice = (
        ranges.withColumn("other", highest)
        .where("low <= other.high")
        .join(zones, "stream_id")
        .join(names, ["zone_id", "client"], "left")
    )
    apart_us = sf.greatest(sf.expr("from_us - other.to_us"), sf.expr("other.from_us - to_us"))
    apart = sf.greatest(sf.expr("first - other.last"), sf.expr("other.first - last"))
    forgotten = (
        (apart_us > limits.PRODUCER_EXPIRY_S * _MICROSECONDS)
        | (sf.col("timed") & (apart > limits.PRODUCERS_PER_CLIENT_STREAM_MAX))
        | sf.coalesce("several", sf.lit(False))
    )
    evidence = sf.format_string(
        "Client %s, incarnation %d: numbers %d to %d are also stored at sequences %d to %d.",
        *("client", "incarnation", "low", sf.least("high", sf.col("other.high"))),
        *(sf.col("other.first"), sf.col("other.last")),
    )
    bounds = segments.select(
        sf.col("stream_id").alias("of"), sf.col("id").alias("segment_id"),
        sf.col("first").alias("low_bound"), sf.col("last").alias("high_bound"),
    )  # fmt: skip
    inside = (sf.col("stream_id") == sf.col("of")) & sf.col("first").between(
        sf.col("low_bound"), sf.col("high_bound")
    )
    return (
        twice.withColumn(
            "kind",
            sf.when(forgotten, sf.lit(FORGOTTEN_NUMBER)).otherwise(sf.lit(DUPLICATE_NUMBER)),
        )
        .join(bounds, inside, "left")
        .select(
            *("stream_id", "segment_id", "kind", "first", "last"),
            evidence.alias("evidence"),
            "client",
        )
    )


def lost_numbers(producers: DataFrame, ranges: DataFrame, whole: DataFrame) -> DataFrame:
    """Find acknowledged numbers above every stored one, in the streams `whole` of which every event
    was checked; elsewhere missing events may explain them.
    """
    stored = ranges.groupBy("stream_id", "client", sf.col("window").alias("incarnation")).agg(
        sf.max("high").alias("stored")
    )
    evidence = sf.format_string(
        "Client %s: number %d was acknowledged; the highest stored one is %d.",
        *("client", "highest_number", sf.coalesce("stored", sf.lit(0))),
    )
    return (
        producers.join(whole, "stream_id", "left_semi")
        .join(stored, ["stream_id", "client", "incarnation"], "left")
        .where("stored is null or stored < highest_number")
        .withColumn("segment_id", sf.lit(None).cast("long"))
        .select(
            *_fault(LOST_NUMBER, *(sf.lit(None).cast("long"),) * 2, evidence),
            "client",
        )
    )


def producer_figures(ranges: DataFrame) -> DataFrame:
    """Count, by stream, client and incarnation, the numbers used and those omitted between them,
    which is allowed.
    """
    size = sf.col("high") - sf.col("low") + 1
    of_window = ranges.groupBy("stream_id", "client", "incarnation", "window").agg(
        sf.sum(size).alias("numbers"), sf.min("low").alias("low"), sf.max("high").alias("high")
    )
    omitted = sf.greatest(sf.col("high") - sf.col("low") + 1 - sf.col("numbers"), sf.lit(0))
    total = sf.sum(omitted.cast(_SUM))  # over several windows it may exceed a long
    return of_window.groupBy("stream_id", "client", "incarnation").agg(
        sf.sum("numbers").alias("numbers"),
        sf.min("low").alias("lowest"),
        sf.max("high").alias("highest"),
        sf.least(total, sf.lit(_LONG_MAX).cast(_SUM)).cast("long").alias("omitted"),
    )


def whole_streams(
    segments: DataFrame, unchecked: DataFrame, faults: DataFrame, read: DataFrame
) -> DataFrame:
    """Return the streams of which every event ever appended was checked."""
    holds = segments.where("last >= first").select("stream_id", sf.col("id").alias("segment_id"))
    unread = holds.join(read, "segment_id", "left_anti").select("stream_id")
    partial = holds.join(unchecked, "segment_id", "left_semi").select("stream_id")
    cut = faults.where(sf.col("kind") == MISSING_SEGMENT).select("stream_id")
    incomplete = unread.union(partial).union(cut).distinct()
    return segments.select("stream_id").distinct().join(incomplete, "stream_id", "left_anti")
